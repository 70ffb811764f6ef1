#include "core/crypto/entropy.h"

#include "core/crypto/detail/sodium.h"

namespace neuroshard::crypto {

void SystemEntropy::fill(MutableByteSpan target) {
  detail::require_sodium();
  randombytes_buf(target.data(), target.size());
}

}  // namespace neuroshard::crypto
