#include "core/status/warnings.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/percent.h"

namespace neuroshard::status {
namespace {

std::string names_of(const std::vector<net::NodeId>& nodes) {
  std::string names;
  for (std::size_t i = 0; i < std::min(nodes.size(), nodes_named); ++i)
    names += (i == 0 ? "" : ", ") + to_hex(nodes[i]).substr(0, 12) + "…";
  if (nodes.size() > nodes_named) names += fmt::format(" and {} more", nodes.size() - nodes_named);
  return names;
}

std::string without_flags(const std::vector<net::NodeId>& nodes) {
  if (nodes.size() > nodes_named) return " --without NODE…";
  std::string flags;
  for (const net::NodeId& node : nodes) flags += " --without " + to_hex(node).substr(0, 12);
  return flags;
}

std::string standing_still(const Standstill& still) {
  const std::string needs = still.needed == still.members
                                ? fmt::format("all {} members", still.members)
                                : fmt::format("{} of {} members", still.needed, still.members);
  const std::string silent =
      still.missing.empty()
          ? "too few of them can be reached"
          : fmt::format("no message comes from {} (start it again where it runs)", names_of(still.missing));
  if (still.needs_person && !still.missing.empty())
    return fmt::format(
        "Rounds stand still: {}. Half or less of the votes is left, so the network waits. Only if these "
        "nodes "
        "never return, go on without them: neuroshardd network continue{}",
        silent, without_flags(still.missing));
  return fmt::format(
      "Rounds stand still: round {} needs {} (more than two thirds), and {}. This node trains on by itself; "
      "its work counts when enough of them are back",
      still.round, needs, silent);
}

std::string disagreement(const Agreement& agreement, const net::NodeId& self) {
  const std::vector<net::NodeId> others = agreement.dissenters();
  const bool own = std::find(others.begin(), others.end(), self) != others.end();
  return fmt::format(
      "Only {} % of the nodes hold the anchor that they should (round {}); another one: {}. {}",
      whole_percent(agreement.share), agreement.round, names_of(others),
      own ? "This node is among them: it fetches the certified anchor by itself. If this does not go away, "
            "check the "
            "memory and disk of this computer"
          : "Their work does not count until they have the certified anchor; this node has it");
}

// Never "0" of a unit.
std::string figure(double value) {
  return fmt::format("{:.{}f}", value, value < 0.1 ? 2 : value < 10 ? 1 : 0);
}

std::string duration(double seconds) {
  return seconds < 120 ? figure(seconds) + " s" : fmt::format("{:.0f} minutes", seconds / 60);
}

// The node can't change this itself, so it names what the user can change.
std::string slow_line(const LineNeed& need, double seconds) {
  return fmt::format(
      "A round's work is up to {} MB each way, about {} over this node's line of {:.1f} Mbit/s, but training "
      "a "
      "round takes only {}: the training waits for the line. A limit of this node's bandwidth can be raised "
      "in the settings; a network whose profile has rounds of more steps (inner_steps) or a sparser codec "
      "needs less",
      figure(static_cast<double>(need.bytes) / 1e6), duration(seconds),
      static_cast<double>(need.line) * 8 / 1e6, duration(need.training_seconds));
}

// Conditions of the chain that only people can end.
void add_chain_warnings(const OwnRounds& own, std::vector<Warning>* warnings) {
  if (own.asks_succession)
    warnings->push_back(
        {"rounds_succession",
         "Other members go on without some that do not answer, or did so while this node was away. This "
         "node goes on with them once you agree: neuroshardd network continue --agree"});
  if (own.other_histories > 0)
    warnings->push_back(
        {"rounds_history",
         fmt::format(
             "{} node{} of this network hold{} another history, so {} rounds are not this node's. If they "
             "are yours, stop those nodes, give them new data directories, and let them join this "
             "history",
             own.other_histories, own.other_histories == 1 ? "" : "s", own.other_histories == 1 ? "s" : "",
             own.other_histories == 1 ? "its" : "their")});
  if (own.voucher_awaited_seconds >= voucher_patience_seconds)
    warnings->push_back(
        {"rounds_voucher",
         "This node is a candidate: it has enough contributions for a vote, and needs a voucher. "
         "Ask a person whose node is a voter for an invitation, and join with it"});
}

}  // namespace

std::vector<Warning> warnings_of(const Summary& summary, const OwnRounds& own) {
  std::vector<Warning> warnings;
  if (!own.trouble.empty()) warnings.push_back({"rounds_trouble", own.trouble});
  if (own.standstill) warnings.push_back({"rounds_standstill", standing_still(*own.standstill)});
  add_chain_warnings(own, &warnings);
  if (summary.agreement && summary.agreement->share < 1)
    warnings.push_back({"rounds_agreement", disagreement(*summary.agreement, own.self)});
  const std::size_t rounds = own.synced + own.missed;
  if (rounds >= least_rounds_to_warn) {
    if (static_cast<double>(own.synced) <= low_sync_success * static_cast<double>(rounds)) {
      warnings.push_back(
          {"rounds_sync",
           fmt::format("{} of this node's last {} rounds counted{}. A slow or busy connection and too little "
                       "processor time are the usual causes",
                       own.synced == 0 ? std::string("None") : fmt::format("Only {}", own.synced), rounds,
                       own.left_out_reason.empty() ? "" : ": " + own.left_out_reason)});
    } else if (summary.sync_success && *summary.sync_success <= low_sync_success) {
      warnings.push_back(
          {"rounds_sync",
           fmt::format(
               "Of the last rounds' work of most nodes only {} % counted: they are too slow for the rounds, "
               "or out of each other's reach",
               whole_percent(*summary.sync_success))});
    }
  }
  if (own.need.line > 0 && own.need.training_seconds > 0) {
    const double seconds = static_cast<double>(own.need.bytes) / static_cast<double>(own.need.line);
    if (seconds > own.need.training_seconds)
      warnings.push_back({"rounds_line", slow_line(own.need, seconds)});
  }
  if (own.repairs > 0)
    warnings.push_back(
        {"rounds_repaired",
         fmt::format(
             "This node's anchor was found damaged ({} time{} since the start) and replaced by the certified "
             "one, from other members. If it happens again, check the memory of this computer",
             own.repairs, own.repairs == 1 ? "" : "s")});
  return warnings;
}

}  // namespace neuroshard::status
