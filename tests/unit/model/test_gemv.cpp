// Products of few rows in every kernel table against plain double-precision sums: sizes that fill no vector
// and no block, lists of unlike products, every kind of output; the same bits for any number of threads.
#include <omp.h>

#include <QtTest>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "core/base/rng.h"
#include "core/model/kernels.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::model;

namespace {

struct Table {
  const char* name;
  const Kernels* kernels;
};

std::vector<Table> tables() {
  std::vector<Table> all{{"sse2", &kernels_sse2}};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) all.push_back({"avx2", &kernels_avx2});
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  if (avx512) all.push_back({"avx512", &kernels_avx512});
  if (avx512 && __builtin_cpu_supports("avx512bf16")) all.push_back({"avx512_bf16", &kernels_avx512_bf16});
  return all;
}

float widened(Bf16 bits) {
  const std::uint32_t wide = std::uint32_t{bits} << 16;
  float value = 0;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

// Values that bf16 holds exactly, so that all tables compute the same thing.
std::vector<float> random_values(Rng& rng, std::int64_t count) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back((static_cast<float>(rng.below(255)) - 127.0f) / 64.0f);
  return values;
}

std::vector<Bf16> narrowed(const std::vector<float>& values) {
  std::vector<Bf16> result;
  for (const float value : values) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    result.push_back(static_cast<Bf16>(bits >> 16));
  }
  return result;
}

constexpr float untouched = 12345.0f;
constexpr std::size_t guard = 80;  // more than a block of outputs behind y

// One product with its own memory, in the table's types.
struct Problem {
  std::int64_t rows, outputs, inputs;
  std::vector<float> weight, x, y;
  std::vector<Bf16> packed, narrow_x, narrow_y;
  std::vector<float> before;  // y

  Problem(const Kernels& kernels, std::int64_t r, std::int64_t o, std::int64_t i, std::uint64_t seed)
      : rows(r), outputs(o), inputs(i) {
    Rng rng(seed);
    weight = random_values(rng, o * i);
    x = random_values(rng, r * i);
    before = random_values(rng, r * o);
    y = before;
    y.resize(y.size() + guard, untouched);
    narrow_y.assign(y.size(), 0x1234);
    if (kernels.element == Element::Float) return;
    narrow_x = narrowed(x);
    packed.resize(static_cast<std::size_t>(packed_count(i, o)));
    kernels.pack_weight(weight.data(), o, i, packed.data(), nullptr);
  }
  FewProduct view(const Kernels& kernels, ProductOutput form) {
    if (kernels.element == Element::Float) return {weight.data(), x.data(), y.data(), rows, outputs, inputs};
    void* target = form == ProductOutput::Bf16 ? static_cast<void*>(narrow_y.data()) : y.data();
    return {packed.data(), narrow_x.data(), target, rows, outputs, inputs};
  }

  // An empty text when all of y is right.
  QString wrong(ProductOutput form) const {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t o = 0; o < outputs; ++o) {
        const auto at = static_cast<std::size_t>(r * outputs + o);
        double sum = form == ProductOutput::AddFp32 ? before[at] : 0.0;
        double scale = std::abs(sum);
        for (std::int64_t i = 0; i < inputs; ++i) {
          const double term = double{weight[static_cast<std::size_t>(o * inputs + i)]} *
                              x[static_cast<std::size_t>(r * inputs + i)];
          sum += term;
          scale += std::abs(term);
        }
        const bool narrow = form == ProductOutput::Bf16;
        const double is = narrow ? widened(narrow_y[at]) : y[at];
        const double tolerance = 1e-6 * scale + (narrow ? std::abs(sum) / 256 : 0.0);
        if (!(std::abs(is - sum) <= tolerance)) {
          return QString("%1 x %2 x %3: y[%4,%5] is %6 instead of %7")
              .arg(rows)
              .arg(outputs)
              .arg(inputs)
              .arg(r)
              .arg(o)
              .arg(is)
              .arg(sum);
        }
      }
    }
    for (auto at = static_cast<std::size_t>(rows * outputs); at < y.size(); ++at) {
      if (y[at] != untouched || narrow_y[at] != 0x1234) return "written beyond the end";
    }
    return {};
  }
};

}  // namespace

class TestGemv : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void cleanup() { omp_set_num_threads(2); }

  void products_equal_plain_sums_data() {
    QTest::addColumn<int>("table");
    QTest::addColumn<int>("form");
    const std::vector<Table> all = tables();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto add = [&](const char* kind, ProductOutput form) {
        QTest::addRow("%s %s", all[i].name, kind) << static_cast<int>(i) << static_cast<int>(form);
      };
      add("fp32", ProductOutput::Fp32);
      add("added", ProductOutput::AddFp32);
      if (all[i].kernels->element == Element::BFloat16) add("bf16", ProductOutput::Bf16);
    }
  }

  void products_equal_plain_sums() {
    QFETCH(int, table);
    QFETCH(int, form);
    const Kernels& kernels = *tables()[static_cast<std::size_t>(table)].kernels;
    const auto output = static_cast<ProductOutput>(form);
    std::uint64_t seed = 1;
    for (const std::int64_t rows : {1, 2, 3, 4, 5, 7, 8, 11, 12, 13, 14, 15, 16}) {
      for (const std::int64_t outputs : {1, 3, 64, 67, 150}) {
        for (const std::int64_t inputs : {1, 2, 7, 32, 63, 259}) {
          Problem problem(kernels, rows, outputs, inputs, ++seed);
          const FewProduct product = problem.view(kernels, output);
          kernels.multiply_few(&product, 1, output);
          const QString wrong = problem.wrong(output);
          QVERIFY2(wrong.isEmpty(), qPrintable(wrong));
        }
      }
    }
  }

  // So that a text does not depend on those that are generated beside it.
  void rows_have_the_same_bits_in_any_company() {
    for (const Table& table : tables()) {
      const Kernels& kernels = *table.kernels;
      constexpr std::int64_t outputs = 150;
      constexpr std::int64_t inputs = 259;
      Problem all(kernels, 16, outputs, inputs, 4);
      const FewProduct together = all.view(kernels, ProductOutput::Fp32);
      kernels.multiply_few(&together, 1, ProductOutput::Fp32);
      const std::vector<float> expected = all.y;
      for (std::int64_t rows = 1; rows < 16; ++rows) {
        FewProduct part = together;
        const std::int64_t size = kernels.element == Element::Float ? sizeof(float) : sizeof(Bf16);
        part.x = static_cast<const char*>(together.x) + (16 - rows) * inputs * size;
        part.y = all.y.data() + (16 - rows) * outputs;
        part.rows = rows;
        std::fill_n(static_cast<float*>(part.y), rows * outputs, 0.0f);
        kernels.multiply_few(&part, 1, ProductOutput::Fp32);
        QVERIFY2(all.y == expected, table.name);
      }
    }
  }

  // As the experts of one token, but of unlike sizes; and enough of it for several threads.
  void lists_equal_plain_sums_for_any_threads() {
    for (const Table& table : tables()) {
      const Kernels& kernels = *table.kernels;
      std::vector<std::vector<float>> first;
      for (const int threads : {1, 2, 3, 5}) {
        omp_set_num_threads(threads);
        std::vector<Problem> problems;
        problems.emplace_back(kernels, 1, 1000, 131, 1);
        problems.emplace_back(kernels, 3, 2, 65, 2);
        problems.emplace_back(kernels, 1, 70, 2100, 3);
        std::vector<FewProduct> products;
        for (Problem& problem : problems) products.push_back(problem.view(kernels, ProductOutput::AddFp32));
        kernels.multiply_few(products.data(), static_cast<std::int64_t>(products.size()),
                             ProductOutput::AddFp32);
        for (std::size_t i = 0; i < problems.size(); ++i) {
          const QString wrong = problems[i].wrong(ProductOutput::AddFp32);
          QVERIFY2(wrong.isEmpty(), qPrintable(table.name + (": " + wrong)));
          if (threads == 1) first.push_back(problems[i].y);
          QCOMPARE(std::memcmp(problems[i].y.data(), first[i].data(), first[i].size() * sizeof(float)), 0);
        }
      }
    }
  }
};

NS_TEST(TestGemv)
#include "test_gemv.moc"
