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
    news |= claim == known->second.end() || (!(claim->second.first.result == result) && !claim->second.other);
  }
  if (known != claims_.end() && !news) return chain::Verdict::Known;
  if (!checks_.attestation(attestation, voter.key, rules_.network)) return chain::Verdict::BadSignature;
  Claims& claims = claims_[attestation.voter];
  for (std::size_t place = 0; place < attestation.rows.size(); ++place) {
    const chain::RowResult& result = attestation.rows[place];
    const auto claim = claims.find(result.row);
    if (claim == claims.end())
      claims.emplace(result.row, Claim{chain::attested_row(attestation, place), std::nullopt});
    else if (!(claim->second.first.result == result) && !claim->second.other)
      claim->second.other = chain::attested_row(attestation, place);
  }
  return chain::Verdict::Taken;
}

std::vector<chain::AttestedRow> AttestationBook::attested(std::uint32_t row) const {
  std::vector<chain::AttestedRow> all;
  for (const auto& [voter, claims] : claims_) {
    const auto claim = claims.find(row);
    if (claim == claims.end()) continue;
    all.push_back(claim->second.first);
    if (claim->second.other) all.push_back(*claim->second.other);
  }
  return all;
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
    claims.push_back({wallet, &claim->second.first.result});
    if (claim->second.other) claims.push_back({wallet, &claim->second.other->result});
  }
  return chain::attested_result(row, claims, late);
}

}  // namespace neuroshard::rounds
