#include "core/runtime/round_entries.h"

#include <algorithm>

namespace neuroshard::runtime {
namespace {

constexpr std::size_t entries_waiting = 64;

std::uint64_t claimed_tokens(const chain::ClosedRound& closed, std::uint32_t member) {
  for (const chain::ContributionEntry& one : closed.contributions)
    if (one.member == member) return one.tokens;
  return 0;
}

}  // namespace

RoundEntries::RoundEntries(const net::NodeId& self, std::uint64_t batch_tokens)
    : self_(self), batch_tokens_(std::max<std::uint64_t>(batch_tokens, 1)) {}

void RoundEntries::on_block(const chain::ChainTip& before, const chain::ChainTip& tip,
                            const chain::Block& block) {
  if (!block.body.result || !before.registry->closed()) return;
  const auto& contributors = before.registry->closed()->contributors;
  for (std::size_t i = 0; i < block.body.result->rows.size(); ++i) {
    const chain::RowResult& row = block.body.result->rows[i];
    if (row.carried) continue;
    newest_[row.row] = static_cast<std::uint32_t>(contributors[i].size());
    waiting_[{block.body.result->round, row.row}] = entry_of(before, tip, row, contributors[i]);
  }
  while (waiting_.size() > entries_waiting) waiting_.erase(waiting_.begin());
}

node::RoundEntry RoundEntries::entry_of(const chain::ChainTip& before, const chain::ChainTip& tip,
                                        const chain::RowResult& row,
                                        const std::vector<std::uint32_t>& counted) const {
  node::RoundEntry entry;
  entry.round = tip.registry->round();
  entry.anchor = to_hex(row.anchor);
  entry.contributors = static_cast<std::uint32_t>(counted.size());
  entry.too_few_to_vote = counted.size() >= 2 && counted.size() <= 4;
  for (const chain::WalletRecord& wallet : tip.registry->wallets()) entry.tokens += wallet.counted_tokens;
  for (const chain::MemberRecord& member : before.registry->members()) {
    const bool in = std::binary_search(counted.begin(), counted.end(), member.number);
    if (!in && member.presence != chain::Presence::Active) continue;
    ++entry.members;
    node::RoundMemberEntry one{to_hex(member.id), member.id == self_, in, 0, 0, std::nullopt, {}};
    one.tokens = claimed_tokens(*before.registry->closed(), member.number);
    one.steps = static_cast<std::uint32_t>(one.tokens / batch_tokens_);
    if (!in) one.note = one.tokens > 0 ? "a candidate, or late with its work" : "nothing contributed";
    entry.who.push_back(std::move(one));
  }
  std::stable_partition(entry.who.begin(), entry.who.end(),
                        [](const node::RoundMemberEntry& one) { return one.contributed; });
  return entry;
}

std::optional<node::RoundEntry> RoundEntries::take(std::uint32_t row, std::uint64_t round) {
  const auto found = waiting_.find({round, row});
  if (found == waiting_.end()) return std::nullopt;
  node::RoundEntry entry = std::move(found->second);
  waiting_.erase(found);
  return entry;
}

std::uint32_t RoundEntries::contributors() const {
  std::uint32_t least = 0;
  for (const auto& [row, contributors] : newest_)
    least = least == 0 ? contributors : std::min(least, contributors);
  return least;
}

}  // namespace neuroshard::runtime
