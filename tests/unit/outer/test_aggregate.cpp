// Robust aggregation: every rule against the oracle, the same bits on every instruction set, for every order
// of arrival and in every rounding mode, and the edge rules.
#include <QTest>
#include <cfenv>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/rng.h"
#include "core/crypto/hash.h"
#include "core/outer/aggregate.h"
#include "tests/support/test_main.h"
#include "tests/unit/outer/aggregation_oracle.h"

using namespace neuroshard;
using namespace neuroshard::outer;

namespace {

constexpr std::uint64_t plenty = 1'000'000;

// n deltas of a common direction and noise; the later ones are longer, and the last two lie.
struct Deltas {
  std::vector<std::vector<float>> rows;
  std::vector<Contribution> contributions;

  Deltas(std::size_t n, std::size_t values, std::uint64_t seed) : rows(n, std::vector<float>(values)) {
    Rng rng(seed);
    std::vector<float> common(values);
    for (float& value : common) value = rng.normal();
    for (std::size_t i = 0; i < n; ++i) {
      const float length = (i + 2 >= n && n > 4) ? -3.0f : 1.0f + 0.1f * static_cast<float>(i);
      for (std::size_t c = 0; c < values; ++c)
        rows[i][c] = 1e-3f * length * (common[c] + 1.5f * rng.normal());
    }
    connect();
  }
  void connect() {
    contributions.clear();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      Contribution c;
      c.id[0] = static_cast<std::uint8_t>(i / 256);
      c.id[31] = static_cast<std::uint8_t>(i % 256);
      c.tokens = 1000 + 10 * i;
      c.delta = rows[i];
      contributions.push_back(c);
    }
  }
  std::vector<oracle::Vector> as_oracle() const {
    std::vector<oracle::Vector> result;
    for (const auto& row : rows) result.push_back({row.begin(), row.end()});
    return result;
  }
};

AggregationOptions with(Rule rule, bool clip, bool mixing, std::optional<std::size_t> f = {}) {
  AggregationOptions options;
  options.choice = RuleChoice{rule, clip, mixing};
  options.f = f;
  return options;
}

std::vector<float> result_of(const AggregationOptions& options,
                             const std::vector<Contribution>& contributions, std::size_t values,
                             AggregateReport* report = nullptr) {
  std::vector<float> out(values, -7.0f);
  const auto result = aggregate(options, contributions, plenty, out);
  if (!result.ok()) qFatal("%s", result.error().message.c_str());
  if (report) *report = *result;
  return out;
}

bool is_error(const AggregationOptions& options, const Deltas& deltas) {
  std::vector<float> out(deltas.rows[0].size());
  const auto result = aggregate(options, deltas.contributions, plenty, out);
  return !result.ok() && result.error().code == ErrorCode::InvalidArgument;
}

double cosine(const std::vector<float>& a, const std::vector<float>& b) {
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t c = 0; c < a.size(); ++c) {
    ab += double{a[c]} * b[c];
    aa += double{a[c]} * a[c];
    bb += double{b[c]} * b[c];
  }
  return ab / std::sqrt(aa * bb);
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

constexpr Rule all_rules[] = {Rule::WeightedMean, Rule::TrimmedMean,     Rule::CoordinateMedian, Rule::Krum,
                              Rule::MultiKrum,    Rule::GeometricMedian, Rule::CenteredClipping};

}  // namespace

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

  // Sums begin at zero, so what is made of minus zeros is zero, one value's mean too.
  void minus_zero_becomes_zero() {
    for (const std::size_t n : {5u, 8u, 17u}) {
      Deltas deltas(n, 64, 1);
      for (auto& row : deltas.rows) row.assign(64, -0.0f);
      for (const InstructionSet set :
           {InstructionSet::Portable, InstructionSet::Avx2, InstructionSet::Avx512}) {
        if (!is_supported(set)) continue;
        for (const Rule rule : {Rule::TrimmedMean, Rule::CoordinateMedian})
          for (const bool mixing : {false, true}) {
            AggregationOptions options = with(rule, false, mixing);
            options.instruction_set = set;
            for (const float value : result_of(options, deltas.contributions, 64))
              QVERIFY(value == 0 && !std::signbit(value));
          }
      }
    }
  }

  // 131,087 values are two chunks of sums and a rest that is no multiple of anything.
  void the_same_bits_everywhere_data() {
    QTest::addColumn<int>("n");
    for (const int n : {2, 5, 8, 16, 19}) QTest::addRow("%d", n) << n;
  }
  void the_same_bits_everywhere() {
    QFETCH(int, n);
    constexpr std::size_t values = 131'087;
    const Deltas deltas(static_cast<std::size_t>(n), values, 99);
    std::vector<Contribution> shuffled = deltas.contributions;
    Rng rng(5);
    for (std::size_t i = shuffled.size(); i > 1; --i) std::swap(shuffled[i - 1], shuffled[rng.below(i)]);
    std::vector<AggregationOptions> all{{}};
    for (const Rule rule : all_rules)
      for (const bool mixing : {false, true})
        if (n >= 5) all.push_back(with(rule, mixing, mixing));
    for (AggregationOptions options : all) {
      options.instruction_set = InstructionSet::Portable;
      const std::vector<float> expected = result_of(options, deltas.contributions, values);
      for (const InstructionSet set :
           {InstructionSet::Portable, InstructionSet::Avx2, InstructionSet::Avx512}) {
        if (!is_supported(set)) continue;
        options.instruction_set = set;
        QVERIFY2(same_bits(result_of(options, shuffled, values), expected),
                 std::string(to_string(set)).c_str());
      }
      options.instruction_set.reset();
      for (const int mode : {FE_UPWARD, FE_TOWARDZERO}) {
        std::fesetround(mode);
        const std::vector<float> out = result_of(options, deltas.contributions, values);
        std::fesetround(FE_TONEAREST);
        QVERIFY(same_bits(out, expected));
      }
    }
  }

  // Values of the protocol: another processor, compiler or library has to make the same.
  void golden_data() {
    QTest::addColumn<int>("n");
    QTest::addColumn<bool>("sparse");
    QTest::addColumn<QByteArray>("sha256");
    QTest::addRow("3 mean") << 3 << false
                            << QByteArray("5180b4f1d52f42d6d822637d6a111f662d014a34b4f8645250fb3c1752bfa400");
    QTest::addRow("6 clip, CC") << 6 << false
                                << QByteArray(
                                       "ab3cc6a3833f804981f2017a9a810c0860a4aee1d5d1f655f23101c3344a89a9");
    QTest::addRow("9 clip, NNM, trimmed mean")
        << 9 << false << QByteArray("021aeb6a9ee10c993509d4585aa3a941339bb3636508435b08be6ad04d1e2058");
    QTest::addRow("20 clip, NNM, trimmed mean")
        << 20 << false << QByteArray("8bcb1d4f6e480251da59418cd38ad6576a66e7c095337ecb6e78451cb8584a77");
    QTest::addRow("9 clip, NNM, CC")
        << 9 << true << QByteArray("9da0a9aa82923ba6f9757ef6be7a3775628480b66cf28bd60f69f0a8d6cecd1a");
  }
  void golden() {
    QFETCH(int, n);
    QFETCH(bool, sparse);
    const Deltas deltas(static_cast<std::size_t>(n), 70'001, 7);
    AggregationOptions options;
    options.sparse = sparse;
    const std::vector<float> out = result_of(options, deltas.contributions, 70'001);
    const Hash256 hash = crypto::sha256(as_bytes(Span<const float>(out)));
    QTEST(QByteArray::fromStdString(to_hex(hash)), "sha256");
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

NS_TEST(TestAggregate)
#include "test_aggregate.moc"
