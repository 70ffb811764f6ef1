// Every row-wise kernel of every table that this processor can run, against plain loops in double. The
// optimizer's, attention's and the products of few rows have tests of their own.
#include <omp.h>

#include <cfloat>

#include "tests/support/test_main.h"
#include "tests/unit/model/kernels_test.h"

using namespace neuroshard;
using namespace neuroshard::kernels_test;

namespace {

inline double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

}  // namespace

class TestKernels : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init() { omp_set_num_threads(2); }

  void entries_of_each_precision_data() { table_rows(); }
  void entries_of_each_precision() {
    NS_TABLE;
    const bool packs = kernels.element == Element::BFloat16;
    QCOMPARE(kernels.pack_weight != nullptr, packs);
    QCOMPARE(kernels.adamw_packed != nullptr, packs);
    QCOMPARE(kernels.transpose_columns != nullptr, packs);
    QCOMPARE(kernels.pack_columns != nullptr, packs);
  }

  void rms_norm_data() { table_rows(); }
  void rms_norm() {
    NS_TABLE;
    for (const auto [rows, width] : sizes) {
      const Floats x = normals(rows * width, 1);
      const Floats gain = normals(width, 2);
      const Floats upstream = normals(rows * width, 3);
      Activations y(kernels, rows * width);
      Activations again(kernels, rows * width);
      Activations narrowed(kernels, rows * width);
      Floats inverse(static_cast<std::size_t>(rows));
      Floats gradient_x(x.size(), 0.5f);
      Floats gradient_gain(gain.size(), 0.25f);
      Floats blocks(static_cast<std::size_t>(reduction_blocks * width), not_a_number);
      kernels.rms_norm_forward(x.data(), gain.data(), 1e-5f, rows, width, y.data(), inverse.data());
      kernels.rms_norm_apply(x.data(), gain.data(), inverse.data(), rows, width, again.data());
      kernels.rms_norm_backward(upstream.data(), x.data(), gain.data(), inverse.data(), rows, width,
                                gradient_x.data(), blocks.data(), narrowed.data());
      kernels.add_blocks(blocks.data(), width, gradient_gain.data());
      QVERIFY(y.bytes() == again.bytes());
      std::vector<double> gain_sum(gain.size(), 0.25);
      std::vector<double> gain_terms(gain.size(), 0.25);
      for (std::int64_t r = 0; r < rows; ++r) {
        const float* in = &x[static_cast<std::size_t>(r * width)];
        const float* up = &upstream[static_cast<std::size_t>(r * width)];
        double square = 0;
        double projection = 0;
        double terms = 0;
        for (std::int64_t i = 0; i < width; ++i) {
          square += double(in[i]) * in[i];
          projection += double(up[i]) * gain[std::size_t(i)] * in[i];
          terms += std::abs(double(up[i]) * gain[std::size_t(i)] * in[i]);
        }
        const double scale = 1 / std::sqrt(square / double(width) + 1e-5);
        QVERIFY(near(inverse[std::size_t(r)], scale, scale));
        for (std::int64_t i = 0; i < width; ++i) {
          const auto n = static_cast<std::size_t>(i);
          const auto at = static_cast<std::size_t>(r * width + i);
          const double normal = in[i] * scale;
          QVERIFY(
              near_activation(kernels, y.at(r * width + i), normal * gain[n], std::abs(normal * gain[n])));
          gain_sum[n] += up[i] * normal;
          gain_terms[n] += std::abs(up[i] * normal);
          const double direct = double(up[i]) * gain[n] * scale;
          const double cube = scale * scale * scale / double(width) * in[i];
          const double all = std::abs(direct) + std::abs(cube) * terms + 0.5;
          QVERIFY(near(gradient_x[at], 0.5 + direct - projection * cube, all));
          QVERIFY(
              near_activation(kernels, narrowed.at(r * width + i), gradient_x[at], std::abs(gradient_x[at])));
        }
      }
      for (std::size_t i = 0; i < gain.size(); ++i)
        QVERIFY(near(gradient_gain[i], gain_sum[i], gain_terms[i]));
    }
  }

  void rms_norm_of_too_large_values_is_nan_data() { table_rows(); }
  void rms_norm_of_too_large_values_is_nan() {
    NS_TABLE;
    for (const float bad : {1e20f, infinity, not_a_number}) {
      Floats x = normals(3 * 40, 1);
      x[45] = bad;
      const Floats gain(40, 1);
      Floats inverse(3);
      Activations y(kernels, 3 * 40);
      kernels.rms_norm_forward(x.data(), gain.data(), 1e-5f, 3, 40, y.data(), inverse.data());
      for (std::int64_t i = 0; i < 40; ++i) {
        QVERIFY(std::isfinite(y.at(i)) && std::isnan(y.at(40 + i)) && std::isfinite(y.at(80 + i)));
      }
    }
  }

  void rope_data() { table_rows(); }
  void rope() {
    NS_TABLE;
    const std::int64_t heads = 3;
    for (const std::int64_t dim : {2, 10, 32, 64, 128}) {
      const std::int64_t rows = 50;
      const std::int64_t stride = heads * dim + 7;
      const std::int64_t half = dim / 2;
      const Floats cosine = normals(60 * half, 1);
      const Floats sine = normals(60 * half, 2);
      const Activations x(kernels, normals(rows * stride, 3));
      for (const float direction : {1.0f, -1.0f}) {
        Activations turned = x;
        kernels.rope(turned.data(), rows, stride, heads, dim, 20, 5, cosine.data(), sine.data(), direction);
        for (std::int64_t r = 0; r < rows; ++r) {
          for (std::int64_t c = 0; c < stride; ++c) {
            const std::int64_t at = r * stride + c;
            if (c >= heads * dim) {
              QCOMPARE(turned.at(at), x.at(at));
              continue;
            }
            const std::int64_t i = c % dim;
            const std::int64_t angle = (5 + r % 20) * half + i % half;
            const double a = x.at(at) * cosine[std::size_t(angle)];
            const double b = x.at(i < half ? at + half : at - half) * sine[std::size_t(angle)] * direction;
            QVERIFY(
                near_activation(kernels, turned.at(at), i < half ? a - b : a + b, std::abs(a) + std::abs(b)));
          }
        }
      }
    }
  }

  void swiglu_data() { table_rows(); }
  void swiglu() {
    NS_TABLE;
    for (const auto [rows, width] : sizes) {
      Floats values = normals(rows * 2 * width, 1, 4);
      values[0] = 200;  // and a gate that no exponential can hold
      if (rows > 1) values[std::size_t(2 * width)] = -200;
      const Activations gate_up(kernels, values);
      const Activations upstream(kernels, normals(rows * width, 2));
      const Floats weight = normals(rows, 3);
      Activations activation(kernels, rows * width);
      Activations gradient = gate_up;
      Activations weighted = upstream;
      Floats gradient_weight(static_cast<std::size_t>(rows));
      Activations forward_input = gate_up;
      kernels.swiglu_forward(forward_input.data(), rows, width, activation.data());
      kernels.swiglu_backward(gradient.data(), weighted.data(), weight.data(), rows, width,
                              gradient_weight.data());
      for (std::int64_t r = 0; r < rows; ++r) {
        double sum = 0;
        double terms = 0;
        const double w = weight[std::size_t(r)];
        for (std::int64_t i = 0; i < width; ++i) {
          const std::int64_t at = r * width + i;
          const std::int64_t gate_at = r * 2 * width + i;
          const double g = gate_up.at(gate_at);
          const double u = gate_up.at(gate_at + width);
          const double d = upstream.at(at);
          const double s = sigmoid(g);
          const double y = g * s * u;
          const double slope = s + g * s * (1 - s);
          const double slope_terms = s + std::abs(g) * s;
          QVERIFY(near_activation(kernels, activation.at(at), y, std::abs(y)));
          QVERIFY(near_activation(kernels, weighted.at(at), w * y, std::abs(w * y)));
          QVERIFY(near_activation(kernels, gradient.at(gate_at), w * d * u * slope,
                                  std::abs(w * d * u) * slope_terms));
          QVERIFY(
              near_activation(kernels, gradient.at(gate_at + width), w * d * g * s, std::abs(w * d * g * s)));
          sum += d * y;
          terms += std::abs(d * y);
        }
        QVERIFY(near(gradient_weight[std::size_t(r)], sum, terms));
      }
    }
  }

  void swiglu_passes_on_what_is_not_a_number_data() { table_rows(); }
  void swiglu_passes_on_what_is_not_a_number() {
    NS_TABLE;
    Floats values(2 * 40, 1);
    values[3] = not_a_number;       // gate
    values[40 + 5] = not_a_number;  // up
    values[7] = infinity;
    Activations gate_up(kernels, values);
    Activations y(kernels, 40);
    kernels.swiglu_forward(gate_up.data(), 1, 40, y.data());
    for (std::int64_t i = 0; i < 40; ++i) QCOMPARE(std::isnan(y.at(i)), i == 3 || i == 5);
    QCOMPARE(y.at(7), double(infinity));
  }

  void conversions_data() { table_rows(); }
  void conversions() {
    NS_TABLE;
    for (const std::int64_t count : {1, 15, 33, 5000, 20001}) {
      Floats values = normals(count, 1);
      const Floats special = {
          not_a_number, infinity, -infinity, 1.00390625f /* tie, down */, 1.01171875f /* tie, up */,
          -0.0f,        FLT_MAX,  3e-38f};
      for (std::size_t i = 0; i < special.size() && i < values.size(); ++i) values[i] = special[i];
      const Activations expected(kernels, values);
      Activations narrow(kernels, count);
      Floats wide(values.size());
      kernels.narrow(values.data(), count, narrow.data());
      kernels.widen(narrow.data(), count, wide.data());
      for (std::int64_t i = 0; i < count; ++i) {
        const double value = narrow.at(i);
        QVERIFY(std::isnan(value) ? std::isnan(expected.at(i)) : value == expected.at(i));
        QVERIFY(std::isnan(value) ? std::isnan(wide[std::size_t(i)]) : value == wide[std::size_t(i)]);
      }
    }
  }

  void moving_rows_data() { table_rows(); }
  void moving_rows() {
    NS_TABLE;
    for (const auto [rows, width] : sizes) {
      const std::int64_t sources = rows + 2;
      const Floats source = normals(sources * width, 1);
      Activations activations(kernels, source);
      const Ints index = random_ints(rows, 2, sources);
      Floats gathered(static_cast<std::size_t>(rows * width));
      Activations moved(kernels, rows * width);
      Activations narrowed(kernels, rows * width);
      kernels.gather_rows(source.data(), index.data(), rows, width, gathered.data());
      kernels.gather_activations(activations.data(), index.data(), rows, width, moved.data());
      kernels.gather_narrow(source.data(), index.data(), rows, width, narrowed.data());
      for (std::int64_t at = 0; at < rows * width; ++at) {
        const std::int64_t from = index[std::size_t(at / width)] * width + at % width;
        QCOMPARE(gathered[std::size_t(at)], source[std::size_t(from)]);
        QCOMPARE(moved.at(at), activations.at(from));
        QCOMPARE(narrowed.at(at), activations.at(from));
      }
    }
  }

  void combining_rows_data() { table_rows(); }
  void combining_rows() {
    NS_TABLE;
    for (const auto [rows, width] : sizes) {
      const std::int64_t choices = 3;
      Activations source(kernels, normals((rows + 2) * width, 1));
      Ints index = random_ints(rows * choices, 2, rows + 2);
      for (std::size_t i = 1; i < index.size(); i += 5) index[i] = -1;
      const Floats weight = normals(rows * choices, 3);
      for (const float* weights : {weight.data(), static_cast<const float*>(nullptr)}) {
        const Floats before = normals(rows * width, 4);
        Floats target = before;
        kernels.combine_rows(source.data(), index.data(), weights, choices, rows, width, target.data());
        for (std::int64_t at = 0; at < rows * width; ++at) {
          double sum = before[std::size_t(at)];
          double terms = std::abs(sum);
          for (std::int64_t j = 0; j < choices; ++j) {
            const std::size_t choice = std::size_t(at / width * choices + j);
            if (index[choice] < 0) continue;
            const double term =
                (weights != nullptr ? weights[choice] : 1.0f) * source.at(index[choice] * width + at % width);
            sum += term;
            terms += std::abs(term);
          }
          QVERIFY(near(target[std::size_t(at)], sum, terms));
        }
      }
    }
  }

  void rows_into_a_table_and_products_of_rows_data() { table_rows(); }
  void rows_into_a_table_and_products_of_rows() {
    NS_TABLE;
    for (const auto [rows, width] : sizes) {
      const Floats a = normals(rows * width, 1);
      const Floats b = normals(rows * width, 2);
      const Floats weight = normals(rows, 3);
      const Ints token = random_ints(rows, 4, 9);
      Floats scaled(a.size());
      Floats products(weight.size());
      Floats sums(static_cast<std::size_t>(9 * width), 0.5f);
      kernels.scale_rows(a.data(), weight.data(), rows, width, scaled.data());
      kernels.dot_rows(a.data(), b.data(), rows, width, products.data());
      kernels.scatter_add_rows(a.data(), token.data(), rows, width, 9, sums.data());
      std::vector<double> expected(sums.size(), 0.5);
      std::vector<double> terms(sums.size(), 0.5);
      for (std::int64_t r = 0; r < rows; ++r) {
        double product = 0;
        double size = 0;
        for (std::int64_t i = 0; i < width; ++i) {
          const auto at = static_cast<std::size_t>(r * width + i);
          const auto to = static_cast<std::size_t>(token[std::size_t(r)] * width + i);
          QCOMPARE(scaled[at], a[at] * weight[std::size_t(r)]);
          product += double(a[at]) * b[at];
          size += std::abs(double(a[at]) * b[at]);
          expected[to] += a[at];
          terms[to] += std::abs(a[at]);
        }
        QVERIFY(near(products[std::size_t(r)], product, size));
      }
      for (std::size_t i = 0; i < sums.size(); ++i) QVERIFY(near(sums[i], expected[i], terms[i]));
    }
  }

  void cross_entropy_data() { table_rows(); }
  void cross_entropy() {
    NS_TABLE;
    for (const auto [rows, width] : sizes) {
      const Floats logits = normals(rows * width, 1, 8);
      Ints target = random_ints(rows, 2, width);
      if (rows > 1) target[1] = -1;
      Floats log_sum(static_cast<std::size_t>(rows));
      Floats loss(static_cast<std::size_t>(rows));
      Activations gradient(kernels, rows * width);
      kernels.cross_entropy_forward(logits.data(), target.data(), rows, width, log_sum.data(), loss.data());
      kernels.cross_entropy_backward(logits.data(), target.data(), log_sum.data(), rows, width,
                                     gradient.data());
      for (std::int64_t r = 0; r < rows; ++r) {
        const float* row = &logits[static_cast<std::size_t>(r * width)];
        const std::int32_t hit = target[std::size_t(r)];
        double sum = 0;
        for (std::int64_t i = 0; i < width; ++i) sum += std::exp(double(row[i]));
        const double log = std::log(sum);
        QVERIFY(near(log_sum[std::size_t(r)], log, std::abs(log) + 1));
        QVERIFY(near(loss[std::size_t(r)], hit < 0 ? 0 : log - row[hit], std::abs(log) + 10));
        for (std::int64_t i = 0; i < width; ++i) {
          const double p = hit < 0 ? 0 : std::exp(row[i] - log);
          const double terms =
              p * (1 + std::abs(log)) + (i == hit ? 1 : 0);  // an error of log_sum is one of p
          QVERIFY(near_activation(kernels, gradient.at(r * width + i), i == hit ? p - 1 : p, terms));
        }
      }
    }
  }

  void cross_entropy_of_extreme_logits_data() { table_rows(); }
  void cross_entropy_of_extreme_logits() {
    NS_TABLE;
    Floats logits(3 * 37, -1e30f);
    logits[4] = 1e30f;               // one certain answer
    logits[37 + 36] = not_a_number;  // in the last, shorter vector
    logits[2 * 37] = infinity;
    const Ints target = {4, 0, 1};
    Floats log_sum(3);
    Floats loss(3);
    kernels.cross_entropy_forward(logits.data(), target.data(), 3, 37, log_sum.data(), loss.data());
    QCOMPARE(loss[0], 0.0f);
    QVERIFY(std::isnan(loss[1]));
    QVERIFY(!std::isfinite(loss[2]));
  }

  void same_bits_on_any_number_of_threads_data() { table_rows(); }
  void same_bits_on_any_number_of_threads() {
    NS_TABLE;
    std::vector<std::vector<char>> results;
    for (const int threads : {1, 2, 3}) {
      omp_set_num_threads(threads);
      results.push_back(everything(kernels));
    }
    QVERIFY(results[0] == results[1]);
    QVERIFY(results[0] == results[2]);
  }

 private:
  // The bits of what the kernels with sums or ranges leave behind, at a size worth several threads.
  static std::vector<char> everything(const Kernels& kernels) {
    const std::int64_t rows = 77;
    const std::int64_t width = 333;
    const std::int64_t count = rows * width;
    const Floats x = normals(count, 1);
    const Floats upstream = normals(count, 2);
    const Floats gain = normals(width, 3);
    const Ints index = random_ints(rows, 4, rows);
    Activations y(kernels, count);
    Activations narrowed(kernels, count);
    Activations gate_up(kernels, normals(2 * count, 5, 3));
    Activations gradient(kernels, upstream);
    Activations activation(kernels, count);
    Floats sums(static_cast<std::size_t>(count));
    Floats blocks(static_cast<std::size_t>(reduction_blocks * width));
    Floats gain_gradient(gain.size());
    Floats per_row(static_cast<std::size_t>(4 * rows));
    AdamwState state(count);
    kernels.rms_norm_forward(x.data(), gain.data(), 1e-5f, rows, width, y.data(), per_row.data());
    kernels.rms_norm_backward(upstream.data(), x.data(), gain.data(), per_row.data(), rows, width,
                              sums.data(), blocks.data(), narrowed.data());
    kernels.add_blocks(blocks.data(), width, gain_gradient.data());
    kernels.combine_rows(y.data(), index.data(), nullptr, 1, rows, width, sums.data());
    kernels.scatter_add_rows(x.data(), index.data(), rows, width, rows, sums.data());
    kernels.cross_entropy_forward(x.data(), index.data(), rows, width, &per_row[77], &per_row[154]);
    kernels.swiglu_forward(gate_up.data(), rows, width, activation.data());
    kernels.swiglu_backward(gate_up.data(), gradient.data(), per_row.data(), rows, width, &per_row[231]);
    kernels.narrow(upstream.data(), count, narrowed.data());
    kernels.adamw(state.parameter.data(), state.gradient.data(), state.moment1.data(), state.moment2.data(),
                  count, scalars);
    const double squares = kernels.sum_of_squares(x.data(), count);
    std::vector<char> bits(sizeof squares);
    std::memcpy(bits.data(), &squares, sizeof squares);
    for (const Floats* values :
         {&sums, &gain_gradient, &per_row, &state.parameter, &state.moment1, &state.moment2}) {
      const char* first = reinterpret_cast<const char*>(values->data());
      bits.insert(bits.end(), first, first + values->size() * sizeof(float));
    }
    for (const Activations* values : {&y, &narrowed, &gate_up, &gradient, &activation}) {
      bits.insert(bits.end(), values->bytes().begin(), values->bytes().end());
    }
    return bits;
  }
};

NS_TEST(TestKernels)
#include "test_kernels.moc"
