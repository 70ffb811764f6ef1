// Ed25519 keys (RFC 8032) with domain-separated signatures.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/crypto/entropy.h"

namespace neuroshard::crypto {

using PublicKey = std::array<std::uint8_t, 32>;
using Signature = std::array<std::uint8_t, 64>;

// The purpose of a signature; a signature for one purpose never verifies for another. Values are protocol:
// never renumber.
enum class Purpose : std::uint8_t {
  Manifest = 1,
  Checkpoint = 2,
  BatchRecord = 3,
  Delegation = 4,
  NetworkProfile = 5,
  DhtRecord = 6,
  NodeRecord = 7,
  // 8 to 15: rounds before the chain
  StatusReport = 16,  // core/status/report.h
  ChainPrepare = 32,  // core/chain/vote.h
  ChainCommit = 33,
  ChainSuccession = 34,
  ChainGenesis = 35,
  ChainContribution = 36,  // core/chain/contribution.h
  ChainVector = 37,
  ChainStatement = 38,  // core/chain/statements.h
  ChainVoucher = 39,
  ChainHeartbeat = 40,  // core/chain/messages.h
  ChainVoucherUse = 41,
  ChainRevocation = 42,  // core/chain/statements.h, by a wallet key
  ChainAttestation = 43,
  PipelineRoute = 48,  // core/pipeline/route.h
};

// Holds a secret seed; wiped on destruction. Movable only.  Threads: sign() from any.
class KeyPair {
 public:
  static KeyPair generate(Entropy& entropy);
  static KeyPair from_seed(const Hash256& seed);
  KeyPair(KeyPair&& other) noexcept;
  KeyPair& operator=(KeyPair&& other) noexcept;
  ~KeyPair();

  const PublicKey& public_key() const { return public_; }
  // The caller wipes its copy (sodium_memzero via crypto::wipe).
  Hash256 seed() const { return seed_; }
  // Signs "neuroshard/v1/" purpose, network id and message. An empty network id is for things that no network
  // owns.
  Signature sign(Purpose purpose, ByteSpan network_id, ByteSpan message) const;

 private:
  KeyPair() = default;
  Hash256 seed_{};
  PublicKey public_{};
  std::array<std::uint8_t, 64> secret_{};
};

bool verify(const PublicKey& key, Purpose purpose, ByteSpan network_id, ByteSpan message,
            const Signature& signature);

void wipe(MutableByteSpan secret);

// node_id = SHA-256 of the node's public key, 64 hex characters; also the DHT id and the TLS identity
// (docs/protocol/identity.md).
Hash256 node_id(const PublicKey& node_key);
// wallet_id = first 16 hex characters of SHA-256(public key); for display only.
std::string wallet_id(const PublicKey& wallet_key);

}  // namespace neuroshard::crypto
