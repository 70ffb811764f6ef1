#include "app/node/output/what_if_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/node/output/memory_text.h"
#include "app/node/output/quantity.h"

namespace neuroshard::app {
namespace {

using nlohmann::ordered_json;

std::string plural(std::uint32_t count, const char* one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

std::string row(const char* name, const std::string& text) {
  return fmt::format("{:<11} {}", name, text);
}

std::string change(const std::string& from, const std::string& to) {
  return from == to ? from + " (as before)" : from + " -> " + to;
}

std::string size_of(const node::NetworkMemoryView::Model& model) {
  return fmt::format("{} layers of width {}", model.layers, model.hidden);
}

// Empty: nothing lacks.
std::string lacks(const node::MemoryOutlook& outlook) {
  std::string text;
  if (outlook.lacking_bytes > 0) text = gigabytes(outlook.lacking_bytes) + " of all members together";
  if (outlook.lacking_members == 0) return text;
  return text + (text.empty() ? "" : ", and ") + "room in " + plural(outlook.lacking_members, "more member");
}

std::string in_a_row(const node::NetworkMemoryView& memory) {
  return fmt::format("after {} in a row with this memory", plural(memory.results_needed, "round"));
}

// Of a model that the chain can change.
std::string sized_text(const node::MemoryOutlook& then) {
  const node::NetworkMemoryView& memory = then.memory;
  const std::string text = size_of(memory.present);
  if (then.asks == node::SizeChange::Up && memory.next)
    return fmt::format("{}; grows to {} {}", text, size_of(*memory.next), in_a_row(memory));
  if (then.asks == node::SizeChange::Down)
    return fmt::format("{}; shrinks {}: it lacks {}", text, in_a_row(memory), lacks(then));
  if (!memory.next) return text + "; stays, and is the largest of the profile";
  return fmt::format("{}; stays: the next one, {}, lacks {}", text, size_of(*memory.next), lacks(then));
}

// Of a model that keeps its size.
std::string kept_text(const node::MemoryOutlook& now, const node::MemoryOutlook& then) {
  const auto largest = [](const node::NetworkMemoryView& memory) {
    return size_of(memory.possible ? *memory.possible : memory.present);
  };
  std::string text =
      fmt::format("{}; keeps its size. Largest one that enough members have room for: {}",
                  size_of(then.memory.present), change(largest(now.memory), largest(then.memory)));
  if (then.memory.next)
    text += fmt::format("; the next one, {}, lacks {}", size_of(*then.memory.next), lacks(then));
  return text;
}

std::string part_text(const node::PartWithout& part) {
  std::string text = fmt::format("{} of {}: ", part.number, part.count);
  text += part.nodes == 0 ? "no node would hold it"
                          : fmt::format("{} of {} would hold it", plural(part.nodes, "node"),
                                        plural(part.wallets, "wallet"));
  if (part.waits)
    return text +
           ". It was trained, nobody could fetch it, and training waits until one of its holders is back";
  if (part.moves_from > 0)
    return text + fmt::format(". By the plan a node of part {} would move to it", part.moves_from);
  return text + (part.nodes == 0 ? ". No other node can be spared for it, and training waits for one" : "");
}

std::string votes_text(const node::VotesWithout& votes) {
  if (votes.nobody) return "nobody else has a vote, so the chain stands still";
  if (votes.lacking_after_wait > 0)
    return fmt::format(
        "if this node ends without saying so, the others lack {}, and the chain stands still until it is "
        "back",
        plural(votes.lacking_after_wait, "vote"));
  if (votes.lacking_at_once > 0)
    return fmt::format(
        "if this node ends without saying so, the others lack {} at first, and go on when they have marked "
        "this node as away",
        plural(votes.lacking_at_once, "vote"));
  return "the others have enough votes to go on";
}

ordered_json outlook_json(const node::MemoryOutlook& outlook) {
  const char* asks = outlook.asks == node::SizeChange::Up     ? "up"
                     : outlook.asks == node::SizeChange::Down ? "down"
                                                              : "none";
  return {{"memory", memory_json(outlook.memory)},
          {"asks", asks},
          {"lacking_bytes", outlook.lacking_bytes},
          {"lacking_members", outlook.lacking_members}};
}

}  // namespace

ordered_json what_if_json(const node::WhatIfQuery& query, const node::WhatIf& answer) {
  ordered_json memory = nullptr, part = nullptr, votes = nullptr;
  if (query.memory_bytes) memory = *query.memory_bytes;
  if (answer.part)
    part = {{"number", answer.part->number},         {"count", answer.part->count},
            {"nodes", answer.part->nodes},           {"wallets", answer.part->wallets},
            {"moves_from", answer.part->moves_from}, {"waits", answer.part->waits}};
  if (answer.votes)
    votes = {{"all_units", answer.votes->all_units},
             {"other_units", answer.votes->other_units},
             {"nobody", answer.votes->nobody},
             {"lacking_at_once", answer.votes->lacking_at_once},
             {"lacking_after_wait", answer.votes->lacking_after_wait}};
  return {{"memory_bytes", std::move(memory)}, {"leaves", !query.memory_bytes},     {"counts", answer.counts},
          {"now", outlook_json(answer.now)},   {"then", outlook_json(answer.then)}, {"part", std::move(part)},
          {"votes", std::move(votes)}};
}

std::vector<std::string> what_if_lines(const node::WhatIfQuery& query, const node::WhatIf& answer) {
  const node::NetworkMemoryView& now = answer.now.memory;
  const node::NetworkMemoryView& then = answer.then.memory;
  std::vector<std::string> lines;
  const std::string own = now.own_bytes > 0 ? gigabytes(now.own_bytes) : "nothing";
  lines.push_back(query.memory_bytes
                      ? fmt::format("If this node offered {} (now {}):", gigabytes(then.own_bytes), own)
                      : fmt::format("If this node, which offers {}, left:", own));
  if (!answer.counts)
    lines.push_back(row("this node", "the others don't count its memory: it has no vote yet, or is away"));
  lines.push_back(row("offered", change(gigabytes(now.offered_bytes), gigabytes(then.offered_bytes)) +
                                     " by " + plural(then.members, "member")));
  lines.push_back(row("tier", change(now.tier, then.tier)));
  if (then.members > 0)
    lines.push_back(
        row("model", then.can_change ? sized_text(answer.then) : kept_text(answer.now, answer.then)));
  if (answer.part) lines.push_back(row("part", part_text(*answer.part)));
  if (answer.votes) lines.push_back(row("votes", votes_text(*answer.votes)));
  if (!query.memory_bytes && then.can_change && then.members > 0)
    lines.push_back("Its memory still counts for the present model in the first seven days.");
  return lines;
}

}  // namespace neuroshard::app
