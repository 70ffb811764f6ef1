// Robust aggregation: every rule against the oracle, the rule that follows from the number of contributors, and the
// limits.
#include <QTest>
#include <cmath>
#include <vector>

#include "tests/support/test_main.h"
#include "tests/unit/outer/same_bits.h"
#include "tests/unit/outer/sample_deltas.h"

using namespace neuroshard;                  // NOLINT
using namespace neuroshard::outer;           // NOLINT
using namespace neuroshard::outer::samples;  // NOLINT

class TestAggregate : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void rules_match_the_oracle_data() {
    QTest::addColumn<int>("rule");
    QTest::addColumn<bool>("clip");
    QTest::addColumn<bool>("mixing");
    QTest::addColumn<int>("n");
    for (const Rule rule : all_rules)
      for (const bool clip : {false, true})
        for (const bool mixing : {false, true})
          for (const int n : {5, 8, 11, 16, 17, 23})
            QTest::addRow("%s%s%s %d", std::string(to_string(rule)).c_str(), clip ? " clip" : "",
                          mixing ? " mixing" : "", n)
                << int(rule) << clip << mixing << n;
  }
  void rules_match_the_oracle() {
    QFETCH(int, rule);
    QFETCH(bool, clip);
    QFETCH(bool, mixing);
    QFETCH(int, n);
    const std::size_t f = default_byzantine(static_cast<std::size_t>(n));
    const Deltas deltas(static_cast<std::size_t>(n), 1003, static_cast<std::uint64_t>(n));
    std::vector<oracle::Vector> rows = deltas.as_oracle();
    if (clip) rows = oracle::clip(rows);
    if (mixing) rows = oracle::mix(rows, f);
    oracle::Vector expected;
    switch (Rule(rule)) {
      case Rule::WeightedMean: {
        std::vector<double> tokens;
        for (const Contribution& c : deltas.contributions) tokens.push_back(static_cast<double>(c.tokens));
        expected = oracle::mean(rows, tokens);
        break;
      }
      case Rule::TrimmedMean: expected = oracle::trimmed_mean(rows, f); break;
      case Rule::CoordinateMedian: expected = oracle::median(rows); break;
      case Rule::Krum: expected = oracle::krum(rows, f, 1); break;
      case Rule::MultiKrum: expected = oracle::krum(rows, f, rows.size() - f); break;
      case Rule::GeometricMedian: expected = oracle::geometric_median(rows, 32); break;
      case Rule::CenteredClipping: expected = oracle::centered_clipping(rows, 10); break;
    }
    AggregateReport report;
    const std::vector<float> out =
        result_of(with(Rule(rule), clip, mixing, f), deltas.contributions, 1003, &report);
    const double scale = oracle::norm(expected) / std::sqrt(1003.0);
    for (std::size_t c = 0; c < out.size(); ++c)
      if (!(std::abs(out[c] - expected[c]) <= 2e-6 * scale))
        QFAIL(qPrintable(QString("value %1 is %2, not %3").arg(c).arg(double{out[c]}).arg(expected[c])));
    QCOMPARE(report.counted, rows.size());
    QCOMPARE(report.ran.rule, Rule(rule));
    QCOMPARE(report.ran.clip_to_median_norm, clip);
    QCOMPARE(report.ran.nearest_neighbour_mixing, mixing);
  }

  // Any share may be cut off, not just that of Byzantine peers.
  void other_shares_are_cut_off() {
    for (const std::size_t n : {8u, 13u, 16u, 19u})
      for (const bool mixing : {false, true}) {
        const Deltas deltas(n, 1003, n);
        AggregationOptions options = with(Rule::TrimmedMean, false, mixing);
        options.trim_fraction = 0.13;
        AggregateReport report;
        const std::vector<float> out = result_of(options, deltas.contributions, 1003, &report);
        QCOMPARE(report.trimmed, n < 16 ? std::size_t{1} : std::size_t{2});
        std::vector<oracle::Vector> rows = deltas.as_oracle();
        if (mixing) rows = oracle::mix(rows, default_byzantine(n));
        const oracle::Vector expected = oracle::trimmed_mean(rows, report.trimmed);
        for (std::size_t c = 0; c < out.size(); ++c) QVERIFY(std::abs(double{out[c]} - expected[c]) <= 1e-8);
      }
  }

  void the_rule_follows_the_number() {
    for (std::size_t n = 1; n <= 20; ++n) {
      const Deltas deltas(n, 40, n);
      AggregateReport report;
      const std::vector<float> out = result_of({}, deltas.contributions, 40, &report);
      QCOMPARE(report.too_few_to_vote, n >= 2 && n <= 4);
      QCOMPARE(report.ran.rule, n <= 4   ? Rule::WeightedMean
                                : n <= 7 ? Rule::CenteredClipping
                                         : Rule::TrimmedMean);
      QCOMPARE(report.ran.clip_to_median_norm, n >= 5);
      QCOMPARE(report.ran.nearest_neighbour_mixing, n >= 8);
      QCOMPARE(report.f, n >= 5 ? n / 4 : 0);
      QCOMPARE(report.trimmed, n >= 8 ? n / 4 : 0);
      if (n == 1) QVERIFY(same_bits(out, deltas.rows[0]));
      AggregationOptions sparse;
      sparse.sparse = true;
      result_of(sparse, deltas.contributions, 40, &report);
      QCOMPARE(report.ran.rule, n <= 4 ? Rule::WeightedMean : Rule::CenteredClipping);
      QCOMPARE(report.ran.nearest_neighbour_mixing, n >= 8);
    }
  }

  void nothing_is_no_step() {
    std::vector<float> out(3);
    const auto report = aggregate({}, {}, plenty, out);
    QVERIFY(report.ok());
    QCOMPARE(report->counted, std::size_t{0});
  }

  void limits_are_errors() {
    const Deltas deltas(8, 20, 1);
    QVERIFY(!is_error(with(Rule::TrimmedMean, true, true, 3), deltas));
    QVERIFY(is_error(with(Rule::TrimmedMean, true, true, 4), deltas));
    QVERIFY(is_error(with(Rule::CenteredClipping, true, false, 4), deltas));
    QVERIFY(!is_error(with(Rule::Krum, true, false, 2), deltas));
    QVERIFY(is_error(with(Rule::Krum, true, false, 3), deltas));
    QVERIFY(is_error(with(Rule::MultiKrum, true, false, 3), deltas));
    QVERIFY(is_error(with(Rule::Krum, true, false), Deltas(4, 20, 1)));
    AggregationOptions bad;
    bad.trim_fraction = 0.5;
    QVERIFY(is_error(bad, deltas));
    bad.trim_fraction = NAN;
    QVERIFY(is_error(bad, deltas));
    std::vector<float> out(20);
    QVERIFY(!aggregate({}, deltas.contributions, 0, out).ok());
    QVERIFY(!aggregate({}, deltas.contributions, plenty, Span<float>(out).first(0)).ok());
    const std::vector<Contribution> many(max_contributions + 1, deltas.contributions[0]);
    QVERIFY(!aggregate({}, many, plenty, out).ok());
  }

  // A trimmed mean of fewer than ten trims nothing: it is the mean, and not the mean of nothing.
  void trimming_nothing_is_the_mean() {
    const Deltas deltas(8, 100, 2);
    AggregationOptions options = with(Rule::TrimmedMean, false, false);
    options.trim_fraction = default_trim_fraction;
    const std::vector<float> out = result_of(options, deltas.contributions, 100);
    const oracle::Vector expected = oracle::mean(deltas.as_oracle());
    for (std::size_t c = 0; c < out.size(); ++c) QCOMPARE(out[c], static_cast<float>(expected[c]));
    const Deltas ten(10, 100, 2);
    AggregateReport report;
    result_of(options, ten.contributions, 100, &report);
    QCOMPARE(report.trimmed, std::size_t{1});
  }

  void no_liars_is_the_exact_weighted_mean() {
    const Deltas deltas(9, 100, 3);
    std::vector<double> tokens;
    for (const Contribution& c : deltas.contributions) tokens.push_back(static_cast<double>(c.tokens));
    const oracle::Vector expected = oracle::mean(deltas.as_oracle(), tokens);
    for (const Rule rule : all_rules) {
      AggregateReport report;
      const std::vector<float> out = result_of(with(rule, true, true, 0), deltas.contributions, 100, &report);
      QCOMPARE(report.ran.rule, Rule::WeightedMean);
      for (std::size_t c = 0; c < out.size(); ++c) QCOMPARE(out[c], static_cast<float>(expected[c]));
    }
  }
};

NS_TEST(TestAggregate)
#include "test_aggregate.moc"
