// What rounds do when messages are lost: runs in which certificates, states or the votes of some were lost so
// often that a node stayed behind, or a round did not end. Whatever is lost, all hold one anchor soon after.
#include <QtTest>

#include <set>

#include "core/rounds/node.h"
#include "core/sim/grouped_world.h"
#include "core/sim/round_world.h"
#include "core/sim/scenario.h"
#include "core/sim/soft_model.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::sim;

namespace {

using std::chrono::seconds;

constexpr std::size_t nodes = 8;
constexpr std::uint32_t inner_steps = 20;
constexpr Duration round_time = seconds(4);

std::shared_ptr<const outer::SoftTask> task() {
  outer::SoftTaskOptions options;
  options.features = 16;
  options.classes = 4;
  options.samples = 256;
  options.held_out = 64;
  return *outer::SoftTask::make(options);
}

RoundWorldOptions world_options() {
  RoundWorldOptions o;
  o.nodes = nodes;
  o.initial = task()->initial_weights();
  o.round.rules.network.fill(3);
  o.round.rules.values = o.initial.size();
  o.round.rules.inner_steps = inner_steps;
  o.round.rules.most_tokens = 2 * inner_steps * 12;
  o.round.first_deadline = 2 * round_time;
  o.round.grace = seconds(1);
  o.round.agreement = {seconds(4), seconds(15)};
  o.trainer.inner_steps = inner_steps;
  o.trainer.step_time = round_time / inner_steps;
  o.trainer.tokens_per_step = 12;
  return o;
}

// Loses what `lost` names, as if the connection stood still.
class Losing final : public net::PeerCaller {
 public:
  using Lost = std::function<bool(const net::NodeId& to, const rounds::RoundItem& item)>;
  Losing(net::PeerCaller& out, Lost lost) : out_(out), lost_(std::move(lost)) {}
  void call(const net::Contact& peer, net::Method method, Bytes request, Duration deadline,
            net::CallDone done) override {
    const auto item = rounds::decode_item(request);
    if (method == net::Method::RoundPost && item.ok() && lost_(peer.id, *item)) return;
    out_.call(peer, method, std::move(request), deadline, std::move(done));
  }

 private:
  net::PeerCaller& out_;
  const Lost lost_;
};

}  // namespace

class TestRoundsLost : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void nobody_stays_behind_data();
  void nobody_stays_behind();
  void what_a_quorum_prepared_is_not_held_up();
  void who_comes_late_meets_the_others_above();
  void who_was_away_for_a_hundred_views_meets_the_others();
  void what_was_told_before_a_restart_is_told_again();
  void who_dies_before_its_work_is_noted_is_no_liar();
};

// 30 % of all messages are lost. In these runs a node had no state for seven rounds, or was a round or more
// behind at the end.
void TestRoundsLost::nobody_stays_behind_data() {
  QTest::addColumn<int>("seed");
  QTest::addColumn<bool>("overlapping");
  QTest::newRow("no certificate for 200 s") << 3 << false;
  QTest::newRow("a round behind at the end") << 5 << true;
  QTest::newRow("another one") << 23 << false;
  QTest::newRow("no state for 80 s") << 234 << true;
}

void TestRoundsLost::nobody_stays_behind() {
  QFETCH(int, seed);
  QFETCH(bool, overlapping);
  ScenarioOptions options;
  options.name = "lossy";
  options.seed = static_cast<std::uint64_t>(seed);
  options.rounds = 7;
  options.inner_steps = 10;
  if (overlapping) options.sync = rounds::RoundSync::Delayed;
  const auto result = run_scenario(options);
  QVERIFY(result.ok());
  QVERIFY2(result->broken.empty(), result->broken.empty() ? "" : result->broken.front().c_str());
  // All take each round before the next ones are over.
  QVERIFY2(result->rounds <= options.rounds + 2, qPrintable(QString::number(result->rounds)));
}

// The leader has five contributions and 6 and 7 have all eight, so they don't find its body fair. The six
// others prepare it, which is a quorum, and one of them dies before it commits: without 6 or 7 the round
// can't end, and no other body can be certified instead.
void TestRoundsLost::what_a_quorum_prepared_is_not_held_up() {
  std::map<net::NodeId, std::size_t> number;
  const std::uint64_t seed = 3;
  for (std::size_t i = 0; i < nodes; ++i) number[crypto::node_id(key_of_node(seed, i).public_key())] = i;
  const auto caller = [&number](std::size_t node, net::PeerCaller& out, const crypto::KeyPair&) {
    return std::make_unique<Losing>(
        out, [&number, node](const net::NodeId& to, const rounds::RoundItem& item) {
          const auto* post = std::get_if<rounds::ContributionPost>(&item);
          return post != nullptr && post->contribution.round == 1 && node >= 5 && number.at(to) < 6;
        });
  };
  RoundWorldOptions options = world_options();
  options.seed = seed;
  RoundWorld world(
      options,
      [](std::size_t node, std::uint64_t lives) {
        return std::make_unique<SoftModel>(task(), node, outer::SoftLearnerOptions{}, lives * 100'000);
      },
      {}, caller);
  std::optional<std::size_t> dead;
  std::set<std::size_t> prepared;
  world.watch([&](std::size_t from, const rounds::RoundItem& item) {
    const auto* vote = std::get_if<rounds::VotePost>(&item);
    if (vote == nullptr || vote->vote.round != 1) return false;
    if (vote->vote.step == rounds::VoteStep::Prepare) prepared.insert(from);
    if (vote->vote.step != rounds::VoteStep::Commit || dead || from >= 6) return false;
    dead = from;
    return true;
  });
  for (std::size_t i = 0; i < nodes; ++i) world.start(i);
  QVERIFY(world.run_to_round(1, 40 * round_time));
  QVERIFY(dead.has_value());
  QVERIFY(prepared.count(6) + prepared.count(7) > 0);
  QCOMPARE(world.body(1)->contributors.size(), std::size_t{5});
  QCOMPARE(world.seen().conflicts, std::uint64_t{0});
  world.start(*dead);
  QVERIFY(world.run_to_round(3, 40 * round_time));
}

// Two levels. Half of the members come 25 minutes after the others, who have gone through views of the level
// above meanwhile: no view lasts as long as they are apart.
void TestRoundsLost::who_comes_late_meets_the_others_above() {
  GroupedWorldOptions o;
  o.nodes = 24;
  o.initial = task()->initial_weights();
  o.round.rules.network.fill(3);
  o.round.rules.values = o.initial.size();
  o.round.rules.inner_steps = inner_steps;
  o.round.rules.most_tokens = 2 * inner_steps * 12;
  o.trainer.inner_steps = inner_steps;
  o.trainer.step_time = round_time / inner_steps;
  o.trainer.tokens_per_step = 12;
  GroupedWorld world(o, [](std::size_t node, std::uint64_t lives) {
    return std::make_unique<SoftModel>(task(), node, outer::SoftLearnerOptions{}, lives * 100'000);
  });
  for (std::size_t i = 0; i < o.nodes; i += 2) world.start(i);
  world.world().run_for(std::chrono::minutes(25));
  QCOMPARE(world.newest_round(), std::uint64_t{0});
  QVERIFY(world.node(0).view().view > 5);
  for (std::size_t i = 1; i < o.nodes; i += 2) world.start(i);
  const MonotonicTime all_here = world.world().now();
  QVERIFY2(world.run_to_round(1, std::chrono::minutes(10)),
           qPrintable(QString::number(to_seconds(world.world().now() - all_here))));
  QCOMPARE(world.seen().conflicts, std::uint64_t{0});
}

// Three of eight are away, so the five others go through views without a quorum.
void TestRoundsLost::who_was_away_for_a_hundred_views_meets_the_others() {
  RoundWorldOptions options = world_options();
  options.seed = 1;
  RoundWorld world(options, [](std::size_t node, std::uint64_t lives) {
    return std::make_unique<SoftModel>(task(), node, outer::SoftLearnerOptions{}, lives * 100'000);
  });
  for (std::size_t i = 0; i < nodes; ++i) world.start(i);
  QVERIFY(world.run_to_round(1, 40 * round_time));
  for (std::size_t i = 5; i < nodes; ++i) world.kill(i);
  world.world().run_for(std::chrono::minutes(30));
  const std::uint64_t before = world.newest_round();
  QVERIFY(world.node(0).view().view > 100);
  for (std::size_t i = 5; i < nodes; ++i) world.start(i);
  QVERIFY(world.run_to_round(before + 2, std::chrono::minutes(5)));
  QCOMPARE(world.seen().conflicts, std::uint64_t{0});
}

// One of three has had the others' contributions and the proposal, and dies with its vote; all three have to
// sign. When it is back nobody would tell it what they believe it has.
void TestRoundsLost::what_was_told_before_a_restart_is_told_again() {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    RoundWorldOptions options = world_options();
    options.seed = seed;
    options.nodes = 3;
    // Who waits for the end of a view has not been told.
    options.round.agreement = {std::chrono::minutes(5), std::chrono::minutes(5)};
    RoundWorld world(options, [](std::size_t node, std::uint64_t lives) {
      return std::make_unique<SoftModel>(task(), node, outer::SoftLearnerOptions{}, lives * 100'000);
    });
    std::optional<std::size_t> leader, dead;
    world.watch([&](std::size_t from, const rounds::RoundItem& item) {
      const auto* proposal = std::get_if<rounds::ProposalPost>(&item);
      if (proposal != nullptr && proposal->body.round == 2) leader = from;
      const auto* vote = std::get_if<rounds::VotePost>(&item);
      if (vote == nullptr || vote->vote.round != 2 || dead || from == leader) return false;
      dead = from;
      return true;
    });
    for (std::size_t i = 0; i < options.nodes; ++i) world.start(i);
    QVERIFY(world.world().run_until([&] { return dead.has_value(); }, world.world().now() + 10 * round_time));
    world.world().run_for(seconds(2));
    QCOMPARE(world.newest_round(), std::uint64_t{1});
    world.start(*dead);
    QVERIFY2(world.run_to_round(2, seconds(20)), qPrintable(QString::number(seed)));
    QCOMPARE(world.seen().conflicts, std::uint64_t{0});
  }
}

// Its disk takes a second. A leader that proposes what it has not noted yet, and dies, makes another
// contribution to the same round when it is back: that would be proof against it for the other one, which has
// asked for what the proposal names.
void TestRoundsLost::who_dies_before_its_work_is_noted_is_no_liar() {
  constexpr std::size_t slow = 0, quick = 1;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    RoundWorldOptions options = world_options();
    options.seed = seed;
    options.nodes = 2;
    RoundWorld world(options, [](std::size_t node, std::uint64_t lives) {
      return std::make_unique<SoftModel>(task(), node, outer::SoftLearnerOptions{}, lives * 100'000);
    });
    std::uint64_t led = 0;
    world.watch([&](std::size_t from, const rounds::RoundItem& item) {
      const auto* proposal = std::get_if<rounds::ProposalPost>(&item);
      if (led == 0 && from == slow && proposal != nullptr && proposal->body.round >= 2)
        led = proposal->body.round;
      return false;
    });
    world.start(quick);
    world.set_disk_time(seconds(1));
    world.start(slow);
    QVERIFY(world.world().run_until([&] { return led != 0; }, world.world().now() + 20 * round_time));
    world.world().run_for(std::chrono::milliseconds(300));
    world.kill(slow);
    world.start(slow);
    QVERIFY2(world.run_to_round(led + 2, 20 * round_time), qPrintable(QString::number(seed)));
    QCOMPARE(world.seen().evidence, std::uint64_t{0});
    QCOMPARE(world.seen().conflicts, std::uint64_t{0});
  }
}

NS_TEST(TestRoundsLost)
#include "test_rounds_lost.moc"
