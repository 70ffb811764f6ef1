// Members come and go, and with them rounds change between one group and two levels (rounds/level_node.h): at
// each certificate all of them change together, nobody's work counts twice, and whoever was away while it
// happened finds back. With the numbers of the SPEC: 16 members are one group, 17 are dealt into two.
#include <fmt/format.h>

#include <QtTest>

#include "core/sim/level_world.h"
#include "core/sim/soft_model.h"
#include "tests/support/test_main.h"

using namespace neuroshard;       // NOLINT
using namespace neuroshard::sim;  // NOLINT

namespace {

constexpr Duration second = std::chrono::seconds(1);
constexpr Duration round_time = 4 * second;
constexpr std::uint32_t inner_steps = 10;

std::shared_ptr<const outer::SoftTask> task() {
  static const auto made = [] {
    outer::SoftTaskOptions options;
    options.features = 32;
    options.samples = 256;
    options.held_out = 64;
    options.separation = 1;
    return *outer::SoftTask::make(options);
  }();
  return made;
}

LevelWorldOptions world_options(std::uint64_t seed, std::size_t nodes, std::size_t founders) {
  LevelWorldOptions o;
  o.seed = seed;
  o.nodes = nodes;
  o.founders = founders;
  o.initial = task()->initial_weights();
  rounds::RoundOptions& round = o.round.one;
  round.rules.network.fill(3);
  round.rules.values = o.initial.size();
  round.rules.inner_steps = inner_steps;
  round.rules.most_tokens = 2 * inner_steps * 12;
  round.first_deadline = 3 * round_time;
  round.grace = second;
  round.provisional_after = 6 * round_time;
  round.poll = 3 * second;
  round.agreement = {4 * second, 15 * second};
  o.round.many.group_wait = 3 * second;
  o.round.many.group = {4 * second, 15 * second};
  o.round.many.top = {10 * second, 40 * second};
  o.trainer.inner_steps = inner_steps;
  o.trainer.step_time = round_time / inner_steps;
  o.trainer.tokens_per_step = 12;
  o.trainer.most_provisional_steps = 4 * inner_steps;
  return o;
}

std::unique_ptr<LocalModel> model(std::size_t node, std::uint64_t lives) {
  return std::make_unique<SoftModel>(task(), node, outer::SoftLearnerOptions{}, lives * 100'000);
}

bool in_long() {
  return qEnvironmentVariableIntValue("NS_LONG") != 0;
}

struct Lab {
  explicit Lab(const LevelWorldOptions& options) : world(options, model), seed(options.seed) {}
  void start(std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) world.start(i);
  }
  // A failure says which seed repeats it.
  std::string text(const char* what) const {
    const RoundWorldSeen seen = world.seen();
    std::string all =
        fmt::format("seed {}: {}; round {}, {} of two levels, {} conflicts, {} twice, worst {}", seed, what,
                    seen.rounds, world.grouped_rounds(), seen.conflicts, seen.twice, seen.worst_agreement);
    for (std::size_t i = 0; i < world.size(); ++i) {
      if (!world.running(i)) continue;
      const rounds::RoundView v = world.node(i).view();
      all += fmt::format("\n  node {}: phase {} round {} view {} member {} of {} in {}, holds {}", i,
                         static_cast<int>(v.phase), v.round, v.view, v.member, v.members, v.groups,
                         world.node(i).state_round());
    }
    return all;
  }
  bool safe() const {
    const RoundWorldSeen seen = world.seen();
    return seen.conflicts == 0 && seen.twice == 0 && seen.worst_agreement == 1;
  }
  bool until(const std::function<bool()>& done, int rounds = 60) {
    return world.world().run_until(done, world.world().now() + rounds * round_time);
  }
  // All running nodes are its members, in so many sub-groups, and hold the newest anchor.
  bool together(std::size_t members, std::size_t groups) {
    const bool all = until([&] {
      for (std::size_t i = 0; i < world.size(); ++i) {
        if (!world.running(i)) continue;
        const rounds::RoundView view = world.node(i).view();
        if (!view.member || view.members != members || view.groups != groups) return false;
      }
      return true;
    });
    return all && until([this] { return world.agreement_rate() == 1; }, 20);
  }
  bool goes_on(std::uint64_t rounds) {
    return world.run_to_round(world.newest_round() + rounds, 60 * round_time);
  }
  void leave(std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) world.node(i).leave();
    static_cast<void>(until(
        [&] {
          for (std::size_t i = from; i < to; ++i)
            if (!world.node(i).left()) return false;
          return true;
        },
        4));
    for (std::size_t i = from; i < to; ++i) world.kill(i);
  }
  double loss() const { return task()->held_out_loss(world.newest_anchor()->weights); }

  LevelWorld world;
  std::uint64_t seed;
};

#define CHECK_LAB(lab, condition) QVERIFY2(condition, (lab).text(#condition).c_str())

}  // namespace

class TestRoundsLevels : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void members_grow_past_16_and_shrink_again_data();
  void members_grow_past_16_and_shrink_again();
  void who_was_away_while_it_changed_finds_back();
  void a_newcomer_without_a_genesis_joins_two_levels();
  void power_is_lost_for_all_at_once();
  void a_network_of_few_is_dealt_where_its_numbers_are_small();
};

void TestRoundsLevels::members_grow_past_16_and_shrink_again_data() {
  QTest::addColumn<int>("seed");
  QTest::addColumn<bool>("delayed");
  QTest::addColumn<bool>("sparse");
  // While members that were ahead of the others stayed so, a whole sub-group was left out of a round here.
  QTest::newRow("sub-groups apart") << 112 << true << false;
  QTest::newRow("plain") << 1 << false << false;
  QTest::newRow("both, and error feedback") << 5 << true << true;
  if (!in_long()) return;
  for (int seed = 101; seed <= 120; ++seed) {
    const QByteArray name = QByteArray::number(seed);
    QTest::newRow(name.constData()) << seed << (seed % 2 == 0) << (seed % 3 == 0);
  }
}

void TestRoundsLevels::members_grow_past_16_and_shrink_again() {
  QFETCH(int, seed);
  QFETCH(bool, delayed);
  QFETCH(bool, sparse);
  LevelWorldOptions options = world_options(std::uint64_t(seed), 20, 15);
  if (delayed) options.round.one.sync = rounds::RoundSync::Delayed;
  if (sparse) {
    options.trainer.codec = options.round.one.rules.codec =
        options.round.one.outer.codec = {outer::Codec::TopK, 64};
    options.trainer.error_feedback_beta = 0.95f;
    options.round.one.outer.aggregation.sparse = true;
    options.round.one.outer.mu = 0;
    options.round.one.outer.lr = 1.0f;
  }
  Lab lab(options);
  lab.start(0, 15);
  CHECK_LAB(lab, lab.together(15, 1));
  CHECK_LAB(lab, lab.goes_on(2));
  const double begun = lab.loss();
  lab.start(15, 20);
  CHECK_LAB(lab, lab.together(20, 2));
  CHECK_LAB(lab, lab.goes_on(4));
  CHECK_LAB(lab, lab.together(20, 2));
  CHECK_LAB(lab, lab.world.grouped_rounds() >= 4);
  // All of them work: no sub-group is missing again and again.
  const std::uint64_t before = lab.world.seen().contributions, from = lab.world.newest_round();
  CHECK_LAB(lab, lab.goes_on(3));
  CHECK_LAB(lab, lab.world.seen().contributions - before >= 19 * (lab.world.newest_round() - from));
  lab.leave(12, 20);
  CHECK_LAB(lab, lab.together(12, 1));
  CHECK_LAB(lab, lab.goes_on(2));
  CHECK_LAB(lab, lab.together(12, 1));
  CHECK_LAB(lab, lab.safe());
  for (std::size_t i = 0; i < 12; ++i) QCOMPARE(lab.world.node(i).changes(), std::uint64_t(2));
  QVERIFY2(lab.loss() < begun, lab.text("loss").c_str());
  qInfo("seed %d: %llu rounds, %llu of two levels, loss %.4f after the first ones, %.4f at the end", seed,
        static_cast<unsigned long long>(lab.world.newest_round()),
        static_cast<unsigned long long>(lab.world.grouped_rounds()), begun, lab.loss());
}

// One is killed while there is one group and comes back to two levels; one the other way round; and one that
// was killed in the middle of a round of two levels goes on in it.
void TestRoundsLevels::who_was_away_while_it_changed_finds_back() {
  for (std::uint64_t seed = 11; seed <= (in_long() ? 20u : 11u); ++seed) {
    Lab lab(world_options(seed, 22, 15));
    lab.start(0, 15);
    CHECK_LAB(lab, lab.together(15, 1));
    lab.world.kill(3);
    lab.start(15, 22);
    CHECK_LAB(lab, lab.together(21, 2));
    CHECK_LAB(lab, lab.goes_on(12));  // longer than rounds of two levels are kept
    lab.world.start(3);
    CHECK_LAB(lab, lab.together(22, 2));
    lab.world.world().run_for(round_time / 2);
    lab.world.kill(4);
    lab.world.world().run_for(round_time / 4);
    lab.world.start(4);
    CHECK_LAB(lab, lab.goes_on(2));
    CHECK_LAB(lab, lab.together(22, 2));
    lab.world.kill(5);
    lab.leave(12, 22);
    CHECK_LAB(lab, lab.together(11, 1));
    CHECK_LAB(lab, lab.goes_on(2));
    lab.world.start(5);
    CHECK_LAB(lab, lab.together(12, 1));
    CHECK_LAB(lab, lab.goes_on(2));
    CHECK_LAB(lab, lab.safe());
  }
}

// It asks whomever it knows, and checks the chain from its beginning through rounds of both kinds.
void TestRoundsLevels::a_newcomer_without_a_genesis_joins_two_levels() {
  LevelWorldOptions options = world_options(21, 19, 1);
  options.found_alone = true;
  Lab lab(options);
  lab.start(0, 1);
  CHECK_LAB(lab, lab.together(1, 1));
  CHECK_LAB(lab, lab.goes_on(1));
  lab.start(1, 18);
  CHECK_LAB(lab, lab.together(18, 2));
  CHECK_LAB(lab, lab.goes_on(3));
  lab.start(18, 19);
  CHECK_LAB(lab, lab.together(19, 2));
  QVERIFY(lab.world.node(18).chain()->genesis() == lab.world.node(0).chain()->genesis());
  CHECK_LAB(lab, lab.goes_on(2));
  CHECK_LAB(lab, lab.safe());
}

// In the middle of rounds of two levels, and where some have the newest certificate and some have not.
void TestRoundsLevels::power_is_lost_for_all_at_once() {
  for (std::uint64_t seed = 31; seed <= (in_long() ? 60u : 32u); ++seed) {
    Lab lab(world_options(seed, 18, 18));
    lab.start(0, 18);
    CHECK_LAB(lab, lab.together(18, 2));
    CHECK_LAB(lab, lab.goes_on(1));
    const std::uint64_t newest = lab.world.newest_round();
    if (seed % 2 == 0)
      CHECK_LAB(lab, lab.until([&] { return lab.world.newest_round() > newest; }));
    else
      lab.world.world().run_for(round_time * static_cast<int>(seed % 4 + 1) / 3);
    for (std::size_t i = 0; i < 18; ++i) lab.world.kill(i);
    lab.world.world().run_for(second);
    lab.start(0, 18);
    CHECK_LAB(lab, lab.goes_on(2));
    CHECK_LAB(lab, lab.together(18, 2));
    CHECK_LAB(lab, lab.safe());
  }
}

// A laboratory's profile: more than three are dealt.
void TestRoundsLevels::a_network_of_few_is_dealt_where_its_numbers_are_small() {
  LevelWorldOptions options = world_options(41, 4, 1);
  options.found_alone = true;
  options.round.one.group_members = 3;
  Lab lab(options);
  lab.start(0, 3);
  CHECK_LAB(lab, lab.together(3, 1));
  lab.start(3, 4);
  CHECK_LAB(lab, lab.together(4, 2));
  CHECK_LAB(lab, lab.goes_on(3));
  lab.leave(3, 4);
  CHECK_LAB(lab, lab.together(3, 1));
  CHECK_LAB(lab, lab.goes_on(2));
  lab.leave(1, 3);
  CHECK_LAB(lab, lab.together(1, 1));
  CHECK_LAB(lab, lab.goes_on(1));
  CHECK_LAB(lab, lab.safe());
}

NS_TEST(TestRoundsLevels)
#include "test_rounds_levels.moc"
