// Every kernel table's attention against a plain double-precision program: head dims, lengths that fill no
// block, grouped heads, keys before the first query; the same bits for any number of threads.
#include <QtTest>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/base/rng.h"
#include "core/model/attention_shape.h"
#include "core/model/kernels.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::model;

namespace {

struct Table {
  const char* name;
  const Kernels* kernels;
  bool pairs = false;
};

std::vector<Table> tables() {
  std::vector<Table> all{{"sse2", &kernels_sse2}};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) all.push_back({"avx2", &kernels_avx2});
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  if (avx512) all.push_back({"avx512", &kernels_avx512});
  if (avx512 && __builtin_cpu_supports("avx512bf16")) {
    all.push_back({"avx512_bf16", &kernels_avx512_bf16});
    all.push_back({"avx512_bf16 pairs", &kernels_avx512_bf16, true});
  }
  return all;
}

float bf16_value(Bf16 bits) {
  const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
  float value = 0;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

// An array of activations in a table's type; `values` is what it holds. Ends are guarded.
class Activations {
 public:
  Activations(Element element, std::size_t count) : element_(element), count_(count) {
    bytes_.resize((count + 2 * guard) * size(), 0x5a);
  }
  void fill(Rng& rng, float scale) {
    for (std::size_t i = 0; i < count_; ++i) {
      const float value = (static_cast<float>(rng.below(20001)) / 10000.0f - 1.0f) * scale;
      std::uint32_t bits = 0;
      std::memcpy(&bits, &value, sizeof bits);
      const Bf16 upper = static_cast<Bf16>(bits >> 16);
      std::memcpy(at(i), element_ == Element::Float ? static_cast<const void*>(&value) : &upper, size());
    }
  }
  float operator[](std::size_t i) const {
    if (element_ == Element::BFloat16) {
      Bf16 bits = 0;
      std::memcpy(&bits, at(i), sizeof bits);
      return bf16_value(bits);
    }
    float value = 0;
    std::memcpy(&value, at(i), sizeof value);
    return value;
  }
  void* at(std::size_t i) { return bytes_.data() + (guard + i) * size(); }
  const void* at(std::size_t i) const { return bytes_.data() + (guard + i) * size(); }
  bool guards_hold() const {
    for (std::size_t i = 0; i < guard * size(); ++i) {
      if (bytes_[i] != 0x5a || bytes_[bytes_.size() - 1 - i] != 0x5a) return false;
    }
    return true;
  }
  const std::vector<std::uint8_t>& bytes() const { return bytes_; }

 private:
  static constexpr std::size_t guard = 64;
  std::size_t size() const { return element_ == Element::Float ? 4 : 2; }

  Element element_;
  std::size_t count_;
  std::vector<std::uint8_t> bytes_;
};

// Rows of [q heads | kv heads of k | kv heads of v], as a block's projection makes them; with a past, keys
// and values stand in rows of their own, as in a cache.
struct Problem {
  AttentionShape shape;
  Activations q;
  Activations kv;
  Activations gradient_output;
  bool cached;

  Problem(const AttentionShape& s, Element element, std::uint64_t seed, float scale)
      : shape(s),
        q(element, static_cast<std::size_t>(s.batch * s.queries * q_width(s))),
        kv(element, static_cast<std::size_t>(s.batch * (s.past + s.queries) * 2 * s.kv_heads * s.dim)),
        gradient_output(element, static_cast<std::size_t>(s.batch * s.queries * s.heads * s.dim)),
        cached(s.past > 0) {
    Rng rng(seed);
    q.fill(rng, scale);
    kv.fill(rng, scale);
    gradient_output.fill(rng, 1.0f);
  }
  static std::int64_t q_width(const AttentionShape& s) {
    return (s.heads + (s.past > 0 ? 0 : 2 * s.kv_heads)) * s.dim;
  }
  std::size_t q_at(std::int64_t row, std::int64_t head, std::int64_t d) const {
    return static_cast<std::size_t>(row * q_width(shape) + head * shape.dim + d);
  }
  // part 0: keys, 1: values
  std::size_t kv_at(std::int64_t row, int part, std::int64_t head, std::int64_t d) const {
    const std::int64_t column = (part * shape.kv_heads + head) * shape.dim + d;
    return static_cast<std::size_t>(cached ? row * 2 * shape.kv_heads * shape.dim + column
                                           : row * q_width(shape) + shape.heads * shape.dim + column);
  }
  const Activations& keys() const { return cached ? kv : q; }
  double key(std::int64_t row, int part, std::int64_t head, std::int64_t d) const {
    return keys()[kv_at(row, part, head, d)];
  }
  AttentionInput input() const {
    AttentionInput view;
    view.q = q.at(0);
    view.k = keys().at(kv_at(0, 0, 0, 0));
    view.v = keys().at(kv_at(0, 1, 0, 0));
    view.q_stride = q_width(shape);
    view.kv_stride = cached ? 2 * shape.kv_heads * shape.dim : q_width(shape);
    return view;
  }
};

struct Expected64 {
  std::vector<double> output;
  std::vector<double> log_sum;
  std::vector<double> gradient;  // rows as q's, without a past only
};

// One query of the definition in attention.h.
void naive_query(const Problem& problem, std::int64_t sequence, std::int64_t head, std::int64_t query,
                 Expected64& result) {
  const AttentionShape& s = problem.shape;
  const std::int64_t kv_head = head / (s.heads / s.kv_heads);
  const std::int64_t row = sequence * s.queries + query;
  const std::int64_t first_key = sequence * (s.past + s.queries);
  const std::int64_t seen = s.past + query + 1;
  const double scale = 1.0 / std::sqrt(static_cast<double>(s.dim));
  std::vector<double> p(static_cast<std::size_t>(seen));
  double highest = -HUGE_VAL;
  for (std::int64_t j = 0; j < seen; ++j) {
    double score = 0;
    for (std::int64_t d = 0; d < s.dim; ++d)
      score += problem.q[problem.q_at(row, head, d)] * problem.key(first_key + j, 0, kv_head, d);
    p[static_cast<std::size_t>(j)] = score * scale;
    highest = std::max(highest, score * scale);
  }
  double sum = 0;
  for (double& value : p) sum += value = std::exp(value - highest);
  for (double& value : p) value /= sum;
  result.log_sum[static_cast<std::size_t>((sequence * s.heads + head) * s.queries + query)] =
      highest + std::log(sum);
  double* output = result.output.data() + (row * s.heads + head) * s.dim;
  double delta = 0;
  const auto upstream = [&](std::int64_t d) {
    return problem.gradient_output[static_cast<std::size_t>((row * s.heads + head) * s.dim + d)];
  };
  for (std::int64_t d = 0; d < s.dim; ++d) {
    for (std::int64_t j = 0; j < seen; ++j)
      output[d] += p[static_cast<std::size_t>(j)] * problem.key(first_key + j, 1, kv_head, d);
    delta += output[d] * upstream(d);
  }
  if (s.past > 0) return;
  for (std::int64_t j = 0; j < seen; ++j) {
    const double probability = p[static_cast<std::size_t>(j)];
    double gradient_p = 0;
    for (std::int64_t d = 0; d < s.dim; ++d)
      gradient_p += upstream(d) * problem.key(first_key + j, 1, kv_head, d);
    const double gradient_score = probability * (gradient_p - delta) * scale;
    for (std::int64_t d = 0; d < s.dim; ++d) {
      const std::size_t q_at = problem.q_at(row, head, d);
      const std::size_t k_at = problem.kv_at(first_key + j, 0, kv_head, d);
      result.gradient[problem.kv_at(first_key + j, 1, kv_head, d)] += probability * upstream(d);
      result.gradient[q_at] += gradient_score * problem.q[k_at];
      result.gradient[k_at] += gradient_score * problem.q[q_at];
    }
  }
}

Expected64 naive(const Problem& problem) {
  const AttentionShape& s = problem.shape;
  Expected64 result;
  result.output.resize(static_cast<std::size_t>(s.batch * s.queries * s.heads * s.dim));
  result.log_sum.resize(static_cast<std::size_t>(s.batch * s.queries * s.heads));
  if (s.past == 0)
    result.gradient.resize(static_cast<std::size_t>(s.batch * s.queries * Problem::q_width(s)));
  for (std::int64_t sequence = 0; sequence < s.batch; ++sequence) {
    for (std::int64_t head = 0; head < s.heads; ++head) {
      for (std::int64_t query = 0; query < s.queries; ++query)
        naive_query(problem, sequence, head, query, result);
    }
  }
  return result;
}

struct Result {
  Activations output;
  std::vector<float> log_sum;
  Activations gradient;
  bool inside = false;  // nothing was written beyond an array's end
};

// Working memory filled with NaN, so that reading what nobody wrote shows.
std::vector<float> scratch_of(std::int64_t count) {
  std::vector<float> memory(static_cast<std::size_t>(count) + 64, NAN);
  return memory;
}
bool end_holds(const std::vector<float>& memory) {
  for (std::size_t i = memory.size() - 64; i < memory.size(); ++i) {
    if (!std::isnan(memory[i])) return false;
  }
  return true;
}

Result run(const Table& table, const Problem& problem, int threads) {
  const Kernels& kernels = *table.kernels;
  const auto forward = table.pairs ? kernels.attention_forward_pairs : kernels.attention_forward;
  const auto back = table.pairs ? kernels.attention_backward_pairs : kernels.attention_backward;
  const AttentionShape& s = problem.shape;
  const auto rows = static_cast<std::size_t>(s.batch * s.queries);
  const bool backward = s.past == 0;
  Result result{Activations(kernels.element, rows * static_cast<std::size_t>(s.heads * s.dim)),
                std::vector<float>(rows * static_cast<std::size_t>(s.heads)),
                Activations(kernels.element, rows * static_cast<std::size_t>(Problem::q_width(s)))};
  std::vector<float> scratch =
      scratch_of(threads * attention_forward_floats(s) + attention_forward_shared_floats(s));
  forward(s, problem.input(), threads, scratch.data(), result.output.at(0), result.log_sum.data());
  result.inside = end_holds(scratch) && result.output.guards_hold();
  if (!backward) return result;
  scratch = scratch_of(threads * attention_backward_floats(s) + attention_backward_shared_floats(s));
  AttentionGradient gradient;
  gradient.q = result.gradient.at(0);
  gradient.k = result.gradient.at(problem.kv_at(0, 0, 0, 0));
  gradient.v = result.gradient.at(problem.kv_at(0, 1, 0, 0));
  back(s, problem.input(), result.output.at(0), result.log_sum.data(), problem.gradient_output.at(0), threads,
       scratch.data(), gradient);
  result.inside = result.inside && end_holds(scratch) && result.gradient.guards_hold();
  return result;
}

// Largest difference, relative to the largest value.
template <typename Values>
double distance(const Values& values, const std::vector<double>& expected) {
  double difference = 0;
  double largest = 1e-30;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double value = values[i];
    if (!std::isfinite(value)) return HUGE_VAL;
    difference = std::max(difference, std::abs(value - expected[i]));
    largest = std::max(largest, std::abs(expected[i]));
  }
  return difference / largest;
}

std::string text(const AttentionShape& s) {
  return "B" + std::to_string(s.batch) + " T" + std::to_string(s.queries) + " past" + std::to_string(s.past) +
         " H" + std::to_string(s.heads) + "/" + std::to_string(s.kv_heads) + " D" + std::to_string(s.dim);
}

// Empty if all agrees.
std::string check(const AttentionShape& shape, float scale, double fp32_bound = 1e-5) {
  for (const Table& table : tables()) {
    const bool exact = table.kernels->element == Element::Float;
    const Problem problem(shape, table.kernels->element, 7, scale);
    const Expected64 expected = naive(problem);
    const Result result = run(table, problem, 2);
    const double bound = exact ? fp32_bound : table.pairs ? 2e-2 : 1e-2;
    const double distances[] = {distance(result.output, expected.output),
                                distance(result.log_sum, expected.log_sum),
                                distance(result.gradient, expected.gradient)};
    const bool close = distances[0] < bound && distances[1] < 1e-5 && distances[2] < bound;
    if (!close || !result.inside) {
      return std::string(table.name) + " " + text(shape) + " output " + std::to_string(distances[0]) +
             " log_sum " + std::to_string(distances[1]) + " gradient " + std::to_string(distances[2]) +
             (result.inside ? "" : ", wrote outside");
    }
  }
  return {};
}

}  // namespace

class TestAttention : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void every_head_dim_matches_the_definition() {
    for (const int dim : {1, 3, 8, 16, 20, 32, 48, 64, 80, 128, 136}) {
      const std::string wrong = check({2, 70, 0, 2, 2, dim}, 2.0f);
      QVERIFY2(wrong.empty(), wrong.c_str());
    }
  }

  void every_length_matches_the_definition() {
    for (const int queries : {1, 2, 4, 5, 7, 15, 16, 17, 33, 63, 64, 65, 100, 127, 128, 129, 200}) {
      const std::string wrong = check({1, queries, 0, 2, 1, 16}, 2.0f);
      QVERIFY2(wrong.empty(), wrong.c_str());
    }
  }

  void grouped_heads_match_the_definition() {
    for (const int kv_heads : {1, 2, 3, 6}) {
      const std::string wrong = check({2, 67, 0, 6, kv_heads, 8}, 2.0f);
      QVERIFY2(wrong.empty(), wrong.c_str());
    }
  }

  void queries_after_a_past_match_the_definition() {
    for (const int past : {1, 15, 63, 64, 127, 128, 129, 300}) {
      for (const int queries : {1, 3, 4, 5, 66}) {
        const std::string wrong = check({1, queries, past, 4, 2, 24}, 2.0f);
        QVERIFY2(wrong.empty(), wrong.c_str());
      }
    }
  }

  // Generation: as many rows share a kv head as heads and queries make, and no head fills the last vector.
  void few_queries_match_the_definition() {
    for (const int dim : {1, 3, 17, 31, 33, 48, 64, 80, 128, 136}) {
      for (const int queries : {1, 2, 3, 4}) {
        const int kv_heads = dim % 2 == 0 ? 2 : 6;
        const std::string wrong = check({1, queries, 133, 6, kv_heads, dim}, 2.0f);
        QVERIFY2(wrong.empty(), wrong.c_str());
      }
    }
    const std::string sequences = check({3, 4, 0, 5, 1, 40}, 2.0f);
    QVERIFY2(sequences.empty(), sequences.c_str());
  }

  // Scores of several hundred: only the differences to the highest may be raised to a power. A score's own
  // rounding then weighs hundreds of times more.
  void large_scores_do_not_overflow() {
    for (const int past : {0, 200}) {
      const std::string wrong = check({1, 70, past, 2, 2, 16}, 20.0f, 1e-4);
      QVERIFY2(wrong.empty(), wrong.c_str());
    }
  }

  void threads_do_not_change_a_bit() {
    for (const Table& table : tables()) {
      for (const AttentionShape& shape :
           {AttentionShape{2, 150, 0, 4, 2, 16}, AttentionShape{2, 90, 0, 3, 3, 32},
            AttentionShape{1, 1, 700, 4, 2, 16}, AttentionShape{1, 3, 700, 6, 2, 72}}) {
        const Problem problem(shape, table.kernels->element, 3, 2.0f);
        const Result one = run(table, problem, 1);
        for (const int threads : {2, 3, 5}) {
          const Result many = run(table, problem, threads);
          QVERIFY2(many.output.bytes() == one.output.bytes(), table.name);
          QVERIFY2(many.log_sum == one.log_sum, table.name);
          QVERIFY2(many.gradient.bytes() == one.gradient.bytes(), table.name);
        }
      }
    }
  }

  // A value that is not a number stays one for the queries that see it, and for no others.
  void not_a_number_is_seen() {
    for (const Table& table : tables()) {
      Problem problem({1, 80, 0, 1, 1, 16}, table.kernels->element, 5, 1.0f);
      const float nan = NAN;
      const Bf16 nan_bits = 0x7fc1;
      const void* source =
          table.kernels->element == Element::Float ? static_cast<const void*>(&nan) : &nan_bits;
      std::memcpy(problem.q.at(problem.kv_at(40, 0, 0, 3)), source,
                  table.kernels->element == Element::Float ? 4 : 2);
      const Result result = run(table, problem, 2);
      for (std::size_t query = 0; query < 80; ++query)
        QCOMPARE(std::isnan(result.output[query * 16]), query >= 40);
    }
  }

  // The value of a query's own position is hidden from the queries before it, whatever it holds.
  void later_values_are_not_seen() {
    for (const Table& table : tables()) {
      Problem problem({1, 4, 30, 2, 1, 24}, table.kernels->element, 5, 1.0f);
      const float nan = NAN;
      const Bf16 nan_bits = 0x7fc1;
      const bool wide = table.kernels->element == Element::Float;
      const void* source = wide ? static_cast<const void*>(&nan) : &nan_bits;
      std::memcpy(problem.kv.at(problem.kv_at(32, 1, 0, 5)), source, wide ? 4 : 2);
      const Result result = run(table, problem, 1);
      for (std::size_t query = 0; query < 4; ++query) {
        for (std::size_t head = 0; head < 2; ++head) {
          QCOMPARE(std::isnan(result.output[(query * 2 + head) * 24 + 5]), query >= 2);
          QVERIFY(!std::isnan(result.output[(query * 2 + head) * 24 + 6]));
        }
      }
    }
  }
};

NS_TEST(TestAttention)
#include "test_attention.moc"
