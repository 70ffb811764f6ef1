// Delegation: the wallet key says that a node key may earn for it in one network until a date
// (docs/protocol/identity.md). The node's record carries it; what the node earns is credited to the wallet.
//
//   offset  size  content, little-endian
//   0       4     "NSDL"
//   4       2     version, 1
//   6       2     length of the record, 184
//   8       32    node key
//   40      32    wallet key
//   72      32    network id
//   104     8     expiry, milliseconds since 1970 UTC
//   112     8     sequence: of two valid records for one node the higher one counts
//   120     64    signature by the wallet key, purpose Delegation, over bytes 0 to 119
#pragma once

#include "core/base/bytes.h"
#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/crypto/keys.h"

namespace neuroshard::crypto {

inline constexpr std::size_t delegation_bytes = 184;

struct Delegation {
  PublicKey node_key{};
  PublicKey wallet_key{};
  Hash256 network_id{};
  WallTime expires{};
  std::uint64_t sequence = 0;
  Signature signature{};
};

Delegation delegate(const KeyPair& wallet, const PublicKey& node_key, const Hash256& network_id,
                    WallTime expires, std::uint64_t sequence);

Bytes encode_delegation(const Delegation& delegation);
// Corrupt: wrong size, magic or signature. Unsupported: a later version. The result carries a valid
// signature.
Expected<Delegation> decode_delegation(ByteSpan bytes);
// The same without the signature, which check_delegation() finds out later: for readers that do cheaper checks
// first.
Expected<Delegation> parse_delegation(ByteSpan bytes);

// Whether it speaks for this node, in this network, at this time. Denied says what does not hold: signature,
// node, network or expiry (valid while now < expires).
Expected<void> check_delegation(const Delegation& delegation, const PublicKey& node_key,
                                const Hash256& network_id, WallTime now);

}  // namespace neuroshard::crypto
