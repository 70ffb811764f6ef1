// Pieces that several formats of core/chain contain, written and read in one place.
#pragma once

#include <string_view>

#include "core/base/error.h"
#include "core/chain/beacon.h"
#include "core/chain/contribution.h"
#include "core/chain/reader.h"
#include "core/chain/statements.h"
#include "core/crypto/hash.h"

namespace neuroshard::chain {

inline Error corrupt(const char* what) {
  return make_error(ErrorCode::Corrupt, what);
}
// SHA-256 of a tag and bytes: no hash of one kind of thing is that of another kind.
inline Hash256 tagged_hash(std::string_view tag, ByteSpan bytes) {
  return crypto::Sha256().update(tag).update(bytes).finish();
}

inline constexpr std::size_t commitment_bytes = 32 + 8 + 4;
void append_commitment(Bytes& bytes, const BeaconCommitment& commitment);
BeaconCommitment read_commitment(Reader& in);

inline constexpr std::size_t reference_bytes = 8 + 32;
void append_reference(Bytes& bytes, const BlockReference& reference);
BlockReference read_reference(Reader& in);

void append_entry(Bytes& bytes, const ContributionEntry& entry);
ContributionEntry read_entry(Reader& in);

// A count u32 and the numbers, strictly ascending.
void append_numbers(Bytes& bytes, const std::vector<std::uint32_t>& numbers);
std::vector<std::uint32_t> read_numbers(Reader& in, std::size_t most);

// As many bits as `bits` says.
Bitmap read_bitmap(Reader& in, std::size_t bits);

}  // namespace neuroshard::chain
