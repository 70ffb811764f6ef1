// Signed statements about members that blocks carry: registration, presence, beacon commitments, vouchers,
// revocations (docs/protocol/chain.md). Each names a recent block, so it is valid in one history only, and for
// `statement_life` blocks only.
//
// Canonical bytes: decode refuses everything that encode would not write. No signature is checked by decode.
// Threads: any. Errors: Corrupt.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/chain/row_set.h"
#include "core/crypto/delegation.h"
#include "core/crypto/keys.h"

namespace neuroshard::chain {

// A block that the signer knew: its statement holds in no other history.
struct BlockReference {
  std::uint64_t height = 0;
  Hash256 hash{};
  friend bool operator==(const BlockReference&, const BlockReference&) = default;
};

// The tip of a hash chain: round r reveals the value whose (r - first_round + 1)-fold hash is the tip (beacon.h).
struct BeaconCommitment {
  Hash256 tip{};                  // the seed's `length`-fold hash
  std::uint64_t first_round = 0;  // first round that reveals
  std::uint32_t length = 0;       // rounds that it lasts, 1 … 65,536
  friend bool operator==(const BeaconCommitment&, const BeaconCommitment&) = default;
};

// A voter's statement that the holder of the voucher's key may vote. Travels in an invitation together with the
// secret half of `key`, made before the invited wallet is known.
struct Voucher {
  crypto::PublicKey issuer{};  // node key of a voter
  crypto::PublicKey key{};     // of this voucher alone
  std::uint32_t serial = 0;    // of the issuer's wallet; each is used once
  std::uint64_t expires_ms = 0;
  crypto::Signature signature{};  // purpose ChainVoucher, by the issuer's node key
  friend bool operator==(const Voucher&, const Voucher&) = default;
};
inline constexpr std::size_t voucher_bytes = 32 + 32 + 4 + 8 + 64;
void sign_voucher(Voucher& voucher, const crypto::KeyPair& issuer, const Hash256& network);
bool voucher_holds(const Voucher& voucher, const Hash256& network);
Bytes encode_voucher(const Voucher& voucher);
Expected<Voucher> decode_voucher(ByteSpan bytes);

// The right to vote that an invitation brought.
struct HeldVoucher {
  Voucher voucher;
  Hash256 secret{};  // seed of the voucher's key
};

struct Register {                 // a node becomes a member: a candidate
  crypto::Delegation delegation;  // names node key and wallet
  BeaconCommitment beacon;
  std::optional<Voucher> voucher;
  crypto::Signature voucher_signature{};  // by the voucher's key over node key and wallet; zeros without
  RowSet rows;                            // that the node holds
  bool follows_plan = false;  // moves to other rows when the plan says so; else its owner chose them
  friend bool operator==(const Register& a, const Register& b);
};
struct Vouch {  // a member that is registered already brings a voucher
  Voucher voucher;
  crypto::Signature voucher_signature{};  // by the voucher's key over node key and wallet
  crypto::PublicKey wallet{};             // the member's; the registry checks that
  friend bool operator==(const Vouch&, const Vouch&) = default;
};
struct Away {  // dormant from the next block on
  friend bool operator==(const Away&, const Away&) = default;
};
struct Back {  // active again; ends dormancy
  friend bool operator==(const Back&, const Back&) = default;
};
struct Leave {  // ends the membership
  friend bool operator==(const Leave&, const Leave&) = default;
};
struct Commit {  // a new hash chain; holds two rounds later
  BeaconCommitment beacon;
  friend bool operator==(const Commit&, const Commit&) = default;
};

// The node gives up its rows for others: it is dormant until it says Back, when it has them. Only where members hold some
// rows.
struct Move {
  RowSet rows;
  bool follows_plan = false;  // as in Register
  friend bool operator==(const Move&, const Move&) = default;
};

// The node's memory and speed. The newest offer counts.
struct Offer {
  std::uint32_t memory_tiers = 0;  // that it may take for the network's model, program included: whole 500 MB
  std::uint32_t speed = 0;         // millions of FLOP/s of its training; 0: not said
  friend bool operator==(const Offer&, const Offer&) = default;
};

// The wallet takes its delegation to the node back: ends the membership, and the key never registers again for
// this wallet. The node key may be stolen, so the wallet key signs.
struct Revoke {
  crypto::PublicKey wallet{};
  friend bool operator==(const Revoke&, const Revoke&) = default;
};

struct Statement {
  crypto::PublicKey node{};  // that it is about
  BlockReference reference;
  std::variant<Register, Vouch, Away, Back, Leave, Commit, Revoke, Move, Offer> what;
  // Over all bytes before it. By the node key, purpose ChainStatement; of a Revoke by its wallet's key, purpose
  // ChainRevocation.
  crypto::Signature signature{};
  friend bool operator==(const Statement&, const Statement&) = default;
};
inline constexpr std::size_t max_statement_bytes = 1024;

// Of any kind but Revoke.
void sign_statement(Statement& statement, const crypto::KeyPair& node, const Hash256& network);
// Sets the wallet. node and reference are set before.
void sign_revocation(Statement& statement, const crypto::KeyPair& wallet, const Hash256& network);
// The signature, and those of a delegation and of a voucher inside; a delegation must be for this node
// and network. Not whether it has expired (the registry compares block times), nor whether the registry takes
// it.
bool statement_holds(const Statement& statement, const Hash256& network);
// For the voucher's holder: the signature that binds the voucher to one node and wallet; purpose
// ChainVoucherUse.
crypto::Signature use_voucher(const crypto::KeyPair& voucher_key, const crypto::PublicKey& node,
                              const crypto::PublicKey& wallet, const Hash256& network);
Bytes encode_statement(const Statement& statement);
Expected<Statement> decode_statement(ByteSpan bytes);

}  // namespace neuroshard::chain
