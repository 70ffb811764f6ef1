// Nodes that die at bad moments or lose their memory; and nodes that are slow or train on while a round is agreed
// on. Afterwards all go on together, nothing counts twice and nobody honest is expelled.
#include <QtTest>

#include "tests/sim/chain_lab.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::sim;
using test::ChainLab;
using test::expelled;
using test::Fate;
using test::lab_options;
using test::lab_round;
using test::lab_second;
using test::PostKind;
using test::tell_nothing;

namespace {

std::uint64_t seeds(std::uint64_t in_ci) {
  return qEnvironmentVariableIntValue("NS_LONG") != 0 ? 10 * in_ci : in_ci;
}

// Of ten rounds; nothing: they don't come.
std::optional<double> seconds_a_round(ChainLab& lab) {
  lab.world.start_all();
  const auto began = lab.world.world().now();
  if (!lab.world.run_to_round(10, 60 * lab_round)) return std::nullopt;
  const double took = to_seconds(lab.world.world().now() - began) / 10;
  qInfo("%.1f s a round", took);
  return took;
}

class TestChainReturns : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_node_dies_at_each_kind_of_message_data();
  void a_node_dies_at_each_kind_of_message();
  void a_corrupted_anchor_is_repaired();
  void a_slow_node_holds_nobody_up();
  void half_of_the_nodes_may_be_slow();
  void one_of_two_has_no_step_yet_when_the_other_contributes();
  void a_slow_candidate_contributes_data();
  void a_slow_candidate_contributes();
  void overlapped_rounds_hardly_wait();
  void a_restart_in_mid_round_hardly_delays_data();
  void a_restart_in_mid_round_hardly_delays();
  void a_restart_costs_only_the_round_of_the_death_data();
  void a_restart_costs_only_the_round_of_the_death();
  void two_that_restart_go_on_without_the_third();
  void of_two_one_restarts_at_once();
  void those_that_come_after_a_succession_follow_when_their_persons_agree();
  void two_that_come_together_after_a_succession_are_both_asked();
};

// One of three goes on by its person's decision. Then a member that was left out comes back, a newcomer comes that has
// the genesis, and the other one comes back while the first two are there.
void TestChainReturns::those_that_come_after_a_succession_follow_when_their_persons_agree() {
  auto options = lab_options(1, 4);
  options.founders = 3;
  ChainLab lab(options, false);
  for (std::size_t node = 0; node < 3; ++node) lab.world.start(node);
  QVERIFY2(lab.world.run_to_round(2, 20 * lab_round), lab.text("three").c_str());
  lab.world.kill(1);
  lab.world.kill(2);
  lab.run_for(60 * lab_second);
  const auto begun = lab.world.chain(0).continuation().continue_without({lab.world.id(1), lab.world.id(2)});
  QVERIFY2(begun.ok(), begun.ok() ? "" : begun.error().message.c_str());
  const std::uint64_t round = lab.world.round(0);
  QVERIFY2(lab.world.run_to_round(round + 3, 60 * lab_round), lab.text("alone").c_str());
  for (const std::size_t node : {std::size_t{1}, std::size_t{3}, std::size_t{2}}) {
    lab.world.start(node);
    const auto asked = [&] { return lab.world.chain(node).view().asks_succession; };
    QVERIFY2(lab.world.run_until([&] { return asked().has_value(); }, 20 * lab_round),
             lab.text("its person is asked").c_str());
    lab.run_for(2 * lab_round);
    QVERIFY2(lab.world.round(node) <= round, lab.text("it does not follow by itself").c_str());
    lab.world.chain(node).continuation().agree(*asked());
    const auto is_back = [&] {
      return !lab.world.chain(node).is_away() && lab.world.round(node) == lab.world.round(0);
    };
    QVERIFY2(lab.world.run_until(is_back, 60 * lab_round), lab.text("it is back").c_str());
    QVERIFY(!asked());
  }
  QVERIFY2(lab.world.run_to_round(lab.world.round(0) + 2, 60 * lab_round), lab.text("all").c_str());
  QCOMPARE(lab.world.seen().conflicts, 0u);
  QCOMPARE(lab.world.chain(0).view().voters, std::size_t{3});
}

// Two of four go on by a person's decision. The other two hear each other and are too few for a chain of their own.
void TestChainReturns::two_that_come_together_after_a_succession_are_both_asked() {
  ChainLab lab(lab_options(1, 4));
  QVERIFY2(lab.world.run_to_round(2, 20 * lab_round), lab.text("four").c_str());
  for (const std::size_t node : {2, 3}) lab.world.kill(node);
  lab.run_for(60 * lab_second);
  const auto begun = lab.world.chain(0).continuation().continue_without({lab.world.id(2), lab.world.id(3)});
  QVERIFY2(begun.ok(), begun.ok() ? "" : begun.error().message.c_str());
  const auto asked = [&](std::size_t node) { return lab.world.chain(node).view().asks_succession; };
  QVERIFY2(lab.world.run_until([&] { return asked(1).has_value(); }, 5 * lab_round), "the second is asked");
  lab.world.chain(1).continuation().agree(*asked(1));
  const std::uint64_t round = lab.world.round(0);
  QVERIFY2(lab.world.run_to_round(round + 3, 60 * lab_round), lab.text("two go on").c_str());
  for (const std::size_t node : {2, 3}) lab.world.start(node);
  const auto both_asked = [&] { return asked(2).has_value() && asked(3).has_value(); };
  QVERIFY2(lab.world.run_until(both_asked, 20 * lab_round), lab.text("both are asked").c_str());
  for (const std::size_t node : {2, 3}) lab.world.chain(node).continuation().agree(*asked(node));
  const auto are_back = [&] {
    return !lab.world.chain(2).is_away() && !lab.world.chain(3).is_away() &&
           lab.world.round(2) == lab.world.round(0) && lab.world.round(3) == lab.world.round(0);
  };
  QVERIFY2(lab.world.run_until(are_back, 60 * lab_round), lab.text("both are back").c_str());
  QCOMPARE(lab.world.seen().conflicts, 0u);
}

void TestChainReturns::a_node_dies_at_each_kind_of_message_data() {
  QTest::addColumn<int>("kind");
  QTest::newRow("contribution") << int(PostKind::Contribution);
  QTest::newRow("vector") << int(PostKind::Vector);
  QTest::newRow("proposal") << int(PostKind::Proposal);
  QTest::newRow("vote") << int(PostKind::Vote);
  QTest::newRow("announcement") << int(PostKind::Certified);
}

// Whoever is the first to send a message of this kind in the third round dies while it leaves, with part of its
// recipients; a proposal's sender is the leader. It comes back later.
void TestChainReturns::a_node_dies_at_each_kind_of_message() {
  QFETCH(int, kind);
  for (std::uint64_t seed = 1; seed <= seeds(4); ++seed) {
    std::optional<std::size_t> dead;
    ChainLab* self = nullptr;
    ChainLab lab(lab_options(seed, 4), false, [&](std::size_t node) -> test::EditingCaller::Edit {
      return [&, node, sent = 0](const net::Contact&, PostKind of, Bytes*) mutable {
        if (int(of) != kind || dead || self->world.round(node) < 2) return Fate::Send;
        // The second copy is the last thing that it does; whether its disk has it is a matter of luck.
        if (++sent < 2) return Fate::Send;
        dead = node;
        self->world.world().after(Duration{}, [&world = self->world, node] { world.kill(node); });
        return Fate::Send;
      };
    });
    self = &lab;
    lab.world.start_all();
    QVERIFY2(lab.world.run_until([&] { return dead.has_value(); }, 20 * lab_round),
             lab.text("death").c_str());
    QVERIFY2(lab.world.run_to_round(4, 30 * lab_round), lab.text("three go on").c_str());
    lab.world.start(*dead);
    QVERIFY2(lab.world.run_to_round(lab.world.round((*dead + 1) % 4) + 3, 30 * lab_round),
             lab.text("four").c_str());
    lab.run_for(2 * lab_second);
    QCOMPARE(lab.world.seen().conflicts, 0u);
    QCOMPARE(lab.world.seen().twice, 0u);
    QCOMPARE(expelled(lab, (*dead + 1) % 4), 0u);
    QCOMPARE(lab.world.agreement_rate(), 1.0);
  }
}
// A bit of one node's memory flips: its own result differs, and it takes the certified anchor of the others.
void TestChainReturns::a_corrupted_anchor_is_repaired() {
  ChainLab lab(lab_options(1, 4));
  QVERIFY(lab.world.run_to_round(3, 20 * lab_round));
  lab.run_for(lab_second);
  const auto& anchor = lab.world.training(2).states().state(0);
  Bytes changed = read_all(*anchor->bytes).value();
  changed[1] ^= 0x40;
  const_cast<rounds::OuterState&>(*anchor).bytes = in_memory(changed);  // NOLINT: what a faulty memory does
  QVERIFY2(lab.world.run_to_round(8, 40 * lab_round), lab.text("goes on").c_str());
  lab.run_for(2 * lab_second);
  QCOMPARE(lab.world.agreement_rate(), 1.0);
  QCOMPARE(lab.world.seen().conflicts, 0u);
  for (std::size_t node = 0; node < 4; ++node) {
    QVERIFY(read_all(*lab.world.training(node).states().state(0)->bytes).value() ==
            read_all(*lab.world.newest_anchor()->bytes).value());
    QVERIFY2(lab.world.training(node).view().fetched_anchors == (node == 2 ? 1u : 0u),
             lab.text("fetched").c_str());
  }
}

void TestChainReturns::a_slow_node_holds_nobody_up() {
  ChainLab lab(lab_options(1, 5), false);
  lab.world.set_step_time(4, 3 * lab_round / test::lab_inner_steps);
  const auto took = seconds_a_round(lab);
  QVERIFY2(took, lab.text("ten rounds").c_str());
  QVERIFY2(*took < 2 * to_seconds(lab_round), "a round");
  QVERIFY2(lab.world.training(4).view().counted >= 8, lab.text("fewer steps count").c_str());
}

// Two of four take four times as long for a step. They contribute when the fast ones have.
void TestChainReturns::half_of_the_nodes_may_be_slow() {
  ChainLab lab(lab_options(1, 4), false);
  for (const std::size_t slow : {2, 3}) lab.world.set_step_time(slow, 4 * lab_round / test::lab_inner_steps);
  const auto took = seconds_a_round(lab);
  QVERIFY2(took, lab.text("ten rounds").c_str());
  QVERIFY2(*took < 1.5 * to_seconds(lab_round), "a round");
  for (const std::size_t slow : {2, 3})
    QVERIFY2(lab.world.training(slow).view().counted >= 9, lab.text("fewer steps count").c_str());
}

// It contributes after its first step.
void TestChainReturns::one_of_two_has_no_step_yet_when_the_other_contributes() {
  ChainLab lab(lab_options(1, 2), false);
  const Duration step = 3 * lab_round / 2;
  lab.world.set_step_time(1, step);
  const auto took = seconds_a_round(lab);
  QVERIFY2(took, lab.text("ten rounds").c_str());
  QVERIFY2(*took < 1.5 * to_seconds(step), "a round");
  QVERIFY2(lab.world.training(1).view().counted >= 9, lab.text("one step counts").c_str());
}

void TestChainReturns::a_slow_candidate_contributes_data() {
  QTest::addColumn<int>("voters");
  QTest::addColumn<int>("fragments");
  QTest::addColumn<int>("slower");
  QTest::newRow("four voters") << 4 << 1 << 4;
  QTest::newRow("hardly slower") << 4 << 1 << 1;
  QTest::newRow("two fragments") << 4 << 2 << 4;
  QTest::newRow("a large committee") << 18 << 1 << 4;
}

// It takes so many times as long for a step. It sees no contribution before its own, and knows from the blocks how long
// rounds take.
void TestChainReturns::a_slow_candidate_contributes() {
  QFETCH(int, voters);
  QFETCH(int, fragments);
  QFETCH(int, slower);
  const auto candidate = static_cast<std::size_t>(voters);
  auto options = lab_options(1, candidate + 1);
  options.founders = candidate;
  options.fragments = static_cast<std::uint32_t>(fragments);
  options.chain.rules.admission_contributions = 1000;  // it never votes
  ChainLab lab(options, false);
  lab.world.set_step_time(candidate, (10 * slower + 1) * lab_round / 10 / test::lab_inner_steps);
  lab.world.start_all();
  QVERIFY2(lab.world.run_to_round(15, 40 * lab_round), lab.text("fifteen rounds").c_str());
  QVERIFY2(lab.world.training(candidate).view().counted >= 10, lab.text("its steps count").c_str());
}

// The same rounds, training on while they are agreed on and not.
void TestChainReturns::overlapped_rounds_hardly_wait() {
  const auto waits = [](rounds::RoundSync sync) {
    auto options = lab_options(1, 4);
    options.training.sync = sync;
    ChainLab lab(options);
    if (!lab.world.run_to_round(12, 60 * lab_round) ||
        lab.world.seen().conflicts + lab.world.seen().twice != 0)
      return 1.0;
    return lab.world.trainer(0).waiting_share();
  };
  const double plain = waits(rounds::RoundSync::Plain), overlapped = waits(rounds::RoundSync::Delayed);
  qInfo("waits %.1f %% of the time, overlapped %.1f %%", 100 * plain, 100 * overlapped);
  QVERIFY(plain < 1.0 && overlapped < 0.05 && overlapped < plain / 2);
}

void TestChainReturns::a_restart_in_mid_round_hardly_delays_data() {
  QTest::addColumn<int>("nodes");
  QTest::newRow("three") << 3;
  QTest::newRow("five") << 5;
}

// Two rounds after the restart of one voter at each of twenty moments of a round. Nothing: nodes disagree, or
// wait for the first deadline.
std::optional<double> slowest_after_a_restart(std::size_t nodes, bool told, std::string* text) {
  double longest = 0;
  for (int moment = 0; moment < 20; ++moment) {
    auto options = lab_options(7 + static_cast<std::uint64_t>(moment), nodes);
    options.training.clock.first_deadline = std::chrono::minutes(30);
    ChainLab lab(options);
    if (!told) tell_nothing(lab, nodes);
    if (!lab.world.run_to_round(1, 30 * lab_round)) return std::nullopt;
    lab.run_for(moment * std::chrono::milliseconds(300));
    const std::uint64_t before = lab.world.round(1);
    lab.world.kill(0);
    lab.run_for(lab_second / 2);
    lab.world.start(0);
    const auto began = lab.world.world().now();
    const bool reached = lab.world.run_to_round(before + 2, 100 * lab_round);
    longest = std::max(longest, to_seconds(lab.world.world().now() - began));
    *text = lab.text("after the restart");
    if (!reached || expelled(lab, 1) != 0 || lab.world.seen().conflicts + lab.world.seen().twice != 0)
      return std::nullopt;
  }
  qInfo("%zu nodes: the longest two rounds took %.1f s", nodes, longest);
  return longest;
}

// The restarted voter has forgotten what it took and trains anew from the anchor. With three voters the round
// needs all of them; the deadline is far away.
void TestChainReturns::a_restart_in_mid_round_hardly_delays() {
  QFETCH(int, nodes);
  std::string text;
  const auto longest = slowest_after_a_restart(static_cast<std::size_t>(nodes), true, &text);
  QVERIFY2(longest && *longest < 5 * to_seconds(lab_round), text.c_str());
}

void TestChainReturns::a_restart_costs_only_the_round_of_the_death_data() {
  QTest::addColumn<int>("away_ms");  // after the round of the death
  QTest::newRow("back at once") << 0;
  QTest::newRow("back in the next round") << 1500;
}

// One of five dies shortly before the close, and is back in the next round. It missed two blocks, but its disk is whole,
// as the others confirm; so the next round has its work, and it is never away.
void TestChainReturns::a_restart_costs_only_the_round_of_the_death() {
  QFETCH(int, away_ms);
  for (std::uint64_t seed = 1; seed <= seeds(8); ++seed) {
    auto options = lab_options(seed, 5);
    options.training.clock.most_grace = 3 * lab_second;
    ChainLab lab(options);
    QVERIFY2(lab.world.run_to_round(3, 20 * lab_round), lab.text("three rounds").c_str());
    lab.run_for(lab_second * 7 / 2);
    const std::uint64_t height = lab.world.height(4);
    lab.world.kill(4);
    const auto registry = [&] { return lab.world.chain(0).history()->tip().registry; };
    const std::uint64_t dies_in = registry()->round() + 1;
    QVERIFY(lab.world.run_until([&] { return lab.world.round(0) == dies_in; }, 10 * lab_round));
    lab.run_for(std::chrono::milliseconds(away_ms));
    QVERIFY(lab.world.height(0) >= height + 2);
    lab.world.start(4);
    QVERIFY(lab.world.run_until([&] { return lab.world.round(0) == dies_in + 1; }, 10 * lab_round));
    const chain::MemberRecord* member = registry()->find(lab.world.id(4));
    QVERIFY2(member->last_round == dies_in + 1, lab.text("the round after").c_str());
    QVERIFY(member->presence == chain::Presence::Active && member->presence_height <= height);
    QCOMPARE(lab.world.seen().conflicts + lab.world.seen().twice, 0u);
  }
}

// The third dies before the two that restarted have been there for a whole round. They know from the blocks how
// long rounds take; by the first deadline alone they would wait an hour.
void TestChainReturns::two_that_restart_go_on_without_the_third() {
  auto options = lab_options(1, 3);
  options.training.clock.first_deadline = std::chrono::minutes(30);
  ChainLab lab(options);
  QVERIFY2(lab.world.run_to_round(5, 20 * lab_round), lab.text("five rounds").c_str());
  for (const std::size_t node : {0, 1}) lab.world.kill(node);
  lab.run_for(2 * lab_second);
  for (const std::size_t node : {0, 1}) lab.world.start(node);
  lab.run_for(2 * lab_second);
  lab.world.kill(2);
  const std::uint64_t round = lab.world.round(0);
  const auto began = lab.world.world().now();
  QVERIFY2(lab.world.run_to_round(round + 3, std::chrono::hours(2)), lab.text("two go on").c_str());
  const double took = to_seconds(lab.world.world().now() - began);
  qInfo("three rounds %.0f s after the third died", took);
  QVERIFY2(took < to_seconds(options.chain.rules.stall_after) + 90, "the stall time and a minute and a half");
  QCOMPARE(lab.world.seen().conflicts, 0u);
}

// Neither can close a round without the other. One of them dies at any time, eight times in all, and is back before
// anybody misses it; a third one comes in the middle. Rounds are short, as those of small models, and in half of the
// runs each closes one of two fragments.
void TestChainReturns::of_two_one_restarts_at_once() {
  for (std::uint64_t seed = 1; seed <= seeds(20); ++seed) {
    Rng rng(seed);
    auto options = lab_options(seed, 3);
    options.founders = 2;
    options.fragments = 1 + seed % 2;
    options.trainer.step_time = std::chrono::milliseconds(200 + rng.below(3000)) / test::lab_inner_steps;
    options.training.clock.most_grace = 3 * lab_second;
    ChainLab lab(options, false);
    lab.world.start(0);
    lab.world.start(1);
    QVERIFY2(lab.world.run_to_round(2, 20 * lab_round), lab.text("two rounds").c_str());
    for (int deaths = 0; deaths < 8; ++deaths) {
      lab.run_for(std::chrono::milliseconds(rng.below(8000)));
      const std::size_t killed = rng.below(2);
      lab.world.kill(killed);
      lab.run_for(std::chrono::milliseconds(50 + rng.below(2000)));
      lab.world.start(killed);
      if (deaths == 3) lab.world.start(2);
      const std::uint64_t round = lab.world.round(1 - killed);
      QVERIFY2(lab.world.run_to_round(round + 2, 12 * lab_round), lab.text("they go on").c_str());
    }
    QCOMPARE(lab.world.seen().conflicts, 0u);
    QCOMPARE(lab.world.seen().twice, 0u);
  }
}

}  // namespace

NS_TEST(TestChainReturns)
#include "test_chain_returns.moc"
