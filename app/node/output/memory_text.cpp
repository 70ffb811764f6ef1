#include "app/node/output/memory_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/node/output/quantity.h"

namespace neuroshard::app {
namespace {

using Memory = node::NetworkMemoryView;

nlohmann::ordered_json size_json(const std::optional<Memory::Model>& size) {
  if (!size) return nullptr;
  return {{"layers", size->layers},
          {"hidden", size->hidden},
          {"parameters", size->parameters},
          {"member_bytes", size->member_bytes},
          {"with_room", size->with_room},
          {"network_bytes", size->network_bytes},
          {"members", size->members},
          {"offered_bytes", size->offered_bytes},
          {"room_percent", size->room_percent},
          {"needs_percent", size->needs_percent}};
}

const char* change_name(node::SizeChange change) {
  switch (change) {
    case node::SizeChange::None: return "none";
    case node::SizeChange::Up: return "up";
    case node::SizeChange::Down: return "down";
  }
  return "unknown";
}

std::string plural(std::uint32_t count, const char* one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

std::string size_of(const Memory::Model& model) {
  return fmt::format("{} layers of width {}", model.layers, model.hidden);
}

std::string offered(std::uint64_t bytes) {
  return bytes == 0 ? "nothing is offered" : gigabytes(bytes) + " are offered";
}

// The needs of a size, and the offers for it.
std::string counts(const Memory::Model& model, const char* of_all) {
  std::string text =
      fmt::format("needs {} of each member and {} {}: {} of {} {} room, {}", gigabytes(model.member_bytes),
                  gigabytes(model.network_bytes), of_all, model.with_room, model.members,
                  model.with_room == 1 ? "has" : "have", offered(model.offered_bytes));
  if (model.room_percent < model.needs_percent)
    text += fmt::format(", and those with room have {} % of the votes of {} % that are needed",
                        model.room_percent, model.needs_percent);
  return text;
}

std::string change_text(const Memory& memory) {
  const bool down = memory.asked == node::SizeChange::Down;
  std::string which = down ? "smaller model" : "larger model";
  if (down && memory.smaller) which += fmt::format(" of {}", size_of(*memory.smaller));
  if (memory.changing) return fmt::format("; the network is changing to a {}", which);
  const std::uint32_t left = memory.results_needed - std::min(memory.results, memory.results_needed);
  return fmt::format("; the network changes to a {} after {} with {} memory", which,
                     plural(left, "more round"), down ? "too little" : "enough");
}

// Of a model that can change.
std::string sizes_text(const Memory& memory) {
  std::string text;
  if (memory.asked != node::SizeChange::None) text = change_text(memory);
  const bool grows = memory.next && memory.next->is_enough();
  if (memory.asked == node::SizeChange::Down || (!memory.present.is_enough() && !grows))
    return fmt::format("{}; the model has too little memory: it {}", text, counts(memory.present, "of all"));
  if (!memory.next) return text + "; it is the largest of the profile";
  return fmt::format("{}; the next model, {}, {}", text, size_of(*memory.next),
                     counts(*memory.next, "of all with a reserve"));
}

// The models that the members would have memory for.
std::string kept_text(const Memory& memory) {
  std::string text = ", and keeps its size";
  if (memory.possible)
    text += fmt::format("; enough members have room for {}, with {} of each", size_of(*memory.possible),
                        gigabytes(memory.possible->member_bytes));
  if (memory.next)
    text += fmt::format("; {} need {}, which {} of {} {}, and {} would have to", size_of(*memory.next),
                        gigabytes(memory.next->member_bytes), memory.next->with_room, memory.members,
                        memory.next->with_room == 1 ? "offers" : "offer", memory.needs_room);
  return text;
}

}  // namespace

nlohmann::ordered_json memory_json(const Memory& memory) {
  return {{"members", memory.members},
          {"known", memory.known},
          {"offered_bytes", memory.offered_bytes},
          {"own_bytes", memory.own_bytes},
          {"tier", memory.tier},
          {"next_tier",
           memory.next_tier.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(memory.next_tier)},
          {"next_tier_bytes", memory.next_tier_bytes},
          {"needs_room", memory.needs_room},
          {"present", size_json(memory.present)},
          {"possible", size_json(memory.possible)},
          {"next", size_json(memory.next)},
          {"smaller", size_json(memory.smaller)},
          {"can_change", memory.can_change},
          {"asked", change_name(memory.asked)},
          {"results", memory.results},
          {"results_needed", memory.results_needed},
          {"changing", memory.changing}};
}

std::string memory_text(const node::RoundsView& rounds) {
  if (!rounds.memory) return "";
  const Memory& memory = *rounds.memory;
  if (memory.known == 0 && memory.asked == node::SizeChange::None) return "";
  const std::string text = fmt::format(
      "{} by {} of {}, tier {}; the model needs {} of each", gigabytes(memory.offered_bytes), memory.known,
      plural(memory.members, "member"), memory.tier, gigabytes(memory.present.member_bytes));
  return text + (memory.can_change ? sizes_text(memory) : kept_text(memory));
}

}  // namespace neuroshard::app
