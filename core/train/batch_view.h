// A whole batch of training sequences, seen but not owned: what one inner step consumes.
#pragma once

#include <cstdint>

namespace neuroshard::train {

// Arrays are [sequences, length], dense, row-major, owned by the caller and valid for the call.
// targets[b,t] is the token that follows tokens[b,t]; -1 = no loss there.
struct BatchView {
  std::uint32_t sequences = 0;
  std::uint32_t length = 0;
  const std::int32_t* tokens = nullptr;
  const std::int32_t* targets = nullptr;
};

}  // namespace neuroshard::train
