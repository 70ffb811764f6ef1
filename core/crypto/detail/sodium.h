// libsodium, initialised. Every source of this folder that calls libsodium includes this instead of
// <sodium.h>.
#pragma once

#include <sodium.h>

#include "core/base/check.h"

namespace neuroshard::crypto::detail {

// Chooses the fastest implementations and opens the random device; cheap and safe to repeat from any thread.
inline void require_sodium() {
  static const bool ready = sodium_init() >= 0;
  NS_CHECK(ready);
}

}  // namespace neuroshard::crypto::detail
