// The random stream is part of the protocol: golden values from an independent Python implementation of
// SplitMix64, xoshiro256**, Lemire's bound and the sum of twelve uniforms.
#include <QtTest>
#include <array>
#include <cmath>

#include "core/base/rng.h"
#include "tests/support/test_main.h"

using namespace neuroshard;

class TestRng : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void seeding_and_stream();
  void published_reference_sequence();
  void seed_of_32_bytes_is_the_state();
  void bounded_uniform_and_normal_streams();
  void a_state_continues_the_stream();
  void normal_has_its_moments_and_bounds();
  void below_is_uniform();
};

namespace {

template <std::size_t N>
void compare_stream(Rng& rng, const std::array<std::uint64_t, N>& expected) {
  for (const std::uint64_t value : expected) QCOMPARE(rng.next(), value);
}

}  // namespace

void TestRng::seeding_and_stream() {
  Rng zero(0);
  QCOMPARE(zero.state(),
           (Rng::State{0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f, 0xf88bb8a8724c81ec}));
  compare_stream<5>(zero, {0x99ec5f36cb75f2b4, 0xbf6e1f784956452a, 0x1a5f849d4933e6e0, 0x6aa594f1262d2d2c,
                           0xbba5ad4a1f842e59});
  Rng other(42);
  compare_stream<5>(other, {0x15780b2e0c2ec716, 0x6104d9866d113a7e, 0xae17533239e499a1, 0xecb8ad4703b360a1,
                            0xfde6dc7fe2ec5e64});
}

void TestRng::published_reference_sequence() {
  // State 1, 2, 3, 4: the sequence that other implementations of xoshiro256** test.
  Rng rng = Rng::from_state({1, 2, 3, 4});
  compare_stream<6>(rng, {11520, 0, 1509978240, 1215971899390074240, 0x10e0b61ce1009d80, 0x0870021ce143ad00});
}

void TestRng::seed_of_32_bytes_is_the_state() {
  Hash256 seed;
  for (std::size_t i = 0; i < seed.size(); ++i) seed[i] = static_cast<std::uint8_t>(i + 1);
  Rng rng(seed);
  compare_stream<3>(rng, {0x52bc258ef861cbe8, 0xbc258ef861cb3280, 0x2d013c0ee31e1c12});
  // All zero would be a stream of zeros.
  QCOMPARE(Rng(Hash256{}).state(), Rng(0).state());
}

void TestRng::bounded_uniform_and_normal_streams() {
  Rng bounded(7);
  for (const std::uint64_t value : {7, 2, 8, 9, 9, 8, 0, 1, 4, 1, 5, 7}) QCOMPARE(bounded.below(10), value);
  // A bound just above 2^63 rejects nearly half of the draws: the same ones as the oracle.
  for (const std::uint64_t value :
       {2367621049898315487u, 1443456880271936157u, 1233180231008125398u, 1581129764374607292u}) {
    QCOMPARE(bounded.below((std::uint64_t{1} << 63) + 1), value);
  }
  Rng uniform(7);
  for (const double value :
       {0x1.66b1f5ee9df2ep-1, 0x1.1d70f6593d20ap-2, 0x1.ade3a6932a58fp-1, 0x1.f65270e63d00ep-1}) {
    QVERIFY(uniform.uniform() == value);
  }
  Rng normal(7);
  for (const float value :
       {0x1.304b84p+0f, -0x1.c59244p-1f, -0x1.7fbecep-4f, -0x1.ce64b4p+0f, 0x1.a6adfep-2f, -0x1.169c72p+0f}) {
    QVERIFY(normal.normal() == value);
  }
}

void TestRng::a_state_continues_the_stream() {
  Rng first(3);
  for (int i = 0; i < 100; ++i) first.next();
  Rng second = Rng::from_state(first.state());
  for (int i = 0; i < 100; ++i) QCOMPARE(second.next(), first.next());
}

void TestRng::normal_has_its_moments_and_bounds() {
  Rng rng(1);
  constexpr int n = 200'000;
  double sum = 0;
  double squares = 0;
  double fourth = 0;
  for (int i = 0; i < n; ++i) {
    const double x = rng.normal();
    QVERIFY(std::abs(x) < 6.0);
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
  }
  // Standard errors are 0.0022, 0.0032 and about 0.02; the sum of twelve uniforms has a fourth moment of 2.9.
  QVERIFY(std::abs(sum / n) < 0.01);
  QVERIFY(std::abs(squares / n - 1) < 0.015);
  QVERIFY(std::abs(fourth / n - 2.9) < 0.1);
}

void TestRng::below_is_uniform() {
  Rng rng(2);
  std::array<int, 6> counts{};
  constexpr int n = 60'000;
  for (int i = 0; i < n; ++i) ++counts[rng.below(6)];
  double chi_squared = 0;
  for (const int count : counts) chi_squared += (count - n / 6.0) * (count - n / 6.0) / (n / 6.0);
  QVERIFY2(chi_squared < 20.5, "beyond the 99.9 % point of five degrees of freedom");
  for (int i = 0; i < 10; ++i) QCOMPARE(rng.below(1), std::uint64_t{0});
}

NS_TEST(TestRng)
#include "test_rng.moc"
