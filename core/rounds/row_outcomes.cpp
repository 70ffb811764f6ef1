#include "core/rounds/row_outcomes.h"

#include <algorithm>
#include <utility>

namespace neuroshard::rounds {
namespace {

std::uint64_t round_of(const chain::ChainTip& tip) {
  return tip.registry->round() + 1;
}

// Its result is carried whatever anybody computed.
bool has_nothing(const chain::ChainTip& tip, std::size_t row_index) {
  return tip.registry->closed()->contributors[row_index].empty() && !tip.registry->size().changing;
}

// A size changes in all rows or in none.
chain::ResultSection whole(const chain::ChainTip& tip, chain::ResultSection result) {
  const auto is_carried = [](const chain::RowResult& row) { return row.carried; };
  if (!tip.registry->size().changing || std::none_of(result.rows.begin(), result.rows.end(), is_carried))
    return result;
  for (chain::RowResult& row : result.rows) row = chain::carried_row(row.row);
  return result;
}

}  // namespace

RowOutcomes::RowOutcomes(const chain::ChainRules& rules, chain::SignatureChecks& checks,
                         const ClosedRows& computed, chain::RowSet held, IsLate is_late)
    : rules_(rules),
      computed_(computed),
      held_(std::move(held)),
      is_late_(std::move(is_late)),
      attestations_(rules, checks) {}

void RowOutcomes::open(const chain::ChainTip& tip) {
  attestations_.open(tip);
  opened_ = tip.registry->rows();
}

// An attestation does not say from which anchor the other size was made.
bool RowOutcomes::is_taken_back(const chain::ChainTip& tip, std::uint32_t row) const {
  return tip.registry->size().changing && tip.registry->rows()[row].anchor != opened_[row].anchor;
}

chain::Verdict RowOutcomes::take(ByteSpan bytes, const chain::ChainTip& tip) {
  if (!rules_.has_holders()) return chain::Verdict::Inadmissible;
  const auto attestation = chain::decode_attestation(bytes, rules_.rows);
  return attestation.ok() ? attestations_.take(*attestation, tip) : chain::Verdict::Malformed;
}

// Computed again after a restart, the results are the same: nothing of it needs to be on the disk.
std::optional<chain::Attestation> RowOutcomes::attest(const chain::ChainTip& tip,
                                                      const crypto::KeyPair& key) {
  const auto position = tip.committee->position(crypto::node_id(key.public_key()));
  if (!rules_.has_holders() || !position) return std::nullopt;
  const chain::CommitteeMember& self = tip.committee->members()[*position];
  chain::Attestation attestation;
  attestation.voter = self.number;
  attestation.opening = tip.opening;
  attestation.round = round_of(tip);
  const std::vector<std::uint32_t> rows = rules_.rows_of(attestation.round);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    // A node that came back for other rows is still registered with its former ones.
    if (!held_.has(rows[i]) || !self.rows.has(rows[i])) continue;
    if (has_nothing(tip, i)) continue;
    if (auto result = computed_.result(tip, i, rows[i])) attestation.rows.push_back(std::move(*result));
  }
  if (attestation.rows.size() <= attestations_.rows_of(attestation.voter)) return std::nullopt;
  chain::sign_attestation(attestation, key, rules_.network);
  if (attestations_.take(attestation, tip) != chain::Verdict::Taken) return std::nullopt;
  return attestation;
}

// Where a row's holders attest another result than this node computed, this node makes and votes for none.
std::optional<chain::RowResult> RowOutcomes::outcome(const chain::ChainTip& tip, std::size_t row_index,
                                                     std::uint32_t row) const {
  auto own = held_.has(row) ? computed_.result(tip, row_index, row) : std::nullopt;
  if (!rules_.has_holders()) return own;
  if (has_nothing(tip, row_index) || is_taken_back(tip, row)) return chain::carried_row(row);
  auto attested = attestations_.result(row, tip, is_late_(row));
  return own && attested && !(*own == *attested) ? chain::carried_row(row) : attested;
}

std::optional<chain::ResultSection> RowOutcomes::section(const chain::ChainTip& tip) const {
  if (!tip.registry->closed()) return std::nullopt;
  chain::ResultSection result;
  result.round = round_of(tip);
  const std::vector<std::uint32_t> rows = rules_.rows_of(result.round);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool late = is_late_(rows[i]);
    if (auto made = outcome(tip, i, rows[i]))
      result.rows.push_back(std::move(*made));
    else if (late)
      result.rows.push_back(chain::carried_row(rows[i]));
    else
      return std::nullopt;
  }
  return whole(tip, std::move(result));
}

// All rows are carried because of one: there has to be one.
RowOutcomes::Finding RowOutcomes::examine_unchanged(const chain::ChainTip& tip,
                                                    const chain::ResultSection& result) const {
  bool known = true;
  for (std::size_t i = 0; i < result.rows.size(); ++i) {
    const auto right = outcome(tip, i, result.rows[i].row);
    if (right ? right->carried : is_late_(result.rows[i].row)) return Finding::Right;
    known = known && right.has_value();
  }
  return known ? Finding::Wrong : Finding::Wait;
}

RowOutcomes::Finding RowOutcomes::examine(const chain::ChainTip& tip, const chain::ResultSection& result,
                                          bool binding) const {
  if (tip.registry->size().changing && result.rows.front().carried)
    return binding ? examine_unchanged(tip, result) : Finding::Right;
  for (std::size_t i = 0; i < result.rows.size(); ++i) {
    const chain::RowResult& row = result.rows[i];
    const bool late = is_late_(row.row);
    const auto right = outcome(tip, i, row.row);
    if (row.carried) {
      if (!binding || (right && right->carried)) continue;
      if (right) return Finding::Wrong;
      if (!late) return Finding::Wait;
    } else {
      if (!right) return Finding::Wait;
      if (!(*right == row)) return Finding::Wrong;
    }
  }
  return Finding::Right;
}

}  // namespace neuroshard::rounds
