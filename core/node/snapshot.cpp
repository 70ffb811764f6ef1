#include "core/node/snapshot.h"

#include <algorithm>

#include "core/base/utf8.h"
#include "core/node/rounds_report.h"

namespace neuroshard::node {
namespace {

// Every text of a snapshot with its limit, in one place for bound() and encoded_bytes().
template <class SnapshotType, class Visit>
void for_each_text(SnapshotType& s, Visit visit) {
  for (auto& reason : s.pause_reasons) {
    visit(reason.key, max_key);
    visit(reason.text, max_text);
  }
  for (auto& sensor : s.sensors) {
    visit(sensor.key, max_key);
    visit(sensor.value, max_sensor_text);
    visit(sensor.note, max_sensor_text);
  }
  for (auto* key :
       {&s.identity.node_id, &s.identity.wallet_id, &s.identity.instance_id, &s.program.version,
        &s.program.network_id, &s.rounds.anchor, &s.rounds.chain.genesis, &s.rounds.chain.voters_mode,
        &s.rounds.chain.standing, &s.rounds.chain.outlook, &s.rounds.chain.asks_succession,
        &s.rounds.global.loss_trend, &s.compute.isa, &s.compute.precision}) {
    visit(*key, max_key);
  }
  for (auto* text : {&s.program.data_directory, &s.program.network, &s.program.notice, &s.compute.device,
                     &s.compute.kernels, &s.training.data_source, &s.training.activity, &s.checkpoint.newest,
                     &s.undo.checkpoint, &s.http.address, &s.http.trouble, &s.rounds.phase,
                     &s.rounds.left_out_reason, &s.rounds.trouble, &s.rounds.global.verified_reason}) {
    visit(*text, max_text);
  }
  if (s.rounds.part) {
    visit(s.rounds.part->holds, max_text);
    for (auto& hop : s.rounds.part->path) visit(hop.node, max_key);
  }
  if (s.rounds.memory)
    for (auto* tier : {&s.rounds.memory->tier, &s.rounds.memory->next_tier}) visit(*tier, max_key);
  for (auto& id : s.rounds.chain.missing) visit(id, max_key);
  for (auto& other : s.rounds.chain.others) visit(other.genesis, max_key);
  for (auto& alert : s.alerts) {
    visit(alert.key, max_key);
    visit(alert.message, max_text);
  }
}

}  // namespace

std::string_view to_string(RunState state) {
  switch (state) {
    case RunState::Starting: return "starting";
    case RunState::Idle: return "idle";
    case RunState::Training: return "training";
    case RunState::Paused: return "paused";
    case RunState::Stopping: return "stopping";
    case RunState::Failed: return "failed";
  }
  return "unknown";
}

std::string_view to_string(Severity severity) {
  switch (severity) {
    case Severity::Notice: return "notice";
    case Severity::Warning: return "warning";
    case Severity::Critical: return "critical";
  }
  return "unknown";
}

void bound(Snapshot& snapshot) {
  std::stable_sort(snapshot.alerts.begin(), snapshot.alerts.end(),
                   [](const Alert& a, const Alert& b) { return a.severity > b.severity; });
  if (snapshot.alerts.size() > max_alerts) snapshot.alerts.resize(max_alerts);
  if (snapshot.pause_reasons.size() > max_reasons) snapshot.pause_reasons.resize(max_reasons);
  if (snapshot.sensors.size() > max_sensors) snapshot.sensors.resize(max_sensors);
  ChainView& chain = snapshot.rounds.chain;
  if (chain.missing.size() > max_missing) chain.missing.resize(max_missing);
  if (chain.others.size() > max_other_histories) chain.others.resize(max_other_histories);
  if (auto& part = snapshot.rounds.part) {
    if (part->path.size() > max_path) part->path.resize(max_path);
    for (auto* by_part : {&part->holders, &part->speeds, &part->checkers})
      if (by_part->size() > max_path) by_part->resize(max_path);
  }
  for_each_text(snapshot, [](std::string& text, std::size_t most) { text = valid_utf8(text, most); });
}

void bound(Alert& alert) {
  alert.key = valid_utf8(alert.key, max_key);
  alert.message = valid_utf8(alert.message, max_text);
}

void bound(RoundsReport& report) {
  const auto keep = [](auto& list, std::size_t most) {
    if (list.size() > most) list.resize(most);
  };
  keep(report.rounds, max_round_entries);
  for (RoundEntry& round : report.rounds) keep(round.who, max_round_members_shown);
  keep(report.nodes, max_training_nodes);
  if (report.losses.size() > max_global_losses)
    report.losses.erase(report.losses.begin(), report.losses.end() - max_global_losses);
  keep(report.refused, max_refused_reasons);
}

std::size_t encoded_bytes(const Snapshot& snapshot) {
  constexpr std::size_t per_field = 16;      // tag, length, and the widest scalar
  constexpr std::size_t fixed_fields = 208;  // more than there are
  // Of an entry, beside its texts: the entry itself, a number and a time.
  const std::size_t entries = snapshot.alerts.size() + snapshot.pause_reasons.size() +
                              snapshot.sensors.size() + snapshot.rounds.chain.others.size() +
                              (snapshot.rounds.part ? snapshot.rounds.part->path.size() : 0);
  std::size_t bytes = fixed_fields * per_field + entries * 3 * per_field;
  for_each_text(snapshot,
                [&bytes](const std::string& text, std::size_t) { bytes += per_field + text.size(); });
  return bytes;
}

}  // namespace neuroshard::node
