#include "core/runtime/rounds_status.h"

#include <fmt/format.h>

#include <algorithm>

namespace neuroshard::runtime {
namespace {

constexpr Duration shard_period = std::chrono::seconds(60);
constexpr Duration repair_alert_period = std::chrono::hours(1);
constexpr std::size_t asked_at_a_time = 2;

status::GossipServices services_of(PeerHost& host) {
  return {host.key(), host.member().caller(), host.executor(), host.clock(),
          [&host](std::size_t most) { return host.member().some(std::min(most, asked_at_a_time)); }};
}

}  // namespace

RoundsStatus::RoundsStatus(PeerHost& host, const config::ConsensusPart& consensus, const Hash256& network,
                           ReportingAs as, std::uint64_t seed)
    : host_(host),
      batch_tokens_(std::max<std::uint64_t>(consensus.batch_tokens, 1)),
      inner_steps_(consensus.inner_steps),
      gossip_(services_of(host), network, std::move(as.delegation), status::GossipOptions{}, seed) {
  if (const auto codec = outer::codec_from_name(consensus.codec); codec.ok()) codec_.codec = *codec;
  board_->report.taking_part = true;
  gossip_.start();
}

RoundsStatus::~RoundsStatus() = default;

void RoundsStatus::answer(const net::Caller& from, ByteSpan request, const net::Respond& respond) {
  gossip_.on_call(from, request, respond);
}

void RoundsStatus::on_round(std::size_t fragment, node::RoundEntry entry,
                            const engine::RoundTrainer::View& training) {
  const MonotonicTime now = host_.clock().monotonic_now();
  entry.at = host_.clock().wall_now();
  if (const auto own = own_snapshot()) entry.step = own->training.step;
  Before& before = before_[fragment];
  if (before.round != 0 && before.round + 1 == entry.round) {
    entry.seconds = to_seconds(now - before.at);
    entry.waited = to_seconds(training.rested - before.rested);
  }
  before = {entry.round, training.rested, now};
  rounds_.push_front(std::move(entry));
  if (rounds_.size() > node::max_round_entries) rounds_.pop_back();
}

void RoundsStatus::watch(node::Node* node) {
  std::lock_guard lock(watched_->mutex);
  watched_->node = node;
}

std::shared_ptr<const node::Snapshot> RoundsStatus::own_snapshot() const {
  std::lock_guard lock(watched_->mutex);
  return watched_->node == nullptr ? nullptr : watched_->node->snapshot();
}

// The shard in use changes rarely. Its number is the beginning of its hash, because every node counts the
// shards of its own text from 0.
void RoundsStatus::query_shard() {
  const MonotonicTime now = host_.clock().monotonic_now();
  if (now < next_shard_) return;
  next_shard_ = now + shard_period;
  std::lock_guard lock(watched_->mutex);
  if (watched_->node == nullptr) return;
  static_cast<void>(watched_->node->query_data([watched = watched_](const Expected<node::DataView>& data) {
    if (!data.ok()) return;
    std::optional<std::uint32_t> shard;
    for (const node::ShardEntry& entry : data->shards) {
      const auto hash = from_hex(entry.hash);
      if (entry.in_use && hash.ok() && hash->size() >= sizeof(std::uint32_t))
        shard = load_le<std::uint32_t>(hash->data());
    }
    std::lock_guard inner(watched->mutex);
    watched->shard = shard;
  }));
}

void RoundsStatus::count_rounds(const RoundsSeen& seen) {
  for (; contributed_ < seen.contributed; ++contributed_) outcomes_.push_back(true);
  for (; failed_ < seen.failed; ++failed_) outcomes_.push_back(false);
  while (outcomes_.size() > status::rounds_remembered) outcomes_.pop_front();
}

status::OwnStatus RoundsStatus::own_status(const RoundsSeen& seen, const node::Snapshot& own) {
  status::OwnStatus status;
  if (seen.begun) {
    status.round = seen.held_round;
    status.anchor = seen.held_anchor;
    status.previous_anchor = seen.previous_anchor;
    status.contributed = static_cast<std::uint32_t>(seen.contributed);
  }
  status.training = own.state == node::RunState::Training;
  status.steps = own.training.step;
  status.loss = own_loss_.at(status.round, status.steps, own.training.smoothed_loss);
  if (status.training && own.training.last_step)
    status.tokens_per_second = static_cast<std::uint32_t>(
        std::clamp(own.training.last_step->tokens_per_second, 0.0, 4'294'967'295.0));
  status.synced = static_cast<std::uint16_t>(std::count(outcomes_.begin(), outcomes_.end(), true));
  status.missed = static_cast<std::uint16_t>(outcomes_.size() - status.synced);
  std::lock_guard lock(watched_->mutex);
  status.shard = watched_->shard;
  return status;
}

node::GlobalTrainingView RoundsStatus::global(const status::Summary& summary, const RoundsSeen& seen) const {
  node::GlobalTrainingView view;
  view.reports = summary.reports;
  view.wallets = summary.wallets;
  view.training_nodes = summary.training;
  if (summary.loss) view.loss = summary.loss->loss;
  view.least_loss = losses_.least();
  view.tokens_per_second = summary.tokens_per_second;
  view.outer_syncs = summary.round;
  if (seen.begun) {
    view.outer_syncs = seen.round;
    view.tokens = seen.tokens;
    view.steps = view.tokens / batch_tokens_;
  }
  view.data_shards = summary.data_shards;
  view.sync_success = summary.sync_success;
  const status::Trend trend = losses_.trend();
  view.loss_trend = status::to_string(trend);
  if (summary.agreement) {
    view.hash_agreement = summary.agreement->share;
    view.agreement_round = summary.agreement->round;
    view.converging = summary.agreement->share >= 0.5 && trend != status::Trend::Degrading &&
                      trend != status::Trend::InsufficientData;
  }
  const status::LossHistory::Verdict verdict = losses_.verdict();
  view.verified = verdict.verified;
  view.verified_reason = verdict.reason;
  return view;
}

std::vector<node::TrainingNodeEntry> RoundsStatus::node_entries(const status::Summary& summary) const {
  std::vector<node::TrainingNodeEntry> entries;
  const status::StatusTable& table = gossip_.table();
  for (const auto& [id, report] : table.all()) {
    const status::OwnStatus& reported = report.status;
    node::TrainingNodeEntry entry;
    entry.id = to_hex(id);
    if (report.delegation) entry.wallet = crypto::wallet_id(report.delegation->wallet_key);
    entry.mine = id == host_.id();
    entry.counts = table.members().empty() || table.is_member(id);
    entry.training = reported.training;
    entry.round = reported.round;
    if (reported.anchor != Hash256{}) entry.anchor = to_hex(reported.anchor);
    if (summary.agreement) {
      const auto compared = summary.agreement->agrees.find(id);
      if (compared != summary.agreement->agrees.end()) entry.agrees = compared->second;
    }
    entry.loss = reported.loss;
    entry.tokens_per_second = reported.tokens_per_second;
    entry.steps = reported.steps;
    entry.contributed = reported.contributed;
    entry.synced = reported.synced;
    entry.missed = reported.missed;
    entry.shard = reported.shard;
    entry.at = report.made;
    entries.push_back(std::move(entry));
  }
  std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return a.mine != b.mine ? a.mine : a.counts && !b.counts;
  });
  return entries;
}

// Payloads to and from every other member. Votes and blocks are not counted.
status::LineNeed RoundsStatus::line_need(const RoundsSeen& seen, const node::Snapshot* own) const {
  status::LineNeed need;
  const net::LineSpeed* line = host_.line();
  if (!seen.begun || own == nullptr || !own->training.last_step || line == nullptr || seen.exchanging < 2)
    return need;
  need.bytes = (seen.exchanging - 1) * outer::max_payload_bytes(codec_, seen.values);
  const std::uint64_t up = line->at_most(net::LineWay::Up), down = line->at_most(net::LineWay::Down);
  need.line = up == 0 || down == 0 ? std::max(up, down) : std::min(up, down);
  const node::StepView& step = *own->training.last_step;
  need.training_seconds =
      static_cast<double>(inner_steps_) * (step.data_seconds + step.compute_seconds + step.optimizer_seconds);
  return need;
}

std::vector<node::Alert> RoundsStatus::find_alerts(const status::Summary& summary,
                                                   const node::RoundsView& view, const RoundsSeen& seen) {
  const MonotonicTime now = host_.clock().monotonic_now();
  if (view.corruptions > corruptions_) {
    corruptions_ = view.corruptions;
    corrupted_at_ = now;
  }
  status::OwnRounds own{host_.id(), 0, 0, view.left_out_reason, view.trouble, 0, {}, need_, {}, 0, false};
  own.synced = static_cast<std::size_t>(std::count(outcomes_.begin(), outcomes_.end(), true));
  own.missed = outcomes_.size() - own.synced;
  if (corrupted_at_ && now - *corrupted_at_ < repair_alert_period) own.repairs = corruptions_;
  own.standstill = seen.standstill;
  if (seen.voucher_awaited) own.voucher_awaited_seconds = to_seconds(*seen.voucher_awaited);
  own.other_histories = seen.others;
  own.asks_succession = seen.asks_succession;
  std::vector<node::Alert> alerts;
  for (status::Warning& warning : status::warnings_of(summary, own))
    alerts.push_back({std::move(warning.key), node::Severity::Warning, std::move(warning.text), {}});
  return alerts;
}

void RoundsStatus::complete(node::RoundsView& view, const node::Snapshot* own) const {
  const auto newest = std::find_if(rounds_.begin(), rounds_.end(),
                                   [&](const node::RoundEntry& entry) { return entry.round == view.round; });
  if (newest != rounds_.end()) view.too_few_to_vote = newest->too_few_to_vote;
  const bool training = own != nullptr && own->state == node::RunState::Training && own->training.last_step;
  if (!training || !view.member || view.steps >= view.inner_steps) return;
  const node::StepView& step = *own->training.last_step;
  view.seconds_left = (view.inner_steps - view.steps) * (step.data_seconds + step.compute_seconds +
                                                         step.optimizer_seconds + step.waiting_seconds);
}

node::RoundsReport RoundsStatus::report_of(const status::Summary& summary, const RoundsSeen& seen) const {
  node::RoundsReport report;
  report.taking_part = true;
  report.rounds.assign(rounds_.begin(), rounds_.end());
  report.nodes = node_entries(summary);
  for (const status::LossPoint& point : losses_.points()) report.losses.push_back({point.round, point.loss});
  report.refused = seen.refused;
  if (const std::uint64_t bad = gossip_.table().count(status::Taken::Denied); bad > 0)
    report.refused.push_back({std::string(to_string(status::Taken::Denied)), bad});
  node::bound(report);
  return report;
}

void RoundsStatus::update(const RoundsSeen& seen, node::RoundsView& view) {
  const auto own = own_snapshot();
  query_shard();
  gossip_.set_members(seen.members);
  if (seen.begun) count_rounds(seen);
  if (own) gossip_.set_own(own_status(seen, *own));
  const status::Summary summary = status::summarise(gossip_.table(), seen.anchor_of);
  if (seen.begun && view.round > 0 && summary.loss)
    losses_.add({std::min(summary.loss->round, view.round), summary.loss->loss});  // no invented round
  view.global = global(summary, seen);
  complete(view, own.get());
  need_ = line_need(seen, own.get());
  node::RoundsReport report = report_of(summary, seen);
  std::vector<node::Alert> alerts = find_alerts(summary, view, seen);
  std::lock_guard lock(board_->mutex);
  board_->report = std::move(report);
  board_->alerts = std::move(alerts);
}

std::function<void(node::Reply<node::RoundsReport>)> RoundsStatus::report() const {
  return [board = board_](const node::Reply<node::RoundsReport>& reply) {
    node::RoundsReport report;
    {
      std::lock_guard lock(board->mutex);
      report = board->report;
    }
    reply(std::move(report));
  };
}

std::function<std::vector<node::Alert>()> RoundsStatus::alerts() const {
  return [board = board_] {
    std::lock_guard lock(board->mutex);
    return board->alerts;
  };
}

}  // namespace neuroshard::runtime
