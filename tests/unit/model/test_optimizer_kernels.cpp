// The kernels of the optimizer and of packing, of every table that this processor can run, against plain
// loops.
#include <omp.h>

#include <algorithm>

#include "tests/support/test_main.h"
#include "tests/unit/model/kernels_test.h"

using namespace neuroshard;
using namespace neuroshard::kernels_test;

namespace {

Bf16 forward_at(const Bf16* packed, std::int64_t k, std::int64_t n, std::int64_t rows) {
  const std::int64_t padded = padded_rows_of(rows);
  return packed[static_cast<std::size_t>(((n / 64 * padded / 2 + k / 2) * 64 + n % 64) * 2 + k % 2)];
}

// Zeros at the start of a cache line, as the module's are, or beside it: the kernels write them differently.
class PackedBuffer {
 public:
  PackedBuffer(std::int64_t count, bool aligned) : storage_(static_cast<std::size_t>(count) + 64) {
    while (reinterpret_cast<std::uintptr_t>(data()) % 64 != (aligned ? 0 : 2)) ++first_;
  }
  PackedBuffer(const PackedBuffer&) = delete;
  PackedBuffer& operator=(const PackedBuffer&) = delete;
  Bf16* data() { return storage_.data() + first_; }

 private:
  std::vector<Bf16> storage_;
  std::size_t first_ = 0;
};

// That a packed operand [rows, columns] is `element` inside and zero outside.
template <typename ElementAt>
bool packs(const Bf16* packed, std::int64_t rows, std::int64_t columns, const ElementAt& element) {
  const std::int64_t all_columns = packed_count(rows, columns) / padded_rows_of(rows);
  for (std::int64_t k = 0; k < padded_rows_of(rows); ++k) {
    for (std::int64_t n = 0; n < all_columns; ++n) {
      const Bf16 expected = k < rows && n < columns ? to_bf16(element(k, n)) : Bf16{0};
      if (forward_at(packed, k, n, rows) != expected) return false;
    }
  }
  return true;
}

}  // namespace

class TestOptimizerKernels : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init() { omp_set_num_threads(2); }

  void sum_of_squares_data() { table_rows(); }
  void sum_of_squares() {
    NS_TABLE;
    for (const std::int64_t count : {1, 31, 33, 4096, 100003}) {
      for (const float scale : {1.0f, 1e25f, 1e-30f}) {  // the squares of the last two are no fp32 numbers
        const Floats values = normals(count, 1, scale);
        double expected = 0;
        for (const float value : values) expected += double(value) * value;
        QVERIFY(std::abs(kernels.sum_of_squares(values.data(), count) - expected) <= 1e-12 * expected);
      }
    }
    for (const float bad : {not_a_number, infinity}) {
      Floats values = normals(100003, 1);
      values.back() = bad;
      QVERIFY(!std::isfinite(kernels.sum_of_squares(values.data(), 100003)));
    }
  }

  void adamw_data() { table_rows(); }
  void adamw() {
    NS_TABLE;
    for (const std::int64_t count : {1, 33, 4095, 20001}) {
      const AdamwState before(count);
      AdamwState after = before;
      kernels.adamw(after.parameter.data(), after.gradient.data(), after.moment1.data(), after.moment2.data(),
                    count, scalars);
      for (std::size_t i = 0; i < after.parameter.size(); ++i) {
        const double g = double(before.gradient[i]) * scalars.scale;
        const double m = double(scalars.beta1) * before.moment1[i] + (1 - double(scalars.beta1)) * g;
        const double v = double(scalars.beta2) * before.moment2[i] + (1 - double(scalars.beta2)) * g * g;
        const double step =
            scalars.step_size * m / (std::sqrt(v) * scalars.root_correction + scalars.epsilon);
        QCOMPARE(after.gradient[i], 0.0f);
        QVERIFY(near(after.moment1[i], m, std::abs(before.moment1[i]) + std::abs(g)));
        QVERIFY(near(after.moment2[i], v, v));
        QVERIFY(near(after.parameter[i], double(before.parameter[i]) * scalars.keep - step,
                     std::abs(before.parameter[i]) + 10 * std::abs(step)));
      }
    }
  }

  void packed_weights_data() { table_rows(); }
  void packed_weights() {
    NS_BF16_TABLE;
    for (const std::int64_t rows : {1, 2, 15, 17, 64, 65, 130}) {
      for (const std::int64_t columns : {1, 3, 31, 33, 64, 96, 130}) {
        AdamwState state(rows * columns);
        AdamwState apart = state;
        PackedBuffer forward(packed_count(columns, rows), (rows + columns) % 2 != 0);
        PackedBuffer backward(packed_count(rows, columns), (rows + columns) % 2 != 0);
        const auto weight = [&state, columns = columns](std::int64_t o, std::int64_t i) {
          return state.parameter[static_cast<std::size_t>(o * columns + i)];
        };
        const auto turned = [&weight](std::int64_t i, std::int64_t o) { return weight(o, i); };
        kernels.pack_weight(state.parameter.data(), rows, columns, forward.data(), backward.data());
        QVERIFY(packs(forward.data(), columns, rows, turned) &&
                packs(backward.data(), rows, columns, weight));
        kernels.adamw_packed(state.parameter.data(), state.gradient.data(), state.moment1.data(),
                             state.moment2.data(), rows, columns, scalars, forward.data(), backward.data());
        QVERIFY(packs(forward.data(), columns, rows, turned) &&
                packs(backward.data(), rows, columns, weight));
        kernels.adamw(apart.parameter.data(), apart.gradient.data(), apart.moment1.data(),
                      apart.moment2.data(), rows * columns, scalars);
        QVERIFY(state.parameter == apart.parameter && state.gradient == apart.gradient);
        QVERIFY(state.moment1 == apart.moment1 && state.moment2 == apart.moment2);
        kernels.pack_weight(normals(rows * columns, 7).data(), rows, columns, forward.data(), nullptr);
        QVERIFY(!packs(forward.data(), columns, rows, turned) &&
                packs(backward.data(), rows, columns, weight));
      }
    }
  }

  void turned_columns_data() { table_rows(); }
  void turned_columns() {
    NS_BF16_TABLE;
    for (const std::int64_t rows : {1, 31, 32, 33, 100}) {
      for (const std::int64_t columns : {1, 5, 32, 50, 96, 130}) {
        std::vector<Bf16> source;
        for (const float value : normals(rows * columns, 1)) source.push_back(to_bf16(value));
        const auto value = [&source, rows = rows, columns = columns](std::int64_t r, std::int64_t c) {
          return r < rows && c < columns ? source[static_cast<std::size_t>(r * columns + c)] : Bf16{0};
        };
        for (std::int64_t first = 0; first < columns; first += 32) {
          for (const std::int64_t padded : {padded_rows_of(rows), padded_rows_of(rows) + 32}) {
            const std::int64_t count = std::min<std::int64_t>(64, columns - first);
            std::vector<Bf16> turned(static_cast<std::size_t>(count * padded), 7);
            kernels.transpose_columns(source.data(), rows, columns, first, count, padded, turned.data());
            for (std::int64_t at = 0; at < count * padded; ++at) {
              QCOMPARE(turned[static_cast<std::size_t>(at)], value(at % padded, first + at / padded));
            }
            std::vector<Bf16> block(static_cast<std::size_t>(packed_columns * padded), 7);
            kernels.pack_columns(source.data(), rows, columns, first, padded, block.data());
            for (std::int64_t at = 0; at < packed_columns * padded; ++at) {
              const std::int64_t pair = at / 2;
              QCOMPARE(block[static_cast<std::size_t>(at)],
                       value(pair / packed_columns * 2 + at % 2, first + pair % packed_columns));
            }
          }
        }
      }
    }
  }
};

NS_TEST(TestOptimizerKernels)
#include "test_optimizer_kernels.moc"
