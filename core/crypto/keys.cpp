#include "core/crypto/keys.h"

#include <algorithm>
#include <utility>

#include "core/crypto/detail/sodium.h"
#include "core/crypto/hash.h"

namespace neuroshard::crypto {
namespace {

// Prefix, purpose, length of the network id, network id, message: no two different calls give the same bytes.
Bytes signed_bytes(Purpose purpose, ByteSpan network_id, ByteSpan message) {
  static constexpr std::string_view prefix = "neuroshard/v1/";
  Bytes bytes(prefix.size() + 1 + sizeof(std::uint32_t) + network_id.size() + message.size());
  std::uint8_t* at = std::copy(prefix.begin(), prefix.end(), bytes.data());
  *at++ = static_cast<std::uint8_t>(purpose);
  store_le(at, static_cast<std::uint32_t>(network_id.size()));
  at = std::copy(network_id.begin(), network_id.end(), at + sizeof(std::uint32_t));
  std::copy(message.begin(), message.end(), at);
  return bytes;
}

}  // namespace

KeyPair KeyPair::generate(Entropy& entropy) {
  Hash256 seed;
  entropy.fill(seed);
  KeyPair pair = from_seed(seed);
  wipe(seed);
  return pair;
}

KeyPair KeyPair::from_seed(const Hash256& seed) {
  detail::require_sodium();
  KeyPair pair;
  pair.seed_ = seed;
  crypto_sign_seed_keypair(pair.public_.data(), pair.secret_.data(), seed.data());
  return pair;
}

KeyPair::KeyPair(KeyPair&& other) noexcept
    : seed_(other.seed_), public_(other.public_), secret_(other.secret_) {
  wipe(other.seed_);
  wipe(other.secret_);
}

KeyPair& KeyPair::operator=(KeyPair&& other) noexcept {
  if (this != &other) {
    seed_ = other.seed_;
    public_ = other.public_;
    secret_ = other.secret_;
    wipe(other.seed_);
    wipe(other.secret_);
  }
  return *this;
}

KeyPair::~KeyPair() {
  wipe(seed_);
  wipe(secret_);
}

Signature KeyPair::sign(Purpose purpose, ByteSpan network_id, ByteSpan message) const {
  const Bytes bytes = signed_bytes(purpose, network_id, message);
  Signature signature;
  crypto_sign_detached(signature.data(), nullptr, bytes.data(), bytes.size(), secret_.data());
  return signature;
}

bool verify(const PublicKey& key, Purpose purpose, ByteSpan network_id, ByteSpan message,
            const Signature& signature) {
  detail::require_sodium();
  const Bytes bytes = signed_bytes(purpose, network_id, message);
  return crypto_sign_verify_detached(signature.data(), bytes.data(), bytes.size(), key.data()) == 0;
}

void wipe(MutableByteSpan secret) {
  sodium_memzero(secret.data(), secret.size());
}

Hash256 node_id(const PublicKey& node_key) {
  return sha256(node_key);
}

std::string wallet_id(const PublicKey& wallet_key) {
  const Hash256 hash = sha256(wallet_key);
  return to_hex(ByteSpan(hash).first(8));
}

}  // namespace neuroshard::crypto
