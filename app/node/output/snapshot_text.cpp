#include "app/node/output/snapshot_text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/node/output/chain_text.h"
#include "app/node/output/memory_text.h"
#include "app/node/output/quantity.h"
#include "core/base/percent.h"

namespace neuroshard::app {
namespace {

template <class T>
nlohmann::ordered_json or_null(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

nlohmann::ordered_json text_or_null(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
}

nlohmann::ordered_json training_json(const node::TrainingView& view) {
  nlohmann::ordered_json json = {{"step", view.step}};
  json["target_step"] =
      view.target_step == 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(view.target_step);
  json["loss"] = or_null(view.smoothed_loss);
  json["held_out_loss"] = nullptr;
  json["best_held_out_loss"] = or_null(view.best_evaluation_loss);
  json["bits_per_byte"] = nullptr;
  if (view.last_evaluation) {
    json["held_out_loss"] = view.last_evaluation->loss;
    json["bits_per_byte"] = or_null(view.last_evaluation->bits_per_byte);
  }
  json["last_step"] = nullptr;
  if (view.last_step) {
    const node::StepView& step = *view.last_step;
    json["last_step"] = {{"step", step.step},        {"loss", step.loss},
                         {"lr", step.learning_rate}, {"grad_norm", step.gradient_norm},
                         {"tokens", step.tokens},    {"tokens_per_s", step.tokens_per_second},
                         {"balance", step.balance},  {"micro_batch", step.micro_batch}};
  }
  json["activity"] = text_or_null(view.activity);
  json["activity_share"] =
      view.activity.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(view.activity_share);
  return json;
}

std::string local_time_text(WallTime at) {
  return fmt::format(
      "{:%a %H:%M}",
      fmt::localtime(std::chrono::system_clock::to_time_t(std::chrono::floor<std::chrono::seconds>(at))));
}

std::string row(const char* name, const std::string& value) {
  return fmt::format("{:<11}{}", name, value.empty() ? "—" : value);
}

std::string checkpoint_text(const node::CheckpointView& view) {
  if (view.newest.empty() || view.newest_at == WallTime{}) return view.newest;
  return fmt::format("{}, saved {}", view.newest, local_time_text(view.newest_at));
}

std::string wallet_text(const node::IdentityView& view) {
  if (view.wallet_id.empty()) return {};
  return view.wallet_id + (view.wallet_protected ? ", protected" : ", not protected");
}

// The field names follow other training programs; global_avg_loss is the network loss.
nlohmann::ordered_json global_json(const node::RoundsView& rounds) {
  const node::GlobalTrainingView& global = rounds.global;
  if (global.reports == 0) return nullptr;
  std::string trend = global.loss_trend;
  std::replace(trend.begin(), trend.end(), ' ', '_');
  return {{"total_nodes_training", global.training_nodes},
          {"reports", global.reports},
          {"wallets", global.wallets},
          {"global_avg_loss", or_null(global.loss)},
          {"global_min_loss", or_null(global.least_loss)},
          {"median_tokens_per_s", or_null(global.tokens_per_second)},
          {"global_steps", global.steps},
          {"global_tokens", global.tokens},
          {"outer_syncs", global.outer_syncs},
          {"data_shards_covered", global.data_shards},
          {"hash_agreement_rate", or_null(global.hash_agreement)},
          {"hash_agreement_round",
           global.hash_agreement ? nlohmann::ordered_json(global.agreement_round) : nlohmann::ordered_json()},
          {"sync_success_rate", or_null(global.sync_success)},
          {"successful_syncs", rounds.contributed},
          {"failed_syncs", rounds.left_out},
          {"loss_trend", text_or_null(trend)},
          {"is_converging", global.converging},
          {"training_verified", global.verified},
          {"training_verified_reason", text_or_null(global.verified_reason)}};
}

std::string share_text(const std::optional<double>& share) {
  return share ? fmt::format("{} %", whole_percent(*share)) : "—";
}

std::string global_text(const node::RoundsView& rounds) {
  const node::GlobalTrainingView& global = rounds.global;
  if (!rounds.taking_part || global.reports == 0) return "";
  return fmt::format(
      "{} node{} training for {} wallet{}; network loss {}, {}; {} certified tokens; {} hold the same "
      "anchor, "
      "{} of the last rounds' work counted; progress {}: {}",
      global.training_nodes, global.training_nodes == 1 ? "" : "s", global.wallets,
      global.wallets == 1 ? "" : "s", global.loss ? fmt::format("{:.4f}", *global.loss) : "—",
      global.loss_trend, global.tokens, share_text(global.hash_agreement), share_text(global.sync_success),
      global.verified ? "shown" : "not shown", global.verified_reason);
}

const char* part_reason(node::PartReason reason) {
  switch (reason) {
    case node::PartReason::None: return "";
    case node::PartReason::NoHolder: return "nobody holds it";
    case node::PartReason::OneWallet: return "one owner's nodes hold it";
    case node::PartReason::SlowPart: return "another part is faster";
  }
  return "";
}

nlohmann::ordered_json part_json(const node::PartView& part) {
  auto path = nlohmann::ordered_json::array();
  for (const node::HopView& hop : part.path)
    path.push_back({{"node", hop.node},
                    {"computing_ms", or_null(hop.computing_ms)},
                    {"between_ms", or_null(hop.between_ms)}});
  return {
      {"number", part.number},
      {"count", part.count},
      {"holds", part.holds},
      {"holders", part.holders},
      {"speeds_percent", part.speeds},
      {"paused", part.paused},
      {"sessions", part.sessions},
      {"finished", part.finished},
      {"replaced", part.replaced},
      {"lost", part.lost},
      {"path", std::move(path)},
      {"checks", {{"right", part.found_right}, {"wrong", part.found_wrong}, {"withheld", part.withheld}}},
      {"checkers", part.checkers},
      {"follows_plan", part.follows_plan},
      {"moves_to", part.moves_to == 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(part.moves_to)},
      {"reason", part.reason == node::PartReason::None ? nlohmann::ordered_json()
                                                       : nlohmann::ordered_json(part_reason(part.reason))}};
}

nlohmann::ordered_json rounds_json(const node::RoundsView& rounds) {
  if (!rounds.taking_part) return nullptr;
  return {{"phase", rounds.phase},
          {"seconds_left", or_null(rounds.seconds_left)},
          {"too_few_to_vote", rounds.too_few_to_vote},
          {"global", global_json(rounds)},
          {"round", rounds.round},
          {"anchor", text_or_null(rounds.anchor)},
          {"agrees", rounds.agrees},
          {"member", rounds.member},
          {"members", rounds.members},
          {"contributors", rounds.contributors},
          {"steps", rounds.steps},
          {"inner_steps", rounds.inner_steps},
          {"certified", rounds.certified},
          {"contributed", rounds.contributed},
          {"left_out", rounds.left_out},
          {"left_out_reason", text_or_null(rounds.left_out_reason)},
          {"fetched", rounds.fetched},
          {"corruptions", rounds.corruptions},
          {"waiting_seconds", rounds.waiting_seconds},
          {"waiting_share", rounds.waiting_share},
          {"bytes_sent", rounds.bytes_sent},
          {"bytes_received", rounds.bytes_received},
          {"trouble", text_or_null(rounds.trouble)},
          {"chain", chain_view_json(rounds.chain)},
          {"part", rounds.part ? part_json(*rounds.part) : nlohmann::ordered_json()},
          {"memory", rounds.memory ? memory_json(*rounds.memory) : nlohmann::ordered_json()}};
}

std::string part_text(const node::RoundsView& rounds) {
  if (!rounds.part) return "";
  const node::PartView& part = *rounds.part;
  std::string text = fmt::format("{} of {}: {}; the {} chose it", part.number, part.count, part.holds,
                                 part.follows_plan ? "network" : "owner");
  if (part.moves_to > 0) text += fmt::format("; moves to part {}", part.moves_to);
  if (part.moves_to > 0 && part.reason != node::PartReason::None)
    text += fmt::format(", because {}", part_reason(part.reason));
  if (!part.holders.empty()) text += fmt::format("; nodes by part: {}", fmt::join(part.holders, ", "));
  if (!part.speeds.empty()) text += fmt::format("; speed by part: {} %", fmt::join(part.speeds, " %, "));
  text += fmt::format("; {} driver{} pass{} through this node; {} micro-batches of its own text finished",
                      part.sessions, part.sessions == 1 ? "" : "s", part.sessions == 1 ? "es" : "",
                      part.finished);
  if (part.replaced > 0) text += fmt::format("; {} times a node on the way was replaced", part.replaced);
  if (part.paused) text += "; paused: the others go around this node";
  return text;
}

std::string checks_text(const node::RoundsView& rounds) {
  if (!rounds.part) return "";
  const node::PartView& part = *rounds.part;
  std::string text = fmt::format("{} results of other parts found right", part.found_right);
  if (part.found_wrong > 0) text += fmt::format(", {} wrong", part.found_wrong);
  if (part.withheld > 0)
    text += fmt::format(", {} not checked, because their holders do not give what they were made of",
                        part.withheld);
  if (!part.checkers.empty()) text += fmt::format("; checkers by part: {}", fmt::join(part.checkers, ", "));
  return text;
}

std::string milliseconds(double value) {
  return fmt::format("{:.{}f} ms", value, value < 10 ? 1 : 0);
}

std::string path_text(const node::Snapshot& view) {
  const std::optional<node::PartView>& part = view.rounds.part;
  if (!part || part->path.empty()) return "";
  std::string text;
  double between = 0;
  bool timed = false;
  for (const node::HopView& hop : part->path) {
    if (!text.empty()) text += " → ";
    text += hop.node == view.identity.node_id ? "this node" : hop.node.substr(0, 12);
    if (!hop.computing_ms) continue;
    timed = true;
    text += " " + milliseconds(*hop.computing_ms);
    between += hop.between_ms.value_or(0);
  }
  if (timed) text += "; the line and waiting " + milliseconds(between);
  return text;
}

std::string rounds_text(const node::RoundsView& rounds) {
  if (!rounds.taking_part) return "";
  if (!rounds.trouble.empty()) return rounds.trouble;
  std::string text = fmt::format(
      "{}; {}, {} member{}", rounds.phase,
      rounds.round == 0 ? std::string("none certified yet") : fmt::format("{} certified", rounds.round),
      rounds.members, rounds.members == 1 ? "" : "s");
  if (rounds.round != 0)
    text += fmt::format(", {} contributed to the newest; anchor {}… {}", rounds.contributors,
                        rounds.anchor.substr(0, 12),
                        rounds.agrees ? "matches this node's" : "is not on this node yet");
  text += fmt::format("; waited {:.0f} % of the time, {} sent, {} received", 100 * rounds.waiting_share,
                      mebibytes(rounds.bytes_sent), mebibytes(rounds.bytes_received));
  if (rounds.members == 1)
    text += "; no other node trains with this one yet";
  else if (rounds.too_few_to_vote)
    text += "; too few nodes to outvote a false contribution";
  if (!rounds.left_out_reason.empty()) text += "; left out: " + rounds.left_out_reason;
  return text;
}

}  // namespace

nlohmann::ordered_json pause_reasons_json(const node::Snapshot& view) {
  auto reasons = nlohmann::ordered_json::array();
  for (const node::PauseReason& reason : view.pause_reasons) {
    reasons.push_back(
        {{"key", reason.key},
         {"text", reason.text},
         {"until_ms", reason.until ? nlohmann::ordered_json(to_unix_ms(*reason.until)) : nullptr},
         {"can_override", reason.can_override}});
  }
  return reasons;
}

nlohmann::ordered_json snapshot_json(const node::Snapshot& view) {
  nlohmann::ordered_json json = {{"running", true},
                                 {"state", std::string(to_string(view.state))},
                                 {"contributing", view.contributing},
                                 {"pause_reasons", pause_reasons_json(view)}};
  json["snoozed_until_ms"] =
      view.snoozed_until ? nlohmann::ordered_json(to_unix_ms(*view.snoozed_until)) : nullptr;
  json["overridden_until_ms"] =
      view.overridden_until ? nlohmann::ordered_json(to_unix_ms(*view.overridden_until)) : nullptr;
  json["safe_mode"] = view.safe_mode;
  json["sensors"] = nlohmann::ordered_json::array();
  for (const node::SensorView& sensor : view.sensors) {
    json["sensors"].push_back(
        {{"key", sensor.key}, {"value", text_or_null(sensor.value)}, {"note", sensor.note}});
  }
  json["training"] = training_json(view.training);
  json["rounds"] = rounds_json(view.rounds);
  json["http"] = {{"address", text_or_null(view.http.address)}, {"trouble", text_or_null(view.http.trouble)}};
  json["peers"] = nullptr;
  if (view.peers.taking_part)
    json["peers"] = {{"connected", view.peers.connected},
                     {"bytes_in_per_s", or_null(view.peers.bytes_in_per_second)},
                     {"bytes_out_per_s", or_null(view.peers.bytes_out_per_second)}};
  json["checkpoint"] = text_or_null(view.checkpoint.newest);
  json["checkpoint_at_ms"] = view.checkpoint.newest_at == WallTime{}
                                 ? nlohmann::ordered_json()
                                 : nlohmann::ordered_json(to_unix_ms(view.checkpoint.newest_at));
  json["model"] = {{"layers", view.model.layers},
                   {"hidden", view.model.hidden},
                   {"experts", view.model.experts},
                   {"parameters", view.model.parameters},
                   {"active_parameters", view.model.active_parameters}};
  json["compute"] = {{"device", text_or_null(view.compute.device)},
                     {"kernels", text_or_null(view.compute.kernels)},
                     {"isa", text_or_null(view.compute.isa)},
                     {"precision", text_or_null(view.compute.precision)},
                     {"threads", view.compute.threads}};
  json["resources"] = {{"resident_bytes", view.resources.resident_bytes},
                       {"memory_limit_bytes", view.resources.memory_limit_bytes},
                       {"disk_free_bytes", view.resources.disk_free_bytes},
                       {"memory_total_bytes", view.resources.memory_total_bytes},
                       {"cpu_share", or_null(view.resources.cpu_share)}};
  json["alerts"] = nlohmann::ordered_json::array();
  for (const node::Alert& alert : view.alerts) {
    json["alerts"].push_back({{"key", alert.key},
                              {"severity", std::string(to_string(alert.severity))},
                              {"message", alert.message}});
  }
  json["pid"] = view.program.pid;
  json["version"] = view.program.version;
  json["data_dir"] = view.program.data_directory;
  json["network"] = view.program.network;
  json["node_id"] = view.identity.node_id;
  json["wallet_id"] = view.identity.wallet_id;
  json["wallet_protected"] = view.identity.wallet_protected;
  json["snapshot"] = view.version;
  return json;
}

std::string state_text(const node::Snapshot& view) {
  // The state between the switch and the end of the step.
  const bool pausing = view.state == node::RunState::Training && !view.pause_reasons.empty();
  std::string text(pausing ? "pausing" : to_string(view.state));
  if (view.state == node::RunState::Training || view.state == node::RunState::Paused) {
    if (view.training.step != 0) text += fmt::format(", step {}", view.training.step);
    if (view.training.target_step != 0) text += fmt::format(" of {}", view.training.target_step);
  }
  if (!view.training.activity.empty()) text += ", " + view.training.activity;
  std::string separator = ": ";
  for (const node::PauseReason& reason : view.pause_reasons) {
    text += separator + reason.text;
    separator = "; ";
  }
  return text;
}

std::vector<std::string> contribute_lines(const node::Snapshot& view) {
  std::vector<std::string> lines = {row("State", state_text(view)),
                                    row("Switch", view.contributing ? "on" : "off")};
  if (view.overridden_until)
    lines.push_back(row("Rules", "ignored until " + local_time_text(*view.overridden_until)));
  for (const node::PauseReason& reason : view.pause_reasons) {
    lines.push_back(row("Pauses", reason.text + (reason.can_override ? "  (contribute anyway)" : "")));
  }
  for (const node::SensorView& sensor : view.sensors) {
    lines.push_back(row("Sensor", fmt::format("{}: {}; {}", sensor.key,
                                              sensor.value.empty() ? "—" : sensor.value, sensor.note)));
  }
  return lines;
}

std::vector<std::string> snapshot_lines(const node::Snapshot& view) {
  const node::TrainingView& training = view.training;
  std::string loss;
  if (training.smoothed_loss) loss = fmt::format("{:.4f}", *training.smoothed_loss);
  if (training.last_evaluation) {
    loss += fmt::format(", held out {:.4f} at step {}", training.last_evaluation->loss,
                        training.last_evaluation->step);
  }
  std::vector<std::string> lines = {
      row("State", state_text(view)), row("Loss", loss),
      row("Speed",
          training.last_step ? fmt::format("{:.0f} tokens/s", training.last_step->tokens_per_second) : ""),
      row("Rounds", rounds_text(view.rounds)), row("Part", part_text(view.rounds))};
  if (const std::string checks = checks_text(view.rounds); !checks.empty())
    lines.push_back(row("Checks", checks));
  if (const std::string path = path_text(view); !path.empty()) lines.push_back(row("Path", path));
  if (const std::string memory = memory_text(view.rounds); !memory.empty())
    lines.push_back(row("Offered", memory));
  lines.insert(
      lines.end(),
      {row("Chain", chain_view_text(view.rounds.chain)), row("All nodes", global_text(view.rounds)),
       row("Checkpoint", checkpoint_text(view.checkpoint)),
       row("Memory", fmt::format("{} of {}", mebibytes(view.resources.resident_bytes),
                                 mebibytes(view.resources.memory_limit_bytes))),
       row("Disk free", mebibytes(view.resources.disk_free_bytes)),
       row("Compute", view.compute.device.empty()
                          ? std::string()
                          : fmt::format("{}; {}; {} thread{}", view.compute.device, view.compute.precision,
                                        view.compute.threads, view.compute.threads == 1 ? "" : "s")),
       row("Network", view.program.network), row("Wallet", wallet_text(view.identity)),
       row("Data", view.program.data_directory),
       row("Process", fmt::format("{}, version {}", view.program.pid, view.program.version))});
  std::vector<std::string> rules = contribute_lines(view);
  if (!view.http.address.empty()) lines.push_back(row("Local HTTP", view.http.address));
  lines.insert(lines.end(), rules.begin() + 1, rules.end());  // all but the state
  for (const node::Alert& alert : view.alerts)
    lines.push_back(row("Alert", fmt::format("{}: {}", to_string(alert.severity), alert.message)));
  return lines;
}

}  // namespace neuroshard::app
