// A network whose model changes its size: all nodes or none, whoever is killed meanwhile. NS_LONG=1 takes more seeds.
#include <QtTest>

#include <algorithm>

#include "tests/sim/holders_lab.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::sim;
using test::by_turns;
using test::ChainLab;
using test::HoldersLab;
using test::lab_second;

namespace {

constexpr std::uint32_t enough = 12, little = 1;
constexpr std::uint64_t hour = 3600;
constexpr Duration to_end = std::chrono::milliseconds(200), to_wait = std::chrono::seconds(2);
constexpr Duration to_start = std::chrono::milliseconds(500);  // at least

std::uint64_t seeds(std::uint64_t in_ci) {
  return qEnvironmentVariableIntValue("NS_LONG") != 0 ? 10 * in_ci : in_ci;
}

// The same values: what they mean is no matter of the protocol. The identity of the anchor is another one.
Expected<rounds::Anchor> resized(std::uint32_t, std::uint32_t, const rounds::OuterState& state, Spool&) {
  return std::make_shared<const rounds::OuterState>(state);
}

void grow(ChainWorldOptions* options, std::uint32_t nodes) {
  options->chain.rules.sizes = {{8, 8 * nodes}};
  options->resize = resized;
}

// Starts nodes anew whose model is of another size than the network's, as nodes do.
struct Sizes {
  explicit Sizes(ChainWorld& world) : world(world) {}
  const chain::Registry* registry(std::size_t node) const {
    if (!world.running(node)) return nullptr;
    const chain::History* history = world.chain(node).history();
    return history == nullptr ? nullptr : history->tip().registry.get();
  }
  void offer(std::uint32_t tiers) const {
    for (std::size_t node = 0; node < world.size(); ++node)
      if (world.running(node)) world.chain(node).want({std::nullopt, tiers});
  }
  // As a node does (runtime/own_model_size.h): once it has the anchors of that size, or computes none.
  void follow() {
    other_since.resize(world.size());
    const MonotonicTime at = world.world().clock().monotonic_now();
    for (std::size_t node = 0; node < world.size(); ++node) {
      const chain::Registry* now = registry(node);
      if (now == nullptr || now->size().size == world.disk(node).size) {
        other_since[node].reset();
        continue;
      }
      if (!other_since[node]) other_since[node] = at;
      const rounds::TrainingView view = world.training(node).view();
      if (at - *other_since[node] < (view.holds ? to_end : view.computes ? Duration::max() : to_wait))
        continue;
      world.disk(node).size = now->size().size;
      world.kill(node);
      const Duration pause = to_start + std::chrono::milliseconds(rng.next() % 8000);
      world.world().after(pause, [this, node] { start(node); });
    }
  }
  void start(std::size_t node) const {
    if (!world.running(node)) world.start(node);
  }
  bool all(const std::function<bool(const chain::Registry&)>& hold) const {
    for (std::size_t node = 0; node < world.size(); ++node) {
      const chain::Registry* now = registry(node);
      if (now == nullptr || !hold(*now)) return false;
    }
    return true;
  }
  bool all_have(std::uint32_t size) const {
    return all([size](const chain::Registry& now) { return now.size().size == size; });
  }
  bool run_to_size(std::uint32_t size, std::uint32_t tiers) {
    return world.run_until(
        [&] {
          offer(tiers);
          follow();
          return all_have(size);
        },
        hour * lab_second);
  }
  // All take part in rounds after it.
  bool run_on(std::uint64_t rounds) {
    const std::uint64_t to = registry(0)->round() + rounds;
    return world.run_until(
        [&] {
          follow();
          return all([to](const chain::Registry& now) { return now.round() >= to; }) &&
                 world.agreement_rate() == 1;
        },
        hour * lab_second);
  }
  ChainWorld& world;
  Rng rng{1};
  std::vector<std::optional<MonotonicTime>> other_since;  // by node
};

ChainWorldOptions four(std::uint64_t seed) {
  ChainWorldOptions options = test::lab_options(seed, 4);
  grow(&options, 4);
  return options;
}

void check_one_chain(const ChainWorld& world) {
  QCOMPARE(world.seen().conflicts, std::uint64_t{0});
  QCOMPARE(world.seen().twice, std::uint64_t{0});
  QCOMPARE(world.seen().wrong_anchors, std::uint64_t{0});
}

}  // namespace

class TestChainSizes : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void it_grows_and_shrinks_with_the_members_memory() {
    ChainLab lab(four(1));
    Sizes sizes(lab.world);
    QVERIFY2(sizes.run_to_size(1, enough), qPrintable(QString::fromStdString(lab.text("no growth"))));
    const std::uint64_t contributions = lab.world.seen().contributions;
    QVERIFY2(sizes.run_on(6), qPrintable(QString::fromStdString(lab.text("it stands still after growth"))));
    QVERIFY(lab.world.seen().contributions >= contributions + 4 * 5);
    QVERIFY(sizes.all_have(1));
    QVERIFY2(sizes.run_to_size(0, little),
             qPrintable(QString::fromStdString(lab.text("it does not shrink"))));
    QVERIFY2(sizes.run_on(3),
             qPrintable(QString::fromStdString(lab.text("it stands still after shrinking"))));
    check_one_chain(lab.world);
  }

  void holders_of_parts_grow_together() {
    HoldersLab lab(2, 6, by_turns, nullptr, 0, [](ChainWorldOptions* options) { grow(options, 6); });
    Sizes sizes(lab.world);
    QVERIFY(sizes.run_to_size(1, enough));
    QVERIFY(sizes.run_on(4));
    for (std::uint32_t row = 0; row < test::holders_rows; ++row) QVERIFY(lab.age(row) <= 2);
    check_one_chain(lab.world);
  }

  // At any moment of the change, one of them or all.
  void whoever_is_killed_has_the_old_model_or_the_new_one() {
    for (std::uint64_t seed = 1; seed <= seeds(12); ++seed) {
      Rng rng(seed);
      ChainLab lab(four(seed));
      Sizes sizes(lab.world);
      sizes.rng = Rng(seed);
      const auto changing = [&sizes] {
        sizes.offer(enough);
        sizes.follow();
        for (std::size_t node = 0; node < sizes.world.size(); ++node)
          if (const auto* now = sizes.registry(node); now != nullptr && now->size().changing) return true;
        return false;
      };
      QVERIFY2(lab.world.run_until(changing, hour * lab_second), qPrintable(QString::number(seed)));
      const std::uint64_t until = rng.next() % 3000;  // ms: the change takes a second or two
      for (std::uint64_t ms = 0; ms < until; ms += 10) {
        lab.run_for(std::chrono::milliseconds(10));
        sizes.follow();
      }
      const std::size_t killed = seed % 3 == 0 ? lab.world.size() : 1 + seed % 2;
      for (std::size_t node = 0; node < killed; ++node) lab.world.kill(node);
      lab.run_for(20 * lab_second);
      for (std::size_t node = 0; node < killed; ++node) sizes.start(node);
      QVERIFY2(sizes.run_to_size(1, enough),
               qPrintable(QString::fromStdString(lab.text("no growth after kills"))));
      QVERIFY2(sizes.run_on(3), qPrintable(QString::fromStdString(lab.text("it stands still after kills"))));
      check_one_chain(lab.world);
    }
  }

  void a_newcomer_gets_the_grown_model() {
    ChainWorldOptions options = four(3);
    options.nodes = 5;
    options.founders = 4;
    options.chain.rules.sizes = {{8, 32}};
    ChainLab lab(options, false);
    for (std::size_t node = 0; node < 4; ++node) lab.world.start(node);
    Sizes sizes(lab.world);
    QVERIFY(lab.world.run_until(
        [&] {
          sizes.offer(enough);
          sizes.follow();
          const auto* now = sizes.registry(0);
          return now != nullptr && now->size().size == 1 && now->round() > 12;
        },
        hour * lab_second));
    lab.world.start(4);
    QVERIFY2(sizes.run_on(3), qPrintable(QString::fromStdString(lab.text("the newcomer is not there"))));
    check_one_chain(lab.world);
  }

  // Half of the members have no room on the disk for it.
  void a_change_that_too_few_can_make_is_given_up() {
    bool full = true;
    HoldersLab lab(4, 6, by_turns, nullptr, 0, [&full](ChainWorldOptions* options) {
      grow(options, 6);
      options->resize = [&full](std::uint32_t row, std::uint32_t to, const rounds::OuterState& state,
                                Spool& spool) -> Expected<rounds::Anchor> {
        if (full && row == 1) return make_error(ErrorCode::Exhausted, "the disk is full; free some space");
        return resized(row, to, state, spool);
      };
    });
    Sizes sizes(lab.world);
    std::uint64_t given_up = 0;
    bool was_changing = false;
    QVERIFY(lab.world.run_until(
        [&] {
          sizes.offer(enough);
          sizes.follow();
          const auto* now = sizes.registry(0);
          if (now == nullptr) return false;
          if (was_changing && !now->size().changing) ++given_up;
          was_changing = now->size().changing;
          return given_up == 2;
        },
        hour * lab_second));
    QVERIFY(sizes.all_have(0));
    for (std::uint32_t row = 0; row < test::holders_rows; ++row) QVERIFY(lab.age(row) <= 3);
    full = false;
    QVERIFY(sizes.run_to_size(1, enough));
    QVERIFY(sizes.run_on(3));
    check_one_chain(lab.world);
  }
};

NS_TEST(TestChainSizes)
#include "test_chain_sizes.moc"
