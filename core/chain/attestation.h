// A voter's statement of the results that it computed for the rows that it holds, so that voters without these rows can
// judge them (docs/protocol/chain.md). Bound to the round's opening block; the root of the payloads names the
// contributors. A later attestation of the same voter repeats the earlier one's rows and adds to them.
//
// Canonical bytes; decode checks no signature. Threads: any. Errors: Corrupt.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/chain/row_result.h"
#include "core/crypto/keys.h"

namespace neuroshard::chain {

struct Attestation {
  Hash256 opening{};
  std::uint64_t round = 0;
  std::uint32_t voter = 0;        // number in the registry
  std::vector<RowResult> rows;    // ascending
  crypto::Signature signature{};  // purpose ChainAttestation, by the voter's node key
  friend bool operator==(const Attestation&, const Attestation&) = default;
};
// Signed are opening block, round, voter and results_root() of the rows, so one row can be shown without the others.
// The Merkle root (RFC 6962) over the results as blocks write them.
Hash256 results_root(const std::vector<RowResult>& rows);
// One row's result as its voter attested it, without the other rows of the attestation.
struct AttestedRow {
  Hash256 opening{};
  std::uint64_t round = 0;
  std::uint32_t voter = 0;
  RowResult result;
  std::uint32_t place = 0, rows = 0;  // among the rows of the attestation
  std::vector<Hash256> path;          // from the result to the signed root
  crypto::Signature signature{};
  friend bool operator==(const AttestedRow&, const AttestedRow&) = default;
};
// place < attestation.rows.size().
AttestedRow attested_row(const Attestation& attestation, std::size_t place);
bool attested_row_holds(const AttestedRow& row, const crypto::PublicKey& node, const Hash256& network);
void sign_attestation(Attestation& attestation, const crypto::KeyPair& node, const Hash256& network);
bool attestation_holds(const Attestation& attestation, const crypto::PublicKey& node, const Hash256& network);
Bytes encode_attestation(const Attestation& attestation);
Expected<Attestation> decode_attestation(ByteSpan bytes, std::size_t most_rows);

// From so many wallets that hold a row, more than half of them decide. Of fewer, one that contradicts the others carries
// the row: a wallet that lies can hold the row up, but not change it.
inline constexpr std::size_t many_holders = 5;

// One voter's claim about a row that it holds; null: none so far.
struct HolderClaim {
  std::uint32_t wallet = 0;
  const RowResult* result = nullptr;
};
// The result that a row's voting holders attest. Nothing: not decided yet. late: whoever has said nothing by now is not
// waited for.
std::optional<RowResult> attested_result(std::uint32_t row, const std::vector<HolderClaim>& claims,
                                         bool late);

}  // namespace neuroshard::chain
