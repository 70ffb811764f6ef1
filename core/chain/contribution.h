// A member's contribution to a round, and a voter's vector of what it received (docs/protocol/chain.md).
// Both bind to the round's opening block, so neither is valid in another history. Payloads travel apart.
//
// Canonical bytes; decode checks no signature. Threads: any. Errors: Corrupt.
#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/crypto/keys.h"

namespace neuroshard::chain {

// A contribution's part in one row. The Merkle root of a payload is over slices of 64 KiB. Each leaf has the
// contributor's node id, so a copy of another member's payload has another root.
struct RowWork {
  std::uint32_t row = 0;
  std::uint64_t tokens = 0;
  std::uint64_t payload_bytes = 0;
  Hash256 payload{};
  friend bool operator==(const RowWork&, const RowWork&) = default;
};
inline constexpr std::size_t row_work_bytes = 4 + 8 + 8 + 32;

// A contribution as a block carries it: all that its signature covers, the rows as their root.
struct ContributionEntry {
  std::uint32_t member = 0;  // number in the registry; not signed, the key is
  std::uint64_t tokens = 0;  // the most of a row
  Hash256 work{};            // Merkle root over the encoded RowWork of all rows, ascending
  Hash256 batches{};         // hash of the signed batch record; zeros: none
  Hash256 reveal{};          // beacon: the hash chain's value of this round
  crypto::Signature signature{};
  friend bool operator==(const ContributionEntry&, const ContributionEntry&) = default;
};
inline constexpr std::size_t contribution_entry_bytes = 4 + 8 + 32 + 32 + 32 + 64;

struct Contribution {
  Hash256 opening{};  // hash of the round's opening block
  std::uint64_t round = 0;
  crypto::PublicKey node{};
  std::vector<RowWork> rows;  // ascending; those of the round only
  Hash256 batches{};
  Hash256 reveal{};
  crypto::Signature signature{};  // purpose ChainContribution
  friend bool operator==(const Contribution&, const Contribution&) = default;
};
// Signed are opening block, round, node key, tokens_of() the rows, their work_root(), batches and reveal.
Hash256 work_root(const std::vector<RowWork>& rows);
std::uint64_t tokens_of(const std::vector<RowWork>& rows);
void sign_contribution(Contribution& contribution, const crypto::KeyPair& node, const Hash256& network);
bool contribution_holds(const Contribution& contribution, const Hash256& network);
// The same signature, checked from what a block carries.
bool entry_holds(const ContributionEntry& entry, const Hash256& opening, std::uint64_t round,
                 const crypto::PublicKey& node, const Hash256& network);
ContributionEntry entry_of(const Contribution& contribution, std::uint32_t member);
// The id that vectors commit to: equal for entry and contribution; another signature is another id.
Hash256 contribution_id(const ContributionEntry& entry);
Bytes encode_contribution(const Contribution& contribution);
Expected<Contribution> decode_contribution(ByteSpan bytes, std::size_t most_rows);

// One bit per position; the last byte's unused bits are zero.
class Bitmap {
 public:
  Bitmap() = default;
  explicit Bitmap(std::size_t bits) : bits_(bits), bytes_((bits + 7) / 8) {}
  static Bitmap of_ones(std::size_t bits);
  std::size_t size() const { return bits_; }
  bool test(std::size_t bit) const { return (bytes_[bit / 8] >> (bit % 8) & 1u) != 0; }
  void set(std::size_t bit) { bytes_[bit / 8] |= static_cast<std::uint8_t>(1u << (bit % 8)); }
  std::size_t count() const;
  const Bytes& bytes() const { return bytes_; }
  // Corrupt: wrong length, or unused bits that are set.
  static Expected<Bitmap> from_bytes(std::size_t bits, ByteSpan bytes);
  friend bool operator==(const Bitmap&, const Bitmap&) = default;

 private:
  std::size_t bits_ = 0;
  Bytes bytes_;
};

// A row's result in an earlier round.
struct RowRound {
  std::uint32_t row = 0;
  std::uint64_t round = 0;
  auto place() const { return std::tie(row, round); }
  friend bool operator==(const RowRound&, const RowRound&) = default;
};

inline constexpr std::size_t most_withheld = 2'048;  // of one vector: of all rows in two rounds

// A committee member's signed list of the contributions and payloads that it has, one per round.
struct Vector {
  Hash256 opening{};
  std::uint64_t round = 0;
  std::uint32_t voter = 0;             // number in the registry
  std::vector<std::uint32_t> members;  // whose contribution it has; numbers, ascending
  Hash256 contributions{};             // Merkle root over their contribution_id, in that order
  std::vector<Bitmap> payloads;        // per row of the round: bit i = has the payload of members[i]
  // Ascending by row and round: results that it was drawn to check, whose holders give it not all that they were made of
  // (open_row.h).
  std::vector<RowRound> withheld;
  crypto::Signature signature{};  // purpose ChainVector, by the voter's node key
  friend bool operator==(const Vector&, const Vector&) = default;
};
Hash256 contributions_root(const std::vector<Hash256>& ids);
// The fields that a vector's signature covers, with its lists as their hash, so that evidence stays small.
struct VectorClaim {
  Hash256 opening{};
  std::uint64_t round = 0;
  std::uint32_t voter = 0;
  Hash256 content{};  // hash of members, contributions, payloads and what is withheld
  crypto::Signature signature{};
  friend bool operator==(const VectorClaim&, const VectorClaim&) = default;
};
VectorClaim claim_of(const Vector& vector);
bool claim_holds(const VectorClaim& claim, const crypto::PublicKey& node, const Hash256& network);
void sign_vector(Vector& vector, const crypto::KeyPair& node, const Hash256& network);
bool vector_holds(const Vector& vector, const crypto::PublicKey& node, const Hash256& network);
Bytes encode_vector(const Vector& vector);
Expected<Vector> decode_vector(ByteSpan bytes, std::size_t most_members, std::size_t rows);

}  // namespace neuroshard::chain
