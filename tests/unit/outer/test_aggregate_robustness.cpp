// A few contributors can't turn the step of all: neither with tokens that they claim, nor with values that are no
// numbers, nor with long deltas, nor with lies.
#include <QTest>
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/test_main.h"
#include "tests/unit/outer/same_bits.h"
#include "tests/unit/outer/sample_deltas.h"

using namespace neuroshard;                  // NOLINT
using namespace neuroshard::outer;           // NOLINT
using namespace neuroshard::outer::samples;  // NOLINT

namespace {

double cosine(const std::vector<float>& a, const std::vector<float>& b) {
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t c = 0; c < a.size(); ++c) {
    ab += double{a[c]} * b[c];
    aa += double{a[c]} * a[c];
    bb += double{b[c]} * b[c];
  }
  return ab / std::sqrt(aa * bb);
}

}  // namespace

class TestAggregateRobustness : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  // One that claims 10^12 tokens weighs twice the median at most, and no more than the round allows.
  void claimed_tokens_are_capped() {
    Deltas deltas(4, 10, 4);
    deltas.contributions[3].tokens = 1'000'000'000'000;
    AggregateReport report;
    const std::vector<float> out = result_of({}, deltas.contributions, 10, &report);
    QCOMPARE(report.judged[3].weight, std::uint64_t{2 * 1010});
    QCOMPARE(report.judged[3].tokens, std::uint64_t{1'000'000'000'000});
    QVERIFY(report.judged[3].share < 0.41);
    const oracle::Vector expected = oracle::mean(deltas.as_oracle(), {1000, 1010, 1020, 2020});
    for (std::size_t c = 0; c < out.size(); ++c) QCOMPARE(out[c], static_cast<float>(expected[c]));

    std::vector<float> other(10);
    const auto tight = aggregate({}, deltas.contributions, 1005, other);
    QVERIFY(tight.ok());
    QCOMPARE(tight->judged[0].weight, std::uint64_t{1000});
    QCOMPARE(tight->judged[3].weight, std::uint64_t{1005});
    for (Contribution& c : deltas.contributions) c.tokens = std::numeric_limits<std::uint64_t>::max();
    const auto all = aggregate({}, deltas.contributions, std::numeric_limits<std::uint64_t>::max(), other);
    QVERIFY(all.ok());
    QCOMPARE(all->judged[0].share, 0.25);
  }

  void bad_contributions_are_left_out() {
    for (const bool clip : {false, true}) {
      Deltas deltas(9, 50, 5);
      deltas.rows[1][49] = NAN;  // in the rest behind the whole steps
      deltas.rows[2][3] = std::numeric_limits<float>::infinity();
      const std::vector<float> small(49, 1.0f);
      deltas.contributions[4].delta = small;
      deltas.contributions[5].tokens = 0;
      deltas.contributions[6].id = deltas.contributions[7].id;
      std::vector<Contribution> good{deltas.contributions[0], deltas.contributions[3],
                                     deltas.contributions[8]};
      for (const Rule rule :
           {Rule::WeightedMean, Rule::TrimmedMean, Rule::CoordinateMedian, Rule::CenteredClipping}) {
        AggregateReport report;
        const std::vector<float> out = result_of(with(rule, clip, false), deltas.contributions, 50, &report);
        QCOMPARE(report.counted, std::size_t{3});
        QVERIFY(same_bits(out, result_of(with(rule, clip, false), good, 50)));
        const Refusal expected[] = {Refusal::None,        Refusal::NotFinite,   Refusal::NotFinite,
                                    Refusal::None,        Refusal::WrongSize,   Refusal::NoTokens,
                                    Refusal::DuplicateId, Refusal::DuplicateId, Refusal::None};
        for (std::size_t i = 0; i < 9; ++i) {
          QCOMPARE(report.judged[i].refusal, expected[i]);
          QCOMPARE(report.judged[i].share > 0, expected[i] == Refusal::None);
        }
      }
    }
    Deltas bad(5, 50, 5);
    for (auto& row : bad.rows) row[0] = NAN;
    AggregateReport report;
    result_of({}, bad.contributions, 50, &report);
    QCOMPARE(report.counted, std::size_t{0});
  }

  // f counts the refused: senders of NaN don't stop a round that is set to withstand them.
  void the_refused_are_liars_found() {
    Deltas deltas(10, 50, 5);
    const AggregationOptions four = with(Rule::TrimmedMean, true, true, 4);
    AggregateReport report;
    const std::size_t expected[] = {4, 3, 2, 1, 1};
    for (std::size_t bad = 0; bad <= 4; ++bad) {
      result_of(four, deltas.contributions, 50, &report);
      QCOMPARE(report.counted, 10 - bad);
      QCOMPARE(report.f, expected[bad]);
      deltas.rows[bad][7] = NAN;
    }
    QVERIFY(is_error(with(Rule::TrimmedMean, true, true, 5), Deltas(10, 50, 5)));
  }

  void long_deltas_are_clipped_to_the_median() {
    Deltas deltas(8, 200, 6);
    for (float& value : deltas.rows[3]) value *= 1e30f;
    AggregateReport report;
    const std::vector<float> out = result_of({}, deltas.contributions, 200, &report);
    for (const Judged& judged : report.judged)
      QVERIFY(judged.norm * double{judged.clip_factor} <= report.median_norm * (1 + 1e-6));
    QVERIFY(report.judged[3].clip_factor < 1e-28f);
    QCOMPARE(report.judged[0].clip_factor, 1.0f);
    for (const float value : out) QVERIFY(std::abs(value) < 0.02f);
  }

  // Two to four contributors are too few for a robust rule. The norms of earlier rounds bound each of them.
  void few_are_clipped_to_the_norm_of_earlier_rounds() {
    for (std::size_t n = 1; n <= 6; ++n) {
      Deltas deltas(n, 300, 11);
      for (float& value : deltas.rows[n - 1]) value *= -1000.0f;
      std::vector<double> tokens, norms;
      for (std::size_t i = 0; i < n; ++i) {
        tokens.push_back(static_cast<double>(deltas.contributions[i].tokens));
        double square = 0;
        for (const float value : deltas.rows[i]) square += double{value} * double{value};
        norms.push_back(std::sqrt(square));
      }
      AggregationOptions options;
      options.most_norm = 2 * norms[0];
      AggregateReport report;
      const std::vector<float> out = result_of(options, deltas.contributions, 300, &report);
      std::sort(norms.begin(), norms.end());
      QVERIFY(std::abs(report.median_norm / norms[(n - 1) / 2] - 1) < 1e-12);
      const bool few = n >= 2 && n <= 4;
      QCOMPARE(report.clipped_to == options.most_norm, few);
      if (!few) continue;
      for (const Judged& judged : report.judged)
        QVERIFY(judged.norm * double{judged.clip_factor} <= *options.most_norm * (1 + 1e-6));
      QCOMPARE(report.judged[0].clip_factor, 1.0f);
      auto clipped = deltas.as_oracle();
      for (double& value : clipped[n - 1]) value *= double{report.judged[n - 1].clip_factor};
      const oracle::Vector expected = oracle::mean(clipped, tokens);
      for (std::size_t c = 0; c < out.size(); ++c)
        QVERIFY(std::abs(out[c] - expected[c]) <= 1e-6 * (std::abs(expected[c]) + 1e-6));
      // A rule that the profile names has no such clip, nor has the mean of f = 0.
      for (const AggregationOptions& other :
           {with(Rule::WeightedMean, false, false), with(Rule::WeightedMean, false, false, 0)}) {
        AggregationOptions named = other;
        named.most_norm = options.most_norm;
        result_of(named, deltas.contributions, 300, &report);
        QVERIFY(!report.clipped_to && report.judged[n - 1].clip_factor == 1.0f);
      }
    }
    for (const double bad : {0.0, -1.0, double{NAN}, double{std::numeric_limits<float>::infinity()}}) {
      AggregationOptions options;
      options.most_norm = bad;
      QVERIFY(is_error(options, Deltas(3, 20, 1)));
    }
  }

  // Copies and zeros: distances of nothing, ties, a median of zero.
  void degenerate_sets_stay_finite() {
    Deltas deltas(9, 33, 8);
    for (std::size_t i = 1; i < 9; ++i) deltas.rows[i] = deltas.rows[0];
    for (const Rule rule : all_rules)
      for (const bool mixing : {false, true}) {
        const std::vector<float> out = result_of(with(rule, true, mixing), deltas.contributions, 33);
        for (std::size_t c = 0; c < 33; ++c)
          QVERIFY(std::abs(out[c] - deltas.rows[0][c]) <= 1e-6f * std::abs(deltas.rows[0][c]));
      }
    for (std::size_t i = 0; i < 6; ++i) deltas.rows[i].assign(33, 0.0f);
    for (const Rule rule : all_rules)
      for (const bool mixing : {false, true})
        for (const float value : result_of(with(rule, true, mixing), deltas.contributions, 33))
          QCOMPARE(value, 0.0f);
  }

  // The purpose of it all: two of eight send ten times the opposite.
  void two_liars_of_eight_do_not_turn_the_step() {
    Deltas deltas(8, 2000, 9);
    Rng rng(10);
    std::vector<float> honest(2000, 0.0f);
    for (std::size_t i = 0; i < 6; ++i)
      for (std::size_t c = 0; c < 2000; ++c) honest[c] += deltas.rows[i][c] / 6;
    for (std::size_t i = 6; i < 8; ++i)
      for (std::size_t c = 0; c < 2000; ++c) deltas.rows[i][c] = -10 * honest[c];
    QVERIFY(cosine(result_of({}, deltas.contributions, 2000), honest) > 0.8);
    QVERIFY(cosine(result_of(with(Rule::WeightedMean, false, false), deltas.contributions, 2000), honest) <
            0);
  }

  // Why sparse deltas have a rule of their own: where most send nothing, the middle value is nothing.
  void coordinate_rules_lose_sparse_deltas() {
    Deltas deltas(9, 2000, 11);
    Rng rng(12);
    for (auto& row : deltas.rows)
      for (float& value : row)
        if (rng.below(10) != 0) value = 0;
    const auto length = [](const std::vector<float>& v) { return oracle::norm({v.begin(), v.end()}); };
    const double mean = length(result_of(with(Rule::WeightedMean, true, false), deltas.contributions, 2000));
    AggregationOptions sparse;
    sparse.sparse = true;
    QVERIFY(length(result_of(sparse, deltas.contributions, 2000)) > 0.5 * mean);
    QVERIFY(length(result_of(with(Rule::CoordinateMedian, true, false), deltas.contributions, 2000)) <
            0.02 * mean);
  }
};

NS_TEST(TestAggregateRobustness)
#include "test_aggregate_robustness.moc"
