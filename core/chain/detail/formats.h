// Pieces that several formats of core/chain contain, written and read in one place.
#pragma once

#include <string_view>

#include "core/base/byte_reader.h"
#include "core/chain/beacon.h"
#include "core/chain/contribution.h"
#include "core/chain/detail/errors.h"
#include "core/chain/row_result.h"
#include "core/chain/statements.h"
#include "core/crypto/hash.h"

namespace neuroshard::chain {

// SHA-256 of a tag and bytes: no hash of one kind of thing is that of another kind.
inline Hash256 tagged_hash(std::string_view tag, ByteSpan bytes) {
  return crypto::Sha256().update(tag).update(bytes).finish();
}

inline constexpr std::size_t commitment_bytes = 32 + 8 + 4;
auto commitment_fields(auto& commitment) {
  return std::tie(commitment.tip, commitment.first_round, commitment.length);
}
BeaconCommitment read_commitment(ByteReader& in);

inline constexpr std::size_t reference_bytes = 8 + 32;
auto reference_fields(auto& reference) {
  return std::tie(reference.height, reference.hash);
}

auto entry_fields(auto& entry) {
  return std::tie(entry.member, entry.tokens, entry.work, entry.batches, entry.reveal, entry.signature);
}

// A count u32 and the entries, strictly ascending by member.
void append_entries(Bytes& bytes, const std::vector<ContributionEntry>& entries);
std::vector<ContributionEntry> read_entries(ByteReader& in);

// A count u32 and the numbers, strictly ascending.
void append_numbers(Bytes& bytes, const std::vector<std::uint32_t>& numbers);
std::vector<std::uint32_t> read_numbers(ByteReader& in, std::size_t most);

// A byte before a record's optional parts: bit 0, its own part follows; bit 1, then a set of rows, without which
// the record is of all rows; bit 2, the member follows the plan with these rows; bit 3, it has moved; bit 4, it
// offers memory; bit 5, and says its speed.
struct OptionalFlags {
  bool optional = false, rows = false, follows_plan = false, moved = false, offers = false, speed = false;
};
void append_optional_flags(Bytes& bytes, const OptionalFlags& flags);
OptionalFlags read_optional_flags(ByteReader& in);
// Of a set that is not all rows: the number of its bytes u8, and these.
void append_rows(Bytes& bytes, const RowSet& rows);
RowSet read_rows(ByteReader& in);

// row u32 · carried u8 · anchor, trace and norm unless it is carried.
void append_result(Bytes& bytes, const RowResult& row);
RowResult read_result(ByteReader& in);
// A count u32 and the results.
void append_results(Bytes& bytes, const std::vector<RowResult>& rows);
std::vector<RowResult> read_results(ByteReader& in, std::size_t most);

// As many bits as `bits` says.
Bitmap read_bitmap(ByteReader& in, std::size_t bits);

// At the end of a record: nothing, or a count u32 and the results, ascending.
inline constexpr std::size_t row_round_bytes = 4 + 8;
void append_withheld(Bytes& bytes, const std::vector<RowRound>& withheld);
std::vector<RowRound> read_withheld(ByteReader& in);

}  // namespace neuroshard::chain
