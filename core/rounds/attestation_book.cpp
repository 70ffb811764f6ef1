#include "core/rounds/attestation_book.h"

#include <algorithm>
#include <vector>

namespace neuroshard::rounds {

void AttestationBook::open(const chain::ChainTip& tip) {
  opening_ = tip.opening;
  round_ = tip.registry->round() + 1;
  claims_.clear();
}

chain::Verdict AttestationBook::take(const chain::Attestation& attestation, const chain::ChainTip& tip) {
  if (attestation.round != round_)
    return attestation.round < round_ ? chain::Verdict::Past : chain::Verdict::Later;
  if (attestation.opening != opening_) return chain::Verdict::OtherHistory;
  const auto position = tip.committee->position(attestation.voter);
  if (!position) return chain::Verdict::NotMember;
  const chain::CommitteeMember& voter = tip.committee->members()[*position];
  const std::vector<std::uint32_t> rows = voter.rows.among(rules_.rows_of(round_));
  const auto known = claims_.find(attestation.voter);
  bool news = false;
  for (const chain::RowResult& result : attestation.rows) {
    if (!std::binary_search(rows.begin(), rows.end(), result.row)) return chain::Verdict::Inadmissible;
    if (known == claims_.end()) continue;
    const auto claim = known->second.find(result.row);
    news |= claim == known->second.end() || (!(claim->second.first == result) && !claim->second.other);
  }
  if (known != claims_.end() && !news) return chain::Verdict::Known;
  if (!checks_.attestation(attestation, voter.key, rules_.network)) return chain::Verdict::BadSignature;
  Claims& claims = claims_[attestation.voter];
  for (const chain::RowResult& result : attestation.rows) {
    const auto [claim, fresh] = claims.emplace(result.row, Claim{result, std::nullopt});
    if (!fresh && !(claim->second.first == result)) claim->second.other = result;
  }
  return chain::Verdict::Taken;
}

std::size_t AttestationBook::rows_of(std::uint32_t voter) const {
  const auto known = claims_.find(voter);
  return known == claims_.end() ? 0 : known->second.size();
}

std::optional<chain::RowResult> AttestationBook::result(std::uint32_t row, const chain::ChainTip& tip,
                                                        bool late) const {
  std::vector<chain::HolderClaim> claims;
  for (const chain::CommitteeMember& voter : tip.committee->members()) {
    if (!voter.rows.has(row)) continue;
    const std::uint32_t wallet = tip.registry->find(voter.number)->wallet;
    claims.push_back({wallet, nullptr});
    const auto known = claims_.find(voter.number);
    if (known == claims_.end()) continue;
    const auto claim = known->second.find(row);
    if (claim == known->second.end()) continue;
    claims.push_back({wallet, &claim->second.first});
    if (claim->second.other) claims.push_back({wallet, &*claim->second.other});
  }
  return chain::attested_result(row, claims, late);
}

}  // namespace neuroshard::rounds
