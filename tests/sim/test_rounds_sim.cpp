// Outer rounds of whole nodes in the simulated world, with real signatures: what dies, is cut off, falls
// behind or breaks, and what must hold all the same. NS_LONG=1 takes ten times the seeds (tests/long.sh
// rounds).
#include <fmt/format.h>

#include <QtTest>

#include <set>

#include "core/rounds/node.h"
#include "core/sim/round_world.h"
#include "core/sim/scenario.h"
#include "core/sim/soft_model.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::sim;

namespace {

constexpr Duration second = std::chrono::seconds(1);
constexpr Duration round_time = 4 * second;
constexpr std::uint32_t inner_steps = 20;

std::uint64_t seeds(std::uint64_t in_ci) {
  return qEnvironmentVariableIntValue("NS_LONG") != 0 ? 10 * in_ci : in_ci;
}

std::shared_ptr<const outer::SoftTask> task() {
  outer::SoftTaskOptions options;
  options.features = 16;
  options.classes = 4;
  options.samples = 256;
  options.held_out = 64;
  options.separation = 1;  // few samples, yet something that holds for others
  return *outer::SoftTask::make(options);
}

RoundWorldOptions world_options(std::uint64_t seed, std::size_t nodes) {
  RoundWorldOptions o;
  o.seed = seed;
  o.nodes = nodes;
  o.initial = task()->initial_weights();
  o.round.rules.network.fill(3);
  o.round.rules.values = o.initial.size();
  o.round.rules.inner_steps = inner_steps;
  o.round.rules.most_tokens = 2 * inner_steps * 12;
  o.round.first_deadline = 3 * round_time;
  o.round.grace = second;
  o.round.provisional_after = 2 * round_time;
  o.round.poll = 3 * second;
  o.round.agreement = {4 * second, 15 * second};
  o.trainer.inner_steps = inner_steps;
  o.trainer.step_time = round_time / inner_steps;
  o.trainer.tokens_per_step = 12;
  o.trainer.most_provisional_steps = 4 * inner_steps;
  return o;
}

std::unique_ptr<LocalModel> model(std::size_t node, std::uint64_t lives) {
  return std::make_unique<SoftModel>(task(), node, outer::SoftLearnerOptions{}, lives * 100'000);
}

struct Lab {
  explicit Lab(const RoundWorldOptions& options, bool start_all = true)
      : world(options, model), seed(options.seed) {
    for (std::size_t i = 0; start_all && i < options.nodes; ++i) world.start(i);
  }
  // A failure says which seed repeats it.
  std::string text(const char* what) const {
    const RoundWorldSeen seen = world.seen();
    std::string all = fmt::format("seed {}: {}; round {}, {} conflicts, {} twice, agreement {}", seed, what,
                                  seen.rounds, seen.conflicts, seen.twice, world.agreement_rate());
    for (std::size_t i = 0; i < world.size(); ++i) {
      if (!world.running(i)) {
        all += fmt::format("; node {} off", i);
        continue;
      }
      const rounds::RoundView v = world.node(i).view();
      all += fmt::format("; node {}: phase {} round {} view {} member {}", i, static_cast<int>(v.phase),
                         v.round, v.view, v.member);
    }
    return all;
  }
  bool safe() const {
    const RoundWorldSeen seen = world.seen();
    return seen.conflicts == 0 && seen.twice == 0 && seen.worst_agreement == 1;
  }
  // One anchor again, within two rounds from now.
  bool settles() {
    const std::uint64_t goal = world.newest_round() + 2;
    if (!world.run_to_round(goal, 60 * round_time)) return false;
    // Between two rounds all of them hold the same.
    return world.world().run_until([this] { return world.agreement_rate() == 1; },
                                   world.world().now() + 2 * round_time);
  }
  RoundWorld world;
  std::uint64_t seed;
};

#define CHECK_LAB(lab, condition) QVERIFY2(condition, (lab).text(#condition).c_str())

}  // namespace

class TestRoundsSim : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void members_train_together();
  void one_alone_is_a_network();
  void a_leader_dies_at_every_stage_data();
  void a_leader_dies_at_every_stage();
  void losses_of_a_third();
  void a_cut_heals();
  void one_of_four_dies_in_mid_round_and_comes_back();
  void the_power_goes_for_all();
  void a_late_joiner_contributes();
  void a_wish_of_another_round_says_so();
  void a_member_is_back_after_days();
  void a_broken_replica_repairs_itself();
  void a_slow_node_holds_nobody_up();
  void two_of_three_train_on_when_one_dies_in_the_first_round();
  void who_begin_together_make_one_history();
  void two_histories_meet();
  void a_shared_history_goes_before_a_longer_one_of_one_node();
  void young_shared_histories_become_one();
  void work_without_a_quorum_counts_once();
  void who_leaves_is_not_waited_for();
  void few_members_end_the_round_with_the_one_who_leaves();
  void who_has_left_trains_on_when_nobody_is_there();
  void a_node_that_left_rejoins();
};

void TestRoundsSim::members_train_together() {
  for (const std::size_t nodes : {2u, 3u, 4u, 9u}) {
    Lab lab(world_options(nodes, nodes));
    CHECK_LAB(lab, lab.world.run_to_round(6, 10 * 6 * round_time));
    CHECK_LAB(lab, lab.safe() && lab.settles());
    const RoundWorldSeen seen = lab.world.seen();
    QCOMPARE(seen.fetched + seen.corruptions + seen.provisional + seen.evidence, std::uint64_t(0));
    for (std::uint64_t round = 1; round <= 6; ++round) {
      const rounds::RoundBody* body = lab.world.body(round);
      QVERIFY(body != nullptr);
      QCOMPARE(body->contributors.size(), nodes);  // equally fast: all of them
      // Whoever began a moment later is closed a step or two earlier.
      for (const auto& c : body->contributors) QVERIFY(c.steps >= inner_steps * 3 / 4);
    }
    const double before = task()->held_out_loss(task()->initial_weights());
    const double after = task()->held_out_loss(lab.world.newest_anchor()->weights);
    QVERIFY2(after < before,
             qPrintable(QStringLiteral("%1 nodes: %2 → %3").arg(nodes).arg(before).arg(after)));
    // A round takes little more than its training.
    const double each = to_seconds(lab.world.world().now().time_since_epoch()) / double(seen.rounds);
    QVERIFY2(each < 2.0 * to_seconds(round_time), qPrintable(QString::number(each)));
  }
}

void TestRoundsSim::one_alone_is_a_network() {
  RoundWorldOptions options = world_options(1, 1);
  options.found_alone = true;
  Lab lab(options);
  CHECK_LAB(lab, lab.world.run_to_round(3, 30 * round_time));
  QCOMPARE(lab.world.node(0).view().members, std::size_t(1));
  QCOMPARE(lab.world.node(0).view().contributed, std::uint64_t(3));
}

void TestRoundsSim::a_leader_dies_at_every_stage_data() {
  QTest::addColumn<int>("stage");
  QTest::newRow("contribution") << 0;
  QTest::newRow("proposal") << 1;
  QTest::newRow("prepare") << 2;
  QTest::newRow("commit") << 3;
  QTest::newRow("second message of a proposal") << 4;
  QTest::newRow("second message of a commit") << 5;
}

void TestRoundsSim::a_leader_dies_at_every_stage() {
  QFETCH(int, stage);
  for (std::uint64_t seed = 1; seed <= seeds(12); ++seed) {
    Lab lab(world_options(seed, 4 + seed % 2));
    CHECK_LAB(lab, lab.world.run_to_round(1, 20 * round_time));
    std::optional<std::size_t> killed;
    std::map<std::size_t, int> sent;
    lab.world.watch([&](std::size_t from, const rounds::RoundItem& item) {
      const rounds::RoundChain* chain = lab.world.node(from).chain();
      const auto order =
          rounds::leader_order(chain->tip_hash(), chain->tip().round + 1, {}, chain->members());
      if (killed || chain->members()[order[0]].id != lab.world.id(from)) return false;
      const auto* vote = std::get_if<rounds::VotePost>(&item);
      const int kind = std::holds_alternative<rounds::ContributionPost>(item) ? 0
                       : std::holds_alternative<rounds::ProposalPost>(item)   ? 1
                       : vote && vote->vote.step == rounds::VoteStep::Prepare ? 2
                       : vote                                                 ? 3
                                                                              : 9;
      const int wanted = stage == 4 ? 1 : stage == 5 ? 3 : stage;
      if (kind != wanted || (stage >= 4 && ++sent[from] < 3)) return false;
      killed = from;
      return true;
    });
    CHECK_LAB(lab, lab.world.world().run_until([&] { return killed.has_value(); },
                                               lab.world.world().now() + 20 * round_time));
    CHECK_LAB(lab, lab.world.run_to_round(lab.world.newest_round() + 1, 30 * round_time));
    lab.world.start(*killed);
    CHECK_LAB(lab, lab.settles());
    CHECK_LAB(lab, lab.safe());
  }
}

void TestRoundsSim::losses_of_a_third() {
  for (std::uint64_t seed = 1; seed <= seeds(8); ++seed) {
    RoundWorldOptions options = world_options(seed, 4 + seed % 3);
    options.network.loss = 0.3;
    Lab lab(options);
    CHECK_LAB(lab, lab.world.run_to_round(5, 5 * 20 * round_time));
    lab.world.network().set_loss(0);
    CHECK_LAB(lab, lab.settles());
    CHECK_LAB(lab, lab.safe());
  }
}

void TestRoundsSim::a_cut_heals() {
  for (std::uint64_t seed = 1; seed <= seeds(25); ++seed) {
    Lab lab(world_options(seed, 4 + seed % 4));
    Rng rng(seed);
    lab.world.world().run_for(round_time + std::chrono::milliseconds(rng.below(9000)));
    for (std::size_t i = 0; i < lab.world.size(); ++i) lab.world.set_part(i, static_cast<int>(rng.below(2)));
    lab.world.world().run_for(round_time * static_cast<int>(1 + rng.below(10)));
    CHECK_LAB(lab, lab.safe());
    for (std::size_t i = 0; i < lab.world.size(); ++i) lab.world.set_part(i, 0);
    CHECK_LAB(lab, lab.settles());
    CHECK_LAB(lab, lab.safe());
  }
}

void TestRoundsSim::one_of_four_dies_in_mid_round_and_comes_back() {
  for (std::uint64_t seed = 1; seed <= seeds(12); ++seed) {
    Lab lab(world_options(seed, 4));
    Rng rng(seed);
    for (int i = 0; i < 3; ++i) {
      const std::size_t node = rng.below(4);
      lab.world.world().run_for(std::chrono::milliseconds(rng.below(6000)));
      lab.world.kill(node);
      lab.world.world().run_for(std::chrono::milliseconds(rng.below(12'000)));
      lab.world.start(node);
    }
    CHECK_LAB(lab, lab.settles());
    CHECK_LAB(lab, lab.safe());
  }
}

void TestRoundsSim::the_power_goes_for_all() {
  for (std::uint64_t seed = 1; seed <= seeds(10); ++seed) {
    Lab lab(world_options(seed, 4));
    Rng rng(seed);
    lab.world.world().run_for(2 * round_time + std::chrono::milliseconds(rng.below(8000)));
    for (std::size_t i = 0; i < 4; ++i) lab.world.kill(i);
    lab.world.world().run_for(second);
    for (std::size_t i = 0; i < 4; ++i) lab.world.start(i);
    CHECK_LAB(lab, lab.settles());
    CHECK_LAB(lab, lab.safe());
  }
}

void TestRoundsSim::a_late_joiner_contributes() {
  RoundWorldOptions options = world_options(4, 5);
  options.founders = 4;
  Lab lab(options, false);
  for (std::size_t i = 0; i < 4; ++i) lab.world.start(i);
  CHECK_LAB(lab, lab.world.run_to_round(3, 20 * round_time));
  lab.world.start(4);
  CHECK_LAB(lab, lab.world.run_to_round(8, 40 * round_time));
  CHECK_LAB(lab, lab.safe());
  const rounds::RoundView view = lab.world.node(4).view();
  QVERIFY(view.member);
  QCOMPARE(view.fetched_anchors, std::uint64_t(1));
  QVERIFY(view.contributed >= 2);
  QCOMPARE(view.members, std::size_t(5));
}

// Who wants to join may be ahead of the member that it asks, or behind: no reason to speak of its signature.
void TestRoundsSim::a_wish_of_another_round_says_so() {
  Lab lab(world_options(4, 4));
  CHECK_LAB(lab, lab.world.run_to_round(12, 80 * round_time));
  const std::uint64_t tip = lab.world.node(0).status().round;
  const crypto::KeyPair key = key_of_node(4, 99);
  const auto verdict = [&](std::uint64_t round, const Hash256& network) {
    const rounds::ChangePost post{
        {}, rounds::sign_change(rounds::RoundChange::Kind::Join, {}, round, key, network)};
    std::optional<rounds::PostAnswer> said;
    lab.world.node(0).on_call({crypto::node_id(key.public_key()), {}}, net::Method::RoundPost,
                              rounds::encode_item(post),
                              [&](Expected<Bytes> answer) { said = *rounds::decode_post_answer(*answer); });
    return said->verdict;
  };
  Hash256 network;
  network.fill(3);
  QCOMPARE(verdict(tip + 3, network), rounds::Verdict::LaterRound);
  QCOMPARE(verdict(tip - 8, network), rounds::Verdict::PastRound);
  QCOMPARE(verdict(tip, Hash256{}), rounds::Verdict::BadSignature);
  QCOMPARE(verdict(tip, network), rounds::Verdict::Taken);
  const rounds::RoundView view = lab.world.node(0).view();
  QCOMPARE(view.refused[static_cast<std::size_t>(rounds::Verdict::BadSignature)], std::uint64_t(1));
  QCOMPARE(view.refused[static_cast<std::size_t>(rounds::Verdict::LaterRound)], std::uint64_t(1));
}

// Before any round is measured, a round's deadline is half an hour: nobody rests for so long who knows its
// own pace.
void TestRoundsSim::two_of_three_train_on_when_one_dies_in_the_first_round() {
  RoundWorldOptions options = world_options(8, 3);
  options.round.first_deadline = std::chrono::minutes(30);
  Lab lab(options);
  lab.world.world().run_for(round_time / 2);
  lab.world.kill(2);
  lab.world.world().run_for(10 * round_time);
  for (const std::size_t node : {0, 1}) {
    QCOMPARE(lab.world.node(node).view().phase, rounds::RoundPhase::Provisional);
    QVERIFY(lab.world.trainer(node).steps_trained() > inner_steps);
    QCOMPARE(lab.world.node(node).view().missing, std::vector<net::NodeId>{lab.world.id(2)});
  }
  lab.world.start(2);
  CHECK_LAB(lab, lab.settles() && lab.safe());
  QVERIFY(lab.world.node(0).view().missing.empty());
}

void TestRoundsSim::a_member_is_back_after_days() {
  for (const bool disk_lost : {false, true}) {
    Lab lab(world_options(6, 5));
    CHECK_LAB(lab, lab.world.run_to_round(2, 20 * round_time));
    lab.world.kill(3);
    CHECK_LAB(lab, lab.world.run_to_round(90, 400 * round_time));
    QCOMPARE(lab.world.node(0).view().members, std::size_t(4));  // two rounds missed: expelled
    if (disk_lost) lab.world.forget_disk(3);
    lab.world.start(3);
    CHECK_LAB(lab, lab.world.run_to_round(98, 60 * round_time));
    CHECK_LAB(lab, lab.safe() && lab.settles());
    QCOMPARE(lab.world.node(0).view().members, std::size_t(5));
    QVERIFY(lab.world.node(3).view().contributed >= 2);
  }
}

void TestRoundsSim::a_broken_replica_repairs_itself() {
  Lab lab(world_options(8, 4));
  CHECK_LAB(lab, lab.world.run_to_round(2, 20 * round_time));
  lab.world.world().run_for(round_time / 2);
  lab.world.corrupt(2);
  QVERIFY(lab.world.agreement_rate() < 1);
  CHECK_LAB(lab, lab.world.run_to_round(lab.world.newest_round() + 1, 20 * round_time));
  QCOMPARE(lab.world.node(2).view().corruptions, std::uint64_t(1));
  CHECK_LAB(lab, lab.settles());
  CHECK_LAB(lab, lab.safe());
  const RoundWorldSeen seen = lab.world.seen();
  QCOMPARE(seen.corruptions, std::uint64_t(1));
  QCOMPARE(seen.fetched, std::uint64_t(1));
  QCOMPARE(lab.world.node(2).view().members, std::size_t(4));
}

void TestRoundsSim::a_slow_node_holds_nobody_up() {
  Lab lab(world_options(9, 5), false);
  lab.world.set_step_time(4, round_time / inner_steps * 4);
  for (std::size_t i = 0; i < 5; ++i) lab.world.start(i);
  CHECK_LAB(lab, lab.world.run_to_round(6, 60 * round_time));
  CHECK_LAB(lab, lab.safe());
  const double each = to_seconds(lab.world.world().now().time_since_epoch()) / 6;
  QVERIFY2(each < 2 * to_seconds(round_time), qPrintable(QString::number(each)));
  std::size_t partial = 0;
  for (std::uint64_t round = 1; round <= 6; ++round)
    for (const auto& c : lab.world.body(round)->contributors)
      if (c.steps < inner_steps) {
        ++partial;
        QVERIFY(c.steps >= rounds::least_steps(inner_steps));
      }
  QVERIFY(partial >= 5);  // it sends what it has
  QCOMPARE(lab.world.node(0).view().members, std::size_t(5));
}

// They find no history with each other. If each made one, all but one would be given up again; of five, some
// don't hear of the lowest id in time, because each asks only a few at a time.
void TestRoundsSim::who_begin_together_make_one_history() {
  std::size_t histories = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    RoundWorldOptions options = world_options(seed, 5);
    options.found_alone = true;
    Lab lab(options);
    std::set<Hash256> made;
    const auto all_begun = [&] {
      std::size_t begun = 0;
      for (std::size_t i = 0; i < 5; ++i)
        if (const auto* chain = lab.world.node(i).chain()) {
          made.insert(chain->genesis());
          ++begun;
        }
      return begun == 5;
    };
    // As long as one would wait for others that don't answer.
    CHECK_LAB(lab, lab.world.world().run_until(
                       all_begun, lab.world.world().now() + rounds::RoundOptions{}.found_alone_after));
    QVERIFY2(made.size() <= 3, qPrintable(QString::number(seed)));
    histories += made.size();
  }
  QVERIFY2(histories <= 13, qPrintable(QString::number(histories)));
}

void TestRoundsSim::two_histories_meet() {
  RoundWorldOptions options = world_options(10, 2);
  options.found_alone = true;
  Lab lab(options);
  lab.world.set_part(1, 1);
  lab.world.world().run_for(8 * round_time);
  QVERIFY(lab.world.node(0).chain()->genesis() != lab.world.node(1).chain()->genesis());
  QVERIFY(lab.world.node(0).status().round > 0 && lab.world.node(1).status().round > 0);
  lab.world.set_part(1, 0);
  CHECK_LAB(
      lab, lab.world.world().run_until(
               [&] { return lab.world.node(0).view().members == 2 && lab.world.node(1).view().members == 2; },
               lab.world.world().now() + 40 * round_time));
  CHECK_LAB(lab, lab.settles());
  QVERIFY(lab.world.node(0).chain()->genesis() == lab.world.node(1).chain()->genesis());
  CHECK_LAB(lab, lab.safe());
}

// One node alone can be faster than several that wait for each other.
void TestRoundsSim::a_shared_history_goes_before_a_longer_one_of_one_node() {
  RoundWorldOptions options = world_options(20, 3);
  options.found_alone = true;
  Lab lab(options);
  for (std::size_t i = 0; i < 2; ++i) lab.world.kill(i);
  lab.world.world().run_for(30 * round_time);
  for (std::size_t i = 0; i < 2; ++i) {
    lab.world.start(i);
    lab.world.set_part(i, 1);
  }
  const auto shared = [&] {
    return lab.world.node(0).view().members == 2 && lab.world.node(0).chain()->shared_rounds() >= 1;
  };
  CHECK_LAB(lab, lab.world.world().run_until(shared, lab.world.world().now() + 20 * round_time));
  const Hash256 genesis = lab.world.node(0).chain()->genesis();
  QVERIFY(lab.world.node(0).status().tokens < lab.world.node(2).status().tokens);
  for (std::size_t i = 0; i < 3; ++i) lab.world.set_part(i, 0);
  // At once, not when the two have caught up.
  CHECK_LAB(lab, lab.world.world().run_until([&] { return lab.world.node(2).view().members == 3; },
                                             lab.world.world().now() + 10 * round_time));
  CHECK_LAB(lab, lab.settles());
  for (std::size_t i = 0; i < 3; ++i) QVERIFY(lab.world.node(i).chain()->genesis() == genesis);
  CHECK_LAB(lab, lab.safe());
}

// Nodes that start together may find each other in twos first.
void TestRoundsSim::young_shared_histories_become_one() {
  RoundWorldOptions options = world_options(21, 4);
  options.found_alone = true;
  Lab lab(options);
  for (std::size_t i = 0; i < 4; ++i) lab.world.set_part(i, i < 2 ? 1 : 2);
  const auto in_twos = [&] {
    return lab.world.node(0).view().members == 2 && lab.world.node(2).view().members == 2 &&
           lab.world.node(0).chain()->shared_rounds() >= 2 && lab.world.node(2).chain()->shared_rounds() >= 2;
  };
  CHECK_LAB(lab, lab.world.world().run_until(in_twos, lab.world.world().now() + 40 * round_time));
  QVERIFY(lab.world.node(0).chain()->genesis() != lab.world.node(2).chain()->genesis());
  for (std::size_t i = 0; i < 4; ++i) lab.world.set_part(i, 0);
  const auto one = [&] {
    for (std::size_t i = 0; i < 4; ++i)
      if (lab.world.node(i).view().members != 4) return false;
    return true;
  };
  CHECK_LAB(lab, lab.world.world().run_until(one, lab.world.world().now() + 60 * round_time));
  CHECK_LAB(lab, lab.settles());
  for (std::size_t i = 1; i < 4; ++i)
    QVERIFY(lab.world.node(i).chain()->genesis() == lab.world.node(0).chain()->genesis());
  CHECK_LAB(lab, lab.safe());
}

void TestRoundsSim::work_without_a_quorum_counts_once() {
  Lab lab(world_options(11, 4));
  CHECK_LAB(lab, lab.world.run_to_round(2, 20 * round_time));
  for (std::size_t i = 0; i < 4; ++i) lab.world.set_part(i, i < 2 ? 0 : 1);
  const std::uint64_t before = lab.world.newest_round();
  lab.world.world().run_for(12 * round_time);
  QVERIFY(lab.world.newest_round() <= before + 1);  // what was signed when it was cut
  for (std::size_t i = 0; i < 4; ++i) {
    QCOMPARE(static_cast<int>(lab.world.node(i).view().phase),
             static_cast<int>(rounds::RoundPhase::Provisional));
    const auto trained = lab.world.trainer(i).steps_trained();
    QVERIFY2(trained > (before + 2) * inner_steps, qPrintable(QString::number(trained)));
    lab.world.set_part(i, 0);
  }
  const std::uint64_t cut = lab.world.newest_round();
  CHECK_LAB(lab, lab.settles());
  CHECK_LAB(lab, lab.safe());
  // What was trained meanwhile is in the next contributions.
  std::uint32_t most = 0;
  for (std::uint64_t round = cut + 1; round <= lab.world.newest_round(); ++round)
    for (const auto& c : lab.world.body(round)->contributors) most = std::max(most, c.steps);
  QVERIFY2(most > inner_steps, qPrintable(QString::number(most)));
}

void TestRoundsSim::who_leaves_is_not_waited_for() {
  Lab lab(world_options(12, 4));
  CHECK_LAB(lab, lab.world.run_to_round(2, 20 * round_time));
  lab.world.node(1).leave();
  CHECK_LAB(lab, lab.world.world().run_until([&] { return !lab.world.node(1).view().member; },
                                             lab.world.world().now() + 5 * round_time));
  lab.world.kill(1);
  CHECK_LAB(lab, lab.world.run_to_round(lab.world.newest_round() + 3, 20 * round_time));
  QCOMPARE(lab.world.node(0).view().members, std::size_t(3));
  CHECK_LAB(lab, lab.safe());
}

// Of two and of three all have to vote. Whenever somebody says that it goes, two seconds are enough for the
// others to have a certificate without it, as long as somebody has steps to contribute.
void TestRoundsSim::few_members_end_the_round_with_the_one_who_leaves() {
  for (std::uint64_t seed = 1; seed <= seeds(12); ++seed) {
    RoundWorldOptions options = world_options(seed, 2 + seed % 2);
    options.network.most_delay = std::chrono::milliseconds(20);
    Lab lab(options);
    CHECK_LAB(lab, lab.world.run_to_round(2, 20 * round_time));
    Rng rng(seed);
    lab.world.world().run_for(round_time / 10 + std::chrono::milliseconds(rng.below(5000)));
    const std::uint64_t contributed = lab.world.node(0).view().contributed;
    lab.world.node(0).leave();
    lab.world.world().run_until([&] { return lab.world.node(0).left(); },
                                lab.world.world().now() + 2 * second);
    const bool left = lab.world.node(0).left();
    const std::uint64_t counted = lab.world.node(0).view().contributed;
    lab.world.kill(0);
    CHECK_LAB(lab, left);
    QVERIFY(counted > contributed);  // its work of the round so far, too
    CHECK_LAB(lab, lab.world.run_to_round(lab.world.newest_round() + 3, 20 * round_time));
    QCOMPARE(lab.world.node(1).view().members, lab.world.size() - 1);
    QCOMPARE(lab.world.node(1).view().provisional, std::uint64_t(0));
    lab.world.start(0);
    CHECK_LAB(lab, lab.world.world().run_until([&] { return lab.world.node(0).view().member; },
                                               lab.world.world().now() + 10 * round_time));
    CHECK_LAB(lab, lab.settles());
    CHECK_LAB(lab, lab.safe());
  }
}

// A node leaves before its computer suspends and rejoins afterwards, sometimes before the others know that it
// left.
void TestRoundsSim::a_node_that_left_rejoins() {
  for (std::uint64_t seed = 1; seed <= seeds(12); ++seed) {
    RoundWorldOptions options = world_options(seed, 2 + seed % 3);
    options.network.most_delay = std::chrono::milliseconds(20);
    Lab lab(options);
    CHECK_LAB(lab, lab.world.run_to_round(2, 20 * round_time));
    Rng rng(seed);
    lab.world.world().run_for(std::chrono::milliseconds(rng.below(5000)));
    lab.world.node(0).leave();
    const Duration asleep = seed % 2 == 0 ? Duration(0) : 3 * round_time;
    lab.world.world().run_for(asleep);
    if (asleep > Duration(0)) QVERIFY(!lab.world.node(0).view().member);
    lab.world.node(0).rejoin();
    const std::uint64_t contributed = lab.world.node(0).view().contributed;
    CHECK_LAB(lab, lab.world.world().run_until(
                       [&] {
                         const rounds::RoundView view = lab.world.node(0).view();
                         return view.member && view.contributed > contributed + 1 &&
                                view.members == lab.world.size();
                       },
                       lab.world.world().now() + 10 * round_time));
    CHECK_LAB(lab, lab.settles());
    CHECK_LAB(lab, lab.safe());
  }
}

void TestRoundsSim::who_has_left_trains_on_when_nobody_is_there() {
  Lab lab(world_options(13, 2));
  CHECK_LAB(lab, lab.world.run_to_round(2, 20 * round_time));
  lab.world.world().run_for(round_time / 2);
  lab.world.node(0).leave();
  lab.world.world().run_until([&] { return lab.world.node(0).left(); }, lab.world.world().now() + 2 * second);
  lab.world.world().run_for(second);  // its state is on the disk
  lab.world.kill(0);
  CHECK_LAB(lab, lab.world.run_to_round(lab.world.newest_round() + 2, 20 * round_time));
  lab.world.kill(1);
  lab.world.start(0);
  lab.world.world().run_for(5 * round_time);
  QVERIFY(!lab.world.node(0).view().member);
  QCOMPARE(static_cast<int>(lab.world.node(0).view().phase),
           static_cast<int>(rounds::RoundPhase::Provisional));
  const auto trained = lab.world.trainer(0).steps_trained();
  QVERIFY2(trained > inner_steps, qPrintable(QString::number(trained)));
  lab.world.start(1);
  const std::uint64_t before = lab.world.newest_round();
  CHECK_LAB(lab, lab.world.world().run_until([&] { return lab.world.node(0).view().member; },
                                             lab.world.world().now() + 20 * round_time));
  CHECK_LAB(lab, lab.settles());
  CHECK_LAB(lab, lab.safe());
  // What it trained meanwhile is in its first contribution.
  std::uint32_t most = 0;
  for (std::uint64_t round = before + 1; round <= lab.world.newest_round(); ++round)
    for (const auto& c : lab.world.body(round)->contributors) most = std::max(most, c.steps);
  QVERIFY2(most > inner_steps, qPrintable(QString::number(most)));
}

NS_TEST(TestRoundsSim)
#include "test_rounds_sim.moc"
