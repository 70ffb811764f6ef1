// Robust aggregation makes the same bits on every instruction set, for every order of arrival and in every rounding
// mode: nodes compare the hashes of what they make.
#include <QTest>
#include <cfenv>
#include <cmath>
#include <vector>

#include "core/crypto/hash.h"
#include "tests/support/test_main.h"
#include "tests/unit/outer/same_bits.h"
#include "tests/unit/outer/sample_deltas.h"

using namespace neuroshard;                  // NOLINT
using namespace neuroshard::outer;           // NOLINT
using namespace neuroshard::outer::samples;  // NOLINT

class TestAggregateBits : public QObject {
  Q_OBJECT

 private Q_SLOTS:
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
};

NS_TEST(TestAggregateBits)
#include "test_aggregate_bits.moc"
