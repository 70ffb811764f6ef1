#include "core/runtime/round_entries.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/runtime/standing.h"

namespace neuroshard::runtime {
namespace {

constexpr std::size_t entries_waiting = 64;

const chain::ContributionEntry* contribution_of(const chain::ClosedRound& closed, std::uint32_t member) {
  for (const chain::ContributionEntry& one : closed.contributions)
    if (one.member == member) return &one;
  return nullptr;
}

// The reason that a member's work is not in a row.
std::string absence(const std::string& standing, const chain::ContributionEntry* contribution) {
  if (contribution == nullptr) return "late: its work was not there when the round was closed";
  if (standing == "candidate") return "a candidate: its work counts for its vote, not for these weights";
  return "late: too few members had its work when the round was closed";
}

std::string rule_text(const outer::AggregateReport& step) {
  const outer::RuleChoice& ran = step.ran;
  std::string text;
  if (step.clipped_to) text += ran.clip_to_median_norm ? "clip, " : "clip by earlier rounds, ";
  if (ran.nearest_neighbour_mixing) text += "nearest-neighbour mixing, ";
  return text + std::string(to_string(ran.rule));
}

void judge(const outer::AggregateReport& step, node::RoundMemberEntry& entry) {
  const auto& judged = step.judged;
  const auto at = std::find_if(judged.begin(), judged.end(),
                               [&](const outer::Judged& one) { return to_hex(one.id) == entry.id; });
  if (at == judged.end()) return;
  entry.share = at->share;
  if (at->refusal != outer::Refusal::None)
    entry.note = fmt::format("left out: {}", outer::to_string(at->refusal));
  else if (at->share == 0)
    entry.note = "left out by the rule";
  else if (at->clip_factor < 1)
    entry.note = fmt::format("clipped to {:.0f} %", 100 * at->clip_factor);
}

}  // namespace

RoundEntries::RoundEntries(const net::NodeId& self, std::uint64_t batch_tokens, bool has_parts)
    : self_(self), batch_tokens_(std::max<std::uint64_t>(batch_tokens, 1)), has_parts_(has_parts) {}

void RoundEntries::on_block(const chain::ChainTip& before, const chain::ChainTip& tip,
                            const chain::Block& block) {
  if (!block.body.result || !before.registry->closed()) return;
  const auto& contributors = before.registry->closed()->contributors;
  for (std::size_t i = 0; i < block.body.result->rows.size(); ++i) {
    const chain::RowResult& row = block.body.result->rows[i];
    if (row.carried) continue;
    newest_[row.row] = contributors[i];
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
    if (!member.rows.has(row.row)) continue;
    if (!in && member.id != self_ && !is_shown(*before.registry, member)) continue;
    ++entry.members;
    const chain::ContributionEntry* given = contribution_of(*before.registry->closed(), member.number);
    node::RoundMemberEntry one{to_hex(member.id), member.id == self_, in, 0, 0, std::nullopt, {}, {}};
    one.tokens = given == nullptr ? 0 : given->tokens;
    one.steps = static_cast<std::uint32_t>(one.tokens / batch_tokens_);
    one.standing = standing_of(*before.registry, member);
    if (!in) one.note = absence(one.standing, given);
    entry.who.push_back(std::move(one));
  }
  std::stable_partition(entry.who.begin(), entry.who.end(),
                        [](const node::RoundMemberEntry& one) { return one.contributed; });
  return entry;
}

std::optional<node::RoundEntry> RoundEntries::take(std::uint32_t row, std::uint64_t round,
                                                   const outer::AggregateReport* step) {
  const auto found = waiting_.find({round, row});
  if (found == waiting_.end()) return std::nullopt;
  node::RoundEntry entry = std::move(found->second);
  waiting_.erase(found);
  entry.fetched = step == nullptr;
  if (step == nullptr) return entry;
  entry.rule = rule_text(*step);
  entry.too_few_to_vote = step->too_few_to_vote;
  for (node::RoundMemberEntry& one : entry.who)
    if (one.contributed) judge(*step, one);
  return entry;
}

std::uint32_t RoundEntries::contributors() const {
  std::set<std::uint32_t> all;
  std::size_t least = 0;
  for (const auto& [row, contributors] : newest_) {
    all.insert(contributors.begin(), contributors.end());
    least = least == 0 ? contributors.size() : std::min(least, contributors.size());
  }
  return static_cast<std::uint32_t>(has_parts_ ? all.size() : least);
}

}  // namespace neuroshard::runtime
