// The shape from the contributed memory: swept from 0.5 GB to 10 TB.
#include <QtTest>
#include <cmath>
#include <limits>

#include "core/compute/module.h"
#include "core/compute/slot.h"
#include "core/plan/architecture.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::plan;

namespace {

constexpr std::uint64_t gigabyte = 1'000'000'000;

compute::ModelShape minimum(std::uint32_t layers, std::uint32_t hidden, std::uint32_t head_dim,
                            std::uint32_t ffn, std::uint32_t vocab, std::uint32_t sequence) {
  compute::ModelShape shape;
  shape.layers = layers;
  shape.hidden = hidden;
  shape.head_dim = head_dim;
  shape.heads = hidden / head_dim;
  shape.kv_heads = shape.heads / 4;
  shape.ffn = ffn;
  shape.experts = 8;
  shape.experts_per_token = 2;
  shape.vocab = vocab;
  shape.sequence = sequence;
  return shape;
}

GrowthRules mainnet() {
  GrowthRules rules;
  rules.minimum = minimum(8, 512, 128, 2048, 32768, 512);
  rules.batch_tokens = 2048;
  return rules;
}

GrowthRules devnet() {
  GrowthRules rules;
  rules.minimum = minimum(4, 128, 32, 256, 1024, 128);
  rules.ffn_percent = 200;
  rules.batch_tokens = 1024;
  return rules;
}

// The rule as first written: from the curve's point two layers and one unit of width less, in turn, until it fits.
compute::ModelShape shrunk_in_turn(const GrowthRules& rules, std::uint64_t bytes) {
  const double m = static_cast<double>(bytes) / 1e9;
  const auto floor_to = [](double value, std::uint32_t unit) {
    return static_cast<std::uint32_t>(value / unit) * unit;
  };
  compute::ModelShape shape = rules.minimum;
  const auto set = [&](std::uint32_t layers, std::uint32_t hidden) {
    shape.layers = std::max(layers, rules.minimum.layers);
    shape.hidden = std::max(hidden, rules.minimum.hidden);
    shape.heads = shape.hidden / shape.head_dim;
    shape.kv_heads = shape.heads / 4;
    shape.ffn = shape.hidden * rules.ffn_percent / 100;
  };
  set(std::min(64u, floor_to(8 * std::log2(m / 10 + 1), 2)),
      std::min(8192u, floor_to(256 * std::sqrt(m / 10), 512)));
  for (bool layers = true; required_bytes(training_bytes(rules, shape), 2) > bytes; layers = !layers) {
    if (shape.layers == rules.minimum.layers && shape.hidden == rules.minimum.hidden) break;
    layers ? set(shape.layers - 2, shape.hidden) : set(shape.layers, shape.hidden - 512);
  }
  return shape;
}

bool contains(const compute::ModelShape& large, const compute::ModelShape& small) {
  return large.layers >= small.layers && large.hidden >= small.hidden;
}

}  // namespace

class TestArchitecture : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void every_capacity_has_a_valid_shape_that_only_grows_data() {
    QTest::addColumn<bool>("main");
    QTest::addColumn<bool>("bf16");
    QTest::newRow("mainnet") << true << false;
    QTest::newRow("mainnet bf16") << true << true;
    QTest::newRow("devnet") << false << false;
  }
  void every_capacity_has_a_valid_shape_that_only_grows() {
    QFETCH(bool, main);
    QFETCH(bool, bf16);
    GrowthRules rules = main ? mainnet() : devnet();
    if (bf16) rules.precision = compute::Precision::Bf16;
    QVERIFY(validate(rules).ok());
    const std::uint64_t top = 10'000 * gigabyte;
    Architecture before;
    int shapes = 0;
    // Steps of 1 %, and of a tier where that is more.
    for (std::uint64_t bytes = gigabyte / 2; bytes <= top;
         bytes += std::max<std::uint64_t>(counted_bytes(bytes / 100), memory_tier_bytes)) {
      const Architecture now = choose_architecture(rules, {bytes});
      const auto& shape = now.shape;
      QVERIFY2(compute::validate(shape).ok(), qPrintable(QString::number(bytes)));
      QCOMPARE(shape.hidden % (4 * shape.head_dim), 0u);
      QCOMPARE(shape.head_dim, rules.minimum.head_dim);
      QCOMPARE(shape.kv_heads * 4, shape.heads);
      QCOMPARE(shape.ffn, shape.hidden * rules.ffn_percent / 100);
      QCOMPARE(shape.layers % 2, 0u);
      QVERIFY(contains(shape, rules.minimum) && shape.layers <= most_layers && shape.hidden <= most_hidden);
      const std::uint64_t copy =
          compute::estimate_memory(shape, rules.precision, true).total() +
          compute::estimate_workspace_bytes(shape, rules.precision, shape.sequence, 1) +
          rules.batch_tokens / shape.sequence *
              compute::estimate_activation_bytes_per_sample(shape, rules.precision, shape.sequence);
      const double room = 0.8 * static_cast<double>(bytes);
      QCOMPARE(now.state == NetworkState::Ready, 2.0 * static_cast<double>(copy) <= room);
      if (now.state == NetworkState::Forming) {
        QVERIFY(static_cast<double>(copy) <= room);
        QCOMPARE(shape.layers, rules.minimum.layers);
        QCOMPARE(shape.hidden, rules.minimum.hidden);
      }
      if (now.state == NetworkState::TooSmall) {
        // The missing bytes are exactly those up to one copy.
        QVERIFY(static_cast<double>(copy) <= 0.8 * static_cast<double>(bytes + now.missing_bytes) + 1);
        QVERIFY(static_cast<double>(copy) > 0.8 * static_cast<double>(bytes + now.missing_bytes - 2));
      }
      if (shape.layers > rules.minimum.layers || shape.hidden > rules.minimum.hidden) {
        const double m = static_cast<double>(bytes) / 1e9;
        QVERIFY(shape.hidden == rules.minimum.hidden || shape.hidden <= 256 * std::sqrt(m / 10) + 1e-6);
        QVERIFY(shape.layers == rules.minimum.layers || shape.layers <= 8 * std::log2(m / 10 + 1) + 1e-6);
      }
      if (before.copy_bytes != 0) {
        QVERIFY(contains(shape, before.shape));
        QVERIFY(now.state >= before.state);
        if (shape.layers != before.shape.layers || shape.hidden != before.shape.hidden) ++shapes;
      }
      before = now;
    }
    qInfo("%d changes of shape up to 10 TB, the last %u layers of width %u", shapes, before.shape.layers,
          before.shape.hidden);
    QVERIFY(shapes > 20);
  }

  void sums_beyond_all_numbers_are_the_largest_one() {
    const std::uint64_t each = 1'000'000'000 * gigabyte;
    const Architecture one = choose_architecture(mainnet(), {each});
    const Architecture many = choose_architecture(mainnet(), std::vector<std::uint64_t>(19, each));
    QCOMPARE(one.contributed_bytes, each);
    QCOMPARE(many.contributed_bytes, std::numeric_limits<std::uint64_t>::max());
    QVERIFY(many.state == NetworkState::Ready && many.tier == Tier::XL);
    QVERIFY(contains(many.shape, one.shape));
  }

  void it_uses_what_the_curve_and_the_memory_allow() {
    // No larger shape of the lattice that contains the chosen one by one step both fits and lies on the curve.
    const GrowthRules rules = mainnet();
    for (const std::uint64_t gb : {50, 200, 1000, 5000}) {
      const Architecture now = choose_architecture(rules, {gb * gigabyte});
      QVERIFY(now.next.has_value());
      QVERIFY(now.next->required_bytes > gb * gigabyte);
      const bool fits = 2 * now.next->copy_bytes * 10 <= gb * gigabyte * 8;
      const double m = static_cast<double>(gb);
      const bool on_curve = now.next->shape.hidden <= std::max(512.0, 256 * std::sqrt(m / 10)) &&
                            now.next->shape.layers <= std::max(8.0, 8 * std::log2(m / 10 + 1));
      QVERIFY(!fits || !on_curve);
    }
  }

  void shrinking_in_turn_would_not_only_grow() {
    const GrowthRules rules = mainnet();
    compute::ModelShape before = rules.minimum;
    int narrower = 0;
    double least = 1, sum = 0;
    int count = 0;
    for (std::uint64_t gb = 20; gb <= 10'000; gb += 1 + gb / 100) {
      const compute::ModelShape shape = shrunk_in_turn(rules, gb * gigabyte);
      if (!contains(shape, before)) ++narrower;
      before = shape;
      const double ratio = static_cast<double>(compute::model_parameter_count(
                               choose_architecture(rules, {gb * gigabyte}).shape)) /
                           static_cast<double>(compute::model_parameter_count(shape));
      least = std::min(least, ratio);
      sum += ratio;
      ++count;
    }
    qInfo(
        "shrinking in turn loses depth or width %d times as memory grows; the ladder's parameters are %.2f "
        "of its at "
        "least, %.2f on average",
        narrower, least, sum / count);
    QVERIFY(narrower > 0);
  }

  void whole_tiers_of_each_node_count() {
    QCOMPARE(counted_bytes(499'999'999), std::uint64_t{0});
    QCOMPARE(counted_bytes(1'499'999'999), std::uint64_t{1'000'000'000});
    const Architecture now = choose_architecture(mainnet(), std::vector<std::uint64_t>(100, 499'999'999));
    QCOMPARE(now.contributed_bytes, std::uint64_t{0});
    QCOMPARE(now.state, NetworkState::TooSmall);
  }

  void tiers_are_labels_on_capacity() {
    QCOMPARE(to_string(tier_of(40 * gigabyte - 1)), std::string_view("Nano"));
    QCOMPARE(to_string(tier_of(40 * gigabyte)), std::string_view("Micro"));
    QCOMPARE(to_string(tier_of(6000 * gigabyte)), std::string_view("XL"));
    QCOMPARE(next_tier_bytes(Tier::Small).value(), 400 * gigabyte);
    QVERIFY(!next_tier_bytes(Tier::XL).has_value());
  }

  void a_shape_survives_a_band_of_memory() {
    // Every upgrade survives a loss of a tenth of the memory, and a capacity that wanders by 5 % changes the shape once.
    const GrowthRules rules = mainnet();
    compute::ModelShape shape = rules.minimum;
    int upgrades = 0;
    for (std::uint64_t gb = 12; gb <= 10'000; gb += 1 + gb / 100) {
      const Change change = decide_change(rules, shape, gb * gigabyte);
      QVERIFY(change.kind != ChangeKind::Downgrade);
      if (change.kind == ChangeKind::Keep) continue;
      QVERIFY(contains(change.shape, shape));
      QVERIFY(compute::model_parameter_count(change.shape) * 10 >=
              compute::model_parameter_count(shape) * 13);
      QVERIFY(3 * training_bytes(rules, change.shape) <= gb * gigabyte);
      QVERIFY(decide_change(rules, change.shape, gb * gigabyte).kind == ChangeKind::Keep);
      QVERIFY(decide_change(rules, change.shape, gb * gigabyte / 10 * 9).kind == ChangeKind::Keep);
      shape = change.shape;
      ++upgrades;
    }
    QVERIFY2(upgrades >= 10, qPrintable(QString::number(upgrades)));
    const Change back = decide_change(rules, shape, 1000 * gigabyte);
    QVERIFY(back.kind == ChangeKind::Downgrade);
    QVERIFY(contains(shape, back.shape));
    QVERIFY(decide_change(rules, back.shape, 1000 * gigabyte).kind == ChangeKind::Keep);
    // Nothing is smaller than the minimum.
    QVERIFY(decide_change(rules, rules.minimum, gigabyte).kind == ChangeKind::Keep);
  }

  void a_fixed_model_stays() {
    GrowthRules rules = mainnet();
    rules.grows = false;
    QCOMPARE(ladder(rules).size(), std::size_t{1});
    QCOMPARE(choose_architecture(rules, {1000 * gigabyte}).shape.layers, 8u);
    QVERIFY(decide_change(rules, rules.minimum, 1000 * gigabyte).kind == ChangeKind::Keep);
  }

  void bad_rules_are_refused() {
    GrowthRules rules = mainnet();
    rules.batch_tokens = 100;
    QVERIFY(!validate(rules).ok());
    rules = mainnet();
    rules.minimum.layers = 7;
    QVERIFY(!validate(rules).ok());
    rules = mainnet();
    rules.heads_per_kv_head = 3;
    QVERIFY(!validate(rules).ok());
  }
};

NS_TEST(TestArchitecture)
#include "test_architecture.moc"
