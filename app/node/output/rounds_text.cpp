#include "app/node/output/rounds_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/node/output/progress.h"
#include "core/runtime/round_rules.h"

namespace neuroshard::app {
namespace {

constexpr std::size_t shown_members = 4;  // of a round for somebody who has not joined and knows none of them

template <class T>
nlohmann::ordered_json or_null(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

nlohmann::ordered_json round_json(const node::RoundEntry& round) {
  nlohmann::ordered_json json = {
      {"round", round.round},
      {"at_ms", to_unix_ms(round.at)},
      {"step", round.step == 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(round.step)},
      {"seconds", round.seconds},
      {"waited_seconds", round.waited},
      {"anchor", round.anchor},
      {"fetched", round.fetched},
      {"rule", round.rule.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(round.rule)},
      {"too_few_to_vote", round.too_few_to_vote},
      {"tokens", round.tokens},
      {"members", round.members},
      {"contributors", round.contributors},
      {"who", nlohmann::ordered_json::array()}};
  for (const node::RoundMemberEntry& member : round.who) {
    json["who"].push_back({{"id", member.id},
                           {"mine", member.mine},
                           {"contributed", member.contributed},
                           {"steps", member.steps},
                           {"tokens", member.tokens},
                           {"share", or_null(member.share)},
                           {"standing", member.standing.empty() ? nlohmann::ordered_json()
                                                                : nlohmann::ordered_json(member.standing)},
                           {"note", member.note}});
  }
  return json;
}

nlohmann::ordered_json node_json(const node::TrainingNodeEntry& one) {
  return {{"id", one.id},
          {"wallet", one.wallet},
          {"mine", one.mine},
          {"counts", one.counts},
          {"training", one.training},
          {"round", one.round},
          {"model_hash", one.anchor},
          {"agrees", or_null(one.agrees)},
          {"current_loss", or_null(one.loss)},
          {"tokens_per_s", one.tokens_per_second},
          {"steps", one.steps},
          {"contributed", one.contributed},
          {"synced", one.synced},
          {"missed", one.missed},
          {"data_shard", or_null(one.shard)},
          {"at_ms", to_unix_ms(one.at)}};
}

}  // namespace

nlohmann::ordered_json rounds_report_json(const node::RoundsReport& report) {
  nlohmann::ordered_json json = {{"taking_part", report.taking_part},
                                 {"rounds", nlohmann::ordered_json::array()},
                                 {"nodes", nlohmann::ordered_json::array()},
                                 {"loss_checkpoints", nlohmann::ordered_json::array()},
                                 {"refused", nlohmann::ordered_json::object()}};
  for (const node::RoundEntry& round : report.rounds) json["rounds"].push_back(round_json(round));
  for (const node::TrainingNodeEntry& one : report.nodes) json["nodes"].push_back(node_json(one));
  for (const node::GlobalLossPoint& point : report.losses)
    json["loss_checkpoints"].push_back({{"round", point.round}, {"loss", point.loss}});
  for (const node::RefusedEntry& refused : report.refused) json["refused"][refused.reason] = refused.count;
  return json;
}

std::vector<std::string> rounds_report_lines(const node::RoundsReport& report) {
  if (!report.taking_part) return {"This node trains alone and takes part in no rounds."};
  std::vector<std::string> lines;
  for (const node::RoundEntry& round : report.rounds) {
    lines.push_back(fmt::format(
        "Round {}: {} of {} members contributed{}{}{}", round.round, round.contributors, round.members,
        round.seconds > 0 ? fmt::format(", {:.1f} s", round.seconds) : "",
        round.rule.empty() ? "" : ", " + round.rule, round.fetched ? ", fetched from others" : ""));
    for (const node::RoundMemberEntry& member : round.who) {
      lines.push_back(fmt::format(
          "  {}…{} {}{}{}{}", member.id.substr(0, 12), member.mine ? " (this node)" : "",
          member.standing.empty() ? "" : member.standing + ", ", fmt::format("{} tokens", member.tokens),
          member.share ? fmt::format(", {:.0f} % of the step", 100 * *member.share) : "",
          member.note.empty() ? "" : "; " + member.note));
    }
  }
  if (report.rounds.empty()) lines.emplace_back("No round was certified since this node started.");
  for (const node::TrainingNodeEntry& one : report.nodes) {
    lines.push_back(fmt::format("Node {}…{} round {}, loss {}, {} tokens/s, {} of {} rounds counted{}{}",
                                one.id.substr(0, 12), one.mine ? " (this node)" : "", one.round,
                                one.loss ? fmt::format("{:.4f}", *one.loss) : "—", one.tokens_per_second,
                                one.synced, one.synced + one.missed,
                                one.agrees && !*one.agrees ? ", anchor differs from the majority" : "",
                                one.counts ? "" : ", not counted"));
  }
  for (const node::RefusedEntry& refused : report.refused)
    lines.push_back(fmt::format("Refused from other nodes: {} ({} times)", refused.reason, refused.count));
  return lines;
}

nlohmann::ordered_json round_traffic_json(const config::ConsensusPart& consensus) {
  if (consensus.inner_steps == 0) return nullptr;
  const runtime::RoundTraffic traffic = runtime::round_traffic(consensus, shown_members);
  return {{"members", shown_members},
          {"written_bytes", traffic.written},
          {"sent_bytes", traffic.sent},
          {"received_bytes", traffic.received}};
}

std::string round_traffic_text(const config::ConsensusPart& consensus) {
  if (consensus.inner_steps == 0) return {};
  const runtime::RoundTraffic traffic = runtime::round_traffic(consensus, shown_members);
  return fmt::format(
      "a round of {} steps with {} members: at most {} written to the disk with its checkpoint, {} sent, {} "
      "received",
      consensus.inner_steps, shown_members, format_bytes(traffic.written), format_bytes(traffic.sent),
      format_bytes(traffic.received));
}

}  // namespace neuroshard::app
