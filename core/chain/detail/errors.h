// The errors of core/chain.
#pragma once

#include "core/base/error.h"

namespace neuroshard::chain {

// Bytes that can't be read.
inline Error corrupt(const char* what) {
  return make_error(ErrorCode::Corrupt, what);
}
// A statement, proof or block that does not hold.
inline Error denied(const char* what) {
  return make_error(ErrorCode::Denied, what);
}

}  // namespace neuroshard::chain
