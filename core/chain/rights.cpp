#include "core/chain/rights.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <set>
#include <utility>

#include "core/chain/beacon.h"
#include "core/chain/detail/shares.h"

namespace neuroshard::chain {
namespace {

// Per contribution of the section: whether voters with more than half of the units that hold this row have its
// payload for it.
std::vector<bool> held_payloads(const Committee& committee, const CloseSection& close, std::size_t row_index,
                                std::uint32_t row) {
  std::vector<std::uint64_t> units(close.contributions.size(), 0);
  for (const Vector& vector : close.vectors) {
    const auto position = committee.position(vector.voter);
    if (!position || row_index >= vector.payloads.size()) continue;
    const CommitteeMember& voter = committee.members()[*position];
    if (!voter.rows.has(row)) continue;
    const std::uint32_t own = voter.units;
    const Bitmap& payloads = vector.payloads[row_index];
    std::size_t at = 0;  // both lists ascend
    for (std::size_t i = 0; i < vector.members.size() && i < payloads.size(); ++i) {
      while (at < units.size() && close.contributions[at].member < vector.members[i]) ++at;
      if (at == units.size()) break;
      if (close.contributions[at].member == vector.members[i] && payloads.test(i)) units[at] += own;
    }
  }
  const std::uint64_t all = committee.units_holding(row);
  std::vector<bool> held(units.size());
  for (std::size_t i = 0; i < units.size(); ++i) held[i] = 2 * units[i] > all;
  return held;
}

// The state that all rows of a round share.
class RowRights {
 public:
  RowRights(const Registry& registry, const Committee& committee, const CloseSection& close)
      : registry_(registry), committee_(committee), close_(close) {
    for (const Share& share : limited_shares(all_shares(registry), registry, registry.beacon()))
      voting_nodes_.push_back(share.member);
  }

  std::vector<std::uint32_t> contributors(std::size_t row_index, std::uint32_t row) {
    const std::vector<bool> held = held_payloads(committee_, close_, row_index, row);
    std::vector<std::uint32_t> taken;
    std::set<std::uint32_t> voters;  // wallets
    std::vector<const MemberRecord*> candidates;
    for (std::size_t i = 0; i < held.size(); ++i) {
      const ContributionEntry& entry = close_.contributions[i];
      const MemberRecord* member = registry_.find(entry.member);
      if (member == nullptr || !member->rows.has(row) || entry.tokens == 0 || !held[i]) continue;
      if (std::binary_search(voting_nodes_.begin(), voting_nodes_.end(), entry.member)) {
        taken.push_back(entry.member);
        voters.insert(member->wallet);
      } else {
        candidates.push_back(member);
      }
    }
    if (voters.size() < few_voters) {
      std::erase_if(candidates, [&](const MemberRecord* candidate) {
        const bool vouched = registry_.wallet(candidate->wallet)->is_trusted();
        if (vouched) taken.push_back(candidate->number);
        return vouched;
      });
    }
    add_drawn(std::move(candidates), voters.size() / 4, &taken);
    std::sort(taken.begin(), taken.end());
    return taken;
  }

 private:
  void add_drawn(std::vector<const MemberRecord*> candidates, std::size_t room,
                 std::vector<std::uint32_t>* taken) {
    if (room > 0 && candidates.size() > room) {
      if (!beacon_) beacon_ = beacon_after(registry_, committee_, close_);
      std::vector<std::pair<Hash256, const MemberRecord*>> order;
      for (const MemberRecord* candidate : candidates)
        order.emplace_back(lot("candidate", *beacon_, candidate->id), candidate);
      std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
      for (std::size_t i = 0; i < candidates.size(); ++i) candidates[i] = order[i].second;
    }
    for (std::size_t i = 0; i < std::min(room, candidates.size()); ++i)
      taken->push_back(candidates[i]->number);
  }

  const Registry& registry_;
  const Committee& committee_;
  const CloseSection& close_;
  std::vector<std::uint32_t> voting_nodes_;  // ascending
  std::optional<Hash256> beacon_;
};

bool is_trusted_holder(const Registry& registry, std::uint32_t number, std::uint32_t row) {
  const MemberRecord* member = registry.find(number);
  return member != nullptr && member->rows.has(row) && registry.wallet(member->wallet)->is_trusted();
}

bool is_due(const ChainRules& rules, const WalletRecord& wallet, std::size_t voters) {
  if (wallet.voter || wallet.expelled || wallet.counted_tokens == 0 || rules.voters == VotersMode::Founders)
    return false;
  if (rules.voters == VotersMode::Invited && !wallet.is_trusted()) return false;
  if (wallet.is_trusted() && voters < few_voters) return true;
  return wallet.qualifying >= rules.admission_contributions;
}

}  // namespace

// Mostly everybody contributes, so most vectors list the same members.
void VectorTally::add(const Vector& vector, std::uint32_t units) {
  if (vector.members == members_) {
    for (std::uint64_t& sum : units_) sum += units;
    return;
  }
  std::vector<std::uint32_t> members;
  std::vector<std::uint64_t> sums;
  members.reserve(std::max(members_.size(), vector.members.size()));
  sums.reserve(members.capacity());
  const auto take = [&](std::uint32_t member, std::uint64_t sum) {
    members.push_back(member);
    sums.push_back(sum);
  };
  std::size_t at = 0;  // both lists ascend
  for (const std::uint32_t member : vector.members) {
    for (; at < members_.size() && members_[at] < member; ++at) take(members_[at], units_[at]);
    const bool known = at < members_.size() && members_[at] == member;
    take(member, units + (known ? units_[at++] : 0));
  }
  for (; at < members_.size(); ++at) take(members_[at], units_[at]);
  members_ = std::move(members);
  units_ = std::move(sums);
}

std::vector<std::uint32_t> VectorTally::due(const Committee& committee) const {
  std::vector<std::uint32_t> due;
  due.reserve(members_.size());
  for (std::size_t i = 0; i < members_.size(); ++i)
    if (committee.has_honest(units_[i])) due.push_back(members_[i]);
  return due;
}

std::vector<std::uint32_t> due_contributors(const std::vector<Vector>& vectors, const Committee& committee) {
  VectorTally tally;
  for (const Vector& vector : vectors)
    if (const std::uint32_t units = committee.units_of(vector.voter); units > 0) tally.add(vector, units);
  return tally.due(committee);
}

std::vector<std::vector<std::uint32_t>> round_contributors(const ChainRules& rules, const Registry& registry,
                                                           const Committee& committee,
                                                           const CloseSection& close) {
  RowRights rights(registry, committee, close);
  std::vector<std::vector<std::uint32_t>> contributors;
  for (const std::uint32_t row : rules.rows_of(close.round))
    contributors.push_back(rights.contributors(contributors.size(), row));
  return contributors;
}

std::vector<std::uint32_t> counted_contributors(const ChainRules& rules, const Registry& registry,
                                                const Committee& committee, const CloseSection& close) {
  std::vector<std::uint8_t> counts(close.contributions.size(), 0);
  const std::vector<std::uint32_t> rows = rules.rows_of(close.round);
  for (std::size_t row_index = 0; row_index < rows.size(); ++row_index) {
    const std::uint32_t row = rows[row_index];
    const std::vector<bool> held = held_payloads(committee, close, row_index, row);
    const bool nobody = committee.units_holding(row) == 0;
    for (std::size_t i = 0; i < held.size(); ++i)
      if (held[i] || (nobody && is_trusted_holder(registry, close.contributions[i].member, row)))
        counts[i] = 1;
  }
  std::vector<std::uint32_t> counted;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const ContributionEntry& entry = close.contributions[i];
    if (counts[i] != 0 && entry.tokens > 0) counted.push_back(entry.member);
  }
  return counted;
}

Hash256 beacon_after(const Registry& registry, const Committee& committee, const CloseSection& close) {
  std::vector<Reveal> reveals;
  for (const ContributionEntry& entry : close.contributions) {
    if (const auto at = committee.position(entry.member))
      reveals.push_back({committee.members()[*at].id, entry.reveal});
  }
  std::sort(reveals.begin(), reveals.end(), [](const Reveal& a, const Reveal& b) { return a.id < b.id; });
  return next_beacon(registry.beacon(), close.round, reveals);
}

std::uint64_t most_row_tokens(const ChainRules& rules, const Registry& registry, std::uint32_t row,
                              std::uint64_t round) {
  if (row >= registry.rows().size()) return 0;
  const std::uint64_t changed = registry.rows()[row].changed_round;
  const std::uint64_t rounds = round > changed ? round - changed : 0;
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  if (rounds > 0 && rules.most_tokens > most / rounds) return most;
  return rounds * rules.most_tokens;
}

std::optional<double> most_row_norm(const ChainRules& rules, const Registry& registry, std::uint32_t row,
                                    std::uint64_t round) {
  if (row >= registry.rows().size()) return std::nullopt;
  const RowRecord& record = registry.rows()[row];
  std::array<double, std::tuple_size_v<decltype(record.norm_bits)>> norms{};
  for (std::size_t i = 0; i < norms.size(); ++i) {
    if (record.norm_bits[i] == 0) return std::nullopt;
    norms[i] = std::bit_cast<double>(record.norm_bits[i]);
  }
  std::sort(norms.begin(), norms.end());
  const std::uint64_t rounds = round > record.changed_round ? round - record.changed_round : 0;
  const std::uint64_t turns = std::max<std::uint64_t>(rounds / rules.fragments, 1);
  return std::min(2 * norms[(norms.size() - 1) / 2] * static_cast<double>(turns),
                  std::numeric_limits<double>::max());
}

std::vector<std::uint32_t> due_admissions(const ChainRules& rules, const Registry& registry) {
  struct Due {
    bool trusted;
    std::uint64_t tokens;
    Hash256 draw;
    std::uint32_t wallet;
  };
  const std::size_t voters = registry.voter_count();
  std::vector<Due> due;
  for (const WalletRecord& wallet : registry.wallets()) {
    if (!is_due(rules, wallet, voters)) continue;
    due.push_back({wallet.is_trusted(), wallet.counted_tokens,
                   lot("admission", registry.beacon(), crypto::node_id(wallet.key)), wallet.number});
  }
  std::sort(due.begin(), due.end(), [](const Due& a, const Due& b) {
    if (a.trusted != b.trusted) return a.trusted;
    if (a.tokens != b.tokens) return a.tokens > b.tokens;
    return a.draw < b.draw;
  });
  std::vector<std::uint32_t> admitted;
  for (std::size_t i = 0; i < std::min(due.size(), most_admissions(voters)); ++i)
    admitted.push_back(due[i].wallet);
  return admitted;
}

AdmissionProgress admission_progress(const ChainRules& rules, const Registry& registry,
                                     const WalletRecord& wallet) {
  AdmissionProgress progress;
  progress.needed = rules.admission_contributions;
  progress.contributions = std::min(wallet.qualifying, progress.needed);
  if (wallet.is_trusted() && registry.voter_count() < few_voters) {
    progress.needed = 1;
    progress.contributions = wallet.counted_tokens > 0 ? 1 : 0;
  }
  progress.needs_voucher = rules.voters == VotersMode::Invited && !wallet.is_trusted();
  progress.can_vote_ever = !wallet.expelled && (wallet.voter || rules.voters != VotersMode::Founders);
  return progress;
}

}  // namespace neuroshard::chain
