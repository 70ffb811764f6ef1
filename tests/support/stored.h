// Small byte sources and states in tests: the whole of them, where reading can't fail.
#pragma once

#include <vector>

#include "core/rounds/step.h"

namespace neuroshard::test {

inline Bytes bytes_of(const ByteSourcePtr& source) {
  return source ? read_all(*source).value() : Bytes{};
}
inline std::vector<float> weights_of(const rounds::Anchor& anchor) {
  return outer::read_all(anchor->weights()).value();
}
inline rounds::Anchor state_with(const std::vector<float>& weights) {
  return rounds::state_in_memory(weights, std::vector<float>(weights.size(), 0.0f));
}

}  // namespace neuroshard::test
