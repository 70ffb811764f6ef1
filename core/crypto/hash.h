// SHA-256 and signatures' domain separation. libsodium behind it.
#pragma once

#include <string_view>

#include "core/base/bytes.h"

namespace neuroshard::crypto {

Hash256 sha256(ByteSpan bytes);

// Streaming SHA-256.  Threads: one.
class Sha256 {
 public:
  Sha256();
  Sha256& update(ByteSpan bytes);
  Sha256& update(std::string_view text) { return update(as_bytes(text)); }
  // Once; the object is spent afterwards.
  Hash256 finish();

 private:
  alignas(64) unsigned char state_[128];  // crypto_hash_sha256_state, checked in the source
};

}  // namespace neuroshard::crypto
