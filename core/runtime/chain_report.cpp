#include "core/runtime/chain_report.h"

#include <numeric>

namespace neuroshard::runtime {
namespace {

constexpr std::size_t rounds_remembered = 64;

std::size_t more_than_two_thirds(std::size_t members) {
  return 2 * members / 3 + 1;
}

std::string phase(const ChainMoment& now) {
  if (!now.registry) return "joining";
  if (!now.training.holds) return "fetching the anchor";
  if (now.training.provisional || now.chain.stalled) return "training alone until the others are back";
  if (now.registry->closed())
    return now.resting ? "agreeing on the round" : "training on while the members agree on the round";
  if (now.training.contributed)
    return now.resting ? "waiting for the other members" : "training on while the others finish the round";
  return "training";
}

}  // namespace

ChainReport::ChainReport(const std::vector<std::uint64_t>& row_values)
    : anchors_(row_values.size()),
      values_(std::accumulate(row_values.begin(), row_values.end(), std::uint64_t{0})) {}

void ChainReport::on_tip(const chain::ChainTip& tip) {
  const std::vector<chain::RowRecord>& rows = tip.registry->rows();
  for (std::size_t row = 0; row < rows.size(); ++row)
    anchors_.add(row, tip.registry->round(), rows[row].anchor);
}

void ChainReport::on_anchor(const std::string& what, const rounds::TrainingView& training) {
  was_fetched_ = training.fetched_anchors > fetched_;
  fetched_ = training.fetched_anchors;
  if (training.left_out > left_out_) left_out_reason_ = what + " was closed without this node's work";
  left_out_ = training.left_out;
}

void ChainReport::fill(node::RoundsView& view, const ChainMoment& now) {
  view.phase = phase(now);
  view.certified = now.training.rounds;
  view.contributed = now.training.counted;
  view.left_out = now.training.left_out;
  view.left_out_reason = left_out_reason_;
  view.fetched = now.training.fetched_anchors;
  view.bytes_sent = now.chain.bytes_sent;
  view.bytes_received = now.training.bytes_received;
  if (now.chain.failed_saves > 0 && view.trouble.empty())
    view.trouble = "the chain can't be written to the disk: free some space, or look at the log";
  if (!now.registry) return;
  view.round = now.registry->round();
  view.agrees = now.training.holds;
  if (const auto anchor = anchors_.of_all(view.round)) {
    view.anchor = to_hex(*anchor);
    if (view.agrees) held_[view.round] = *anchor;
  }
  while (held_.size() > rounds_remembered) held_.erase(held_.begin());
  view.member = now.chain.member && now.chain.active;
  for (const chain::MemberRecord& member : now.registry->members())
    if (member.presence == chain::Presence::Active) ++view.members;
}

RoundsSeen ChainReport::seen(const ChainMoment& now) const {
  RoundsSeen seen;
  for (const auto& [verdict, count] : now.training.refused)
    seen.refused.push_back({std::string(chain::to_string(verdict)), count});
  seen.anchor_of = [this](std::uint64_t round) { return anchors_.of_all(round); };
  if (!now.registry) return seen;
  seen.begun = true;
  seen.round = now.registry->round();
  for (const chain::WalletRecord& wallet : now.registry->wallets()) seen.tokens += wallet.counted_tokens;
  for (const chain::MemberRecord& member : now.registry->members())
    if (member.presence == chain::Presence::Active) seen.members.insert(member.id);
  seen.contributed = now.training.counted;
  seen.failed = now.training.left_out;
  if (!held_.empty()) {
    const auto& [round, anchor] = *held_.rbegin();
    seen.held_round = round;
    if (round > 0) seen.held_anchor = anchor;
    if (const auto before = held_.find(round - 1); before != held_.end() && round > 1)
      seen.previous_anchor = before->second;
  }
  seen.exchanging = seen.members.size();
  seen.values = values_;
  if ((now.training.provisional || now.chain.stalled) && now.chain.voter)
    seen.standstill = status::Standstill{seen.round + 1, now.chain.committee,
                                         more_than_two_thirds(now.chain.committee), now.chain.missing};
  return seen;
}

}  // namespace neuroshard::runtime
