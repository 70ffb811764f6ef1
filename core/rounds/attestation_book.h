// The claims of a row's voting holders about its result in the round in progress. The first claim of a voter for a row
// stays; another one for the same row makes the voter contradict itself, and its wallet has no voice for the row.
//
// Threads: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/chain/attestation.h"
#include "core/chain/checks.h"
#include "core/chain/history.h"
#include "core/chain/verdict.h"

namespace neuroshard::rounds {

class AttestationBook {
 public:
  AttestationBook(const chain::ChainRules& rules, chain::SignatureChecks& checks)
      : rules_(rules), checks_(checks) {}

  // The round that begins after this tip's opening block; forgets everything of an earlier one.
  void open(const chain::ChainTip& tip);
  // Cheap checks first, the signature last.
  chain::Verdict take(const chain::Attestation& attestation, const chain::ChainTip& tip);
  // All that was attested about this row.
  std::vector<chain::AttestedRow> attested(std::uint32_t row) const;
  // Rows that this voter has attested.
  std::size_t rows_of(std::uint32_t voter) const;
  // By the claims of the present committee (chain/attestation.h).
  std::optional<chain::RowResult> result(std::uint32_t row, const chain::ChainTip& tip, bool late) const;

 private:
  struct Claim {
    chain::AttestedRow first;
    std::optional<chain::AttestedRow> other;  // that contradicts it
  };
  using Claims = std::map<std::uint32_t, Claim>;  // by row

  const chain::ChainRules& rules_;
  chain::SignatureChecks& checks_;
  Hash256 opening_{};
  std::uint64_t round_ = 0;
  std::map<std::uint32_t, Claims> claims_;  // by voter
};

}  // namespace neuroshard::rounds
