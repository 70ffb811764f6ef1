// Shared by the tests of the kernel tables: the tables that this processor can run, arrays of either
// precision, and comparisons.
#pragma once

#include <QtTest>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/base/rng.h"
#include "core/model/kernels.h"

Q_DECLARE_METATYPE(const neuroshard::model::Kernels*)

namespace neuroshard::kernels_test {

using model::AdamwScalars;
using model::Bf16;
using model::Element;
using model::Kernels;
using model::kernels_avx2;
using model::kernels_avx512;
using model::kernels_avx512_bf16;
using model::kernels_sse2;
using model::packed_columns;
using model::packed_count;
using model::padded_rows_of;
using model::reduction_blocks;

using Floats = std::vector<float>;
using Ints = std::vector<std::int32_t>;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

struct Size {
  std::int64_t rows, width;
};
// One row, less than a vector, not a multiple of 16, 32 or 64, more than one thread's worth.
inline const std::vector<Size> sizes = {{1, 1},  {1, 5},   {3, 16},   {2, 33},
                                        {7, 64}, {5, 100}, {33, 130}, {70, 512}};

inline Floats normals(std::int64_t count, std::uint64_t seed, float scale = 1) {
  Rng rng(seed);
  Floats values(static_cast<std::size_t>(count));
  for (float& value : values) value = scale * rng.normal();
  return values;
}
inline Ints random_ints(std::int64_t count, std::uint64_t seed, std::int64_t bound) {
  Rng rng(seed);
  Ints values(static_cast<std::size_t>(count));
  for (std::int32_t& value : values)
    value = static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(bound)));
  return values;
}

inline float from_bf16(Bf16 value) {
  const std::uint32_t bits = static_cast<std::uint32_t>(value) << 16;
  float result = 0;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}
// The nearer of the two neighbours, the even one of two equally near.
inline Bf16 to_bf16(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  if (std::isnan(value)) return 0x7fc0;
  const std::uint32_t below = bits >> 16;
  const std::uint32_t rest = bits & 0xffffu;
  const bool up = rest > 0x8000u || (rest == 0x8000u && (below & 1u) != 0);
  return static_cast<Bf16>(below + (up ? 1 : 0));
}

// An array of activations of either precision.
class Activations {
 public:
  Activations(const Kernels& kernels, std::int64_t count)
      : wide_(kernels.element == Element::Float), bytes_(static_cast<std::size_t>(count) * (wide_ ? 4 : 2)) {}
  Activations(const Kernels& kernels, const Floats& values)
      : Activations(kernels, static_cast<std::int64_t>(values.size())) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Bf16 narrow = to_bf16(values[i]);
      if (wide_) std::memcpy(&bytes_[4 * i], &values[i], 4);
      if (!wide_) std::memcpy(&bytes_[2 * i], &narrow, 2);
    }
  }
  void* data() { return bytes_.data(); }
  const std::vector<char>& bytes() const { return bytes_; }
  double at(std::int64_t i) const {
    float value = 0;
    Bf16 narrow = 0;
    if (wide_) std::memcpy(&value, &bytes_[4 * static_cast<std::size_t>(i)], 4);
    if (!wide_) std::memcpy(&narrow, &bytes_[2 * static_cast<std::size_t>(i)], 2);
    return wide_ ? value : from_bf16(narrow);
  }

 private:
  bool wide_;
  std::vector<char> bytes_;
};

// terms: what the magnitudes of the terms add up to, of which rounding is a share.
inline bool near(double actual, double expected, double terms) {
  return std::abs(actual - expected) <= 1e-5 * terms + 1e-30 || (std::isnan(actual) && std::isnan(expected));
}
// The same, and one rounding to bf16 if that is the table's precision.
inline bool near_activation(const Kernels& kernels, double actual, double expected, double terms) {
  const double rounding = kernels.element == Element::Float ? 0 : std::abs(expected) / 256 * 1.01;
  return std::abs(actual - expected) <= 1e-5 * terms + rounding + 1e-30 ||
         (std::isnan(actual) && std::isnan(expected));
}

inline const AdamwScalars scalars = {0.01f, 0.999f, 1e-3f, 0.9f, 0.95f, 1.7f, 1e-8f};

struct AdamwState {
  explicit AdamwState(std::int64_t count)
      : parameter(normals(count, 1)),
        gradient(normals(count, 2, 30)),
        moment1(normals(count, 3, 0.1f)),
        moment2(normals(count, 4, 0.1f)) {
    for (float& value : moment2) value = value * value;
  }
  Floats parameter, gradient, moment1, moment2;
};

// A row for each table: null where the processor lacks its instructions.
inline void table_rows() {
  QTest::addColumn<const Kernels*>("table");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512cd");
  const Kernels* const none = nullptr;
  QTest::newRow("sse2") << &kernels_sse2;
  QTest::newRow("avx2") << (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &kernels_avx2
                                                                                            : none);
  QTest::newRow("avx512") << (avx512 ? &kernels_avx512 : none);
  QTest::newRow("avx512_bf16") << (avx512 && __builtin_cpu_supports("avx512bf16") ? &kernels_avx512_bf16
                                                                                  : none);
}

// `kernels` in a test over the rows of table_rows().
#define NS_TABLE                                        \
  QFETCH(const Kernels*, table);                        \
  if (table == nullptr) QSKIP("not on this processor"); \
  const Kernels& kernels = *table
#define NS_BF16_TABLE \
  NS_TABLE;           \
  if (kernels.element != Element::BFloat16) return

}  // namespace neuroshard::kernels_test
