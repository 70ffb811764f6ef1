// The records of a registry as bytes: in its encoding, and in the leaves of its root, which nodes compare. A reader fails
// (ByteReader::fail) at bytes that no record has. Threads: any.
#pragma once

#include <cstddef>
#include <optional>

#include "core/base/byte_reader.h"
#include "core/chain/detail/formats.h"
#include "core/chain/registry.h"

namespace neuroshard::chain {

// Of one record, or the least of them.
inline constexpr std::size_t row_bytes = 32 + 8 + 8 * 8;
inline constexpr std::size_t wallet_bytes = 4 + 32 + 4 + 8 + 8 + 4 + 8 + 8 + 4 + 8;
inline constexpr std::size_t least_member_bytes =
    4 + 4 + 32 + 1 + 8 + 8 + 8 + 4 + 8 + commitment_bytes + 1 + 32 + 8;
inline constexpr std::size_t revocation_bytes = 32 + 32 + 8;
inline constexpr std::size_t least_open_row_bytes = 4 + 8 + 32 + 8 + 32 + 8 + 8 + 32 + 8 + 1;
inline constexpr std::size_t strike_bytes = 4 + 8 + 32;

void append(Bytes& bytes, const RowRecord& row);
void append(Bytes& bytes, const WalletRecord& wallet);
// Optional parts have a flag before them (formats.h).
void append(Bytes& bytes, const MemberRecord& member);
void append(Bytes& bytes, const RevocationRecord& revocation);
void append(Bytes& bytes, const OpenRow& row);
void append(Bytes& bytes, const StrikeRecord& strike);
void append(Bytes& bytes, const SizeRecord& size);
// A flag, and the round if it is closed.
void append_closed(Bytes& bytes, const std::optional<ClosedRound>& closed);

RowRecord read_row(ByteReader& in);
WalletRecord read_wallet(ByteReader& in);
MemberRecord read_member(ByteReader& in);
RevocationRecord read_revocation(ByteReader& in);
OpenRow read_open_row(ByteReader& in);
StrikeRecord read_strike(ByteReader& in);
SizeRecord read_size(ByteReader& in);
std::optional<ClosedRound> read_closed(ByteReader& in);

}  // namespace neuroshard::chain
