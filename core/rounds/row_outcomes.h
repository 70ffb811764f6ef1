// The result of each row of a closed round, by this node's own computation and by the attestations of the row's
// holders: proposed where this node leads, and compared with what others propose.
//
// All that it is made with outlives it. Threads: one.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/rounds/attestation_book.h"
#include "core/rounds/closed_rows.h"

namespace neuroshard::rounds {

class RowOutcomes {
 public:
  enum class Finding : std::uint8_t { Wait, Right, Wrong };
  using IsLate = std::function<bool(std::uint32_t row)>;
  // held: the rows of this node. is_late: whether a row that is not ready by now is carried.
  RowOutcomes(const chain::ChainRules& rules, chain::SignatureChecks& checks, const ClosedRows& computed,
              chain::RowSet held, IsLate is_late);

  // The round that begins after this tip's opening block. Where it changes the size of the model, and a row is taken back
  // later, all rows are carried.
  void open(const chain::ChainTip& tip);
  const AttestationBook& attestations() const { return attestations_; }
  // An attestation as its voter sent it.
  chain::Verdict take(ByteSpan bytes, const chain::ChainTip& tip);
  // This voter's attestation once it computed a row that it has not attested yet; it is taken and to be sent. tip: with a
  // closed round, as below.
  std::optional<chain::Attestation> attest(const chain::ChainTip& tip, const crypto::KeyPair& key);
  // Nothing: a row is not known yet.
  std::optional<chain::ResultSection> section(const chain::ChainTip& tip) const;
  // binding: a row that is carried needlessly makes it wrong.
  Finding examine(const chain::ChainTip& tip, const chain::ResultSection& result, bool binding) const;

 private:
  std::optional<chain::RowResult> outcome(const chain::ChainTip& tip, std::size_t row_index,
                                          std::uint32_t row) const;
  Finding examine_unchanged(const chain::ChainTip& tip, const chain::ResultSection& result) const;
  bool is_taken_back(const chain::ChainTip& tip, std::uint32_t row) const;

  const chain::ChainRules& rules_;
  const ClosedRows& computed_;
  const chain::RowSet held_;
  const IsLate is_late_;
  AttestationBook attestations_;
  std::vector<chain::RowRecord> opened_;  // the rows with which the round began
};

}  // namespace neuroshard::rounds
