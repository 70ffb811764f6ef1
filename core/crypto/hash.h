// SHA-256 (FIPS 180-4). OpenSSL behind it: it uses the processor's SHA instructions, where libsodium's
// portable code would make hashing the slowest part of saving a checkpoint.
#pragma once

#include <string_view>

#include "core/base/bytes.h"

namespace neuroshard::crypto {

Hash256 sha256(ByteSpan bytes);

// Streaming SHA-256.  Threads: one.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  Sha256& update(ByteSpan bytes);
  Sha256& update(std::string_view text) { return update(as_bytes(text)); }
  // Once; the object is spent afterwards.
  Hash256 finish();

 private:
  void* context_;  // EVP_MD_CTX
};

}  // namespace neuroshard::crypto
