#include "core/crypto/hash.h"

#include <new>
#include <type_traits>

#include "core/crypto/detail/sodium.h"

namespace neuroshard::crypto {
namespace {

using State = crypto_hash_sha256_state;

State* state_in(unsigned char* storage) {
  return std::launder(reinterpret_cast<State*>(storage));
}

}  // namespace

Hash256 sha256(ByteSpan bytes) {
  detail::require_sodium();
  Hash256 hash;
  crypto_hash_sha256(hash.data(), bytes.data(), bytes.size());
  return hash;
}

Sha256::Sha256() {
  static_assert(sizeof(State) <= sizeof(state_) && alignof(State) <= 64 &&
                std::is_trivially_copyable_v<State>);
  detail::require_sodium();
  crypto_hash_sha256_init(new (state_) State);
}

Sha256& Sha256::update(ByteSpan bytes) {
  crypto_hash_sha256_update(state_in(state_), bytes.data(), bytes.size());
  return *this;
}

Hash256 Sha256::finish() {
  Hash256 hash;
  crypto_hash_sha256_final(state_in(state_), hash.data());
  return hash;
}

}  // namespace neuroshard::crypto
