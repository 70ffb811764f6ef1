// Lost messages, lost power and lost disks: whatever is lost, all hold the same anchors soon after, and nobody
// honest is taken for an equivocator. NS_LONG=1 takes ten times the seeds.
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

namespace {

std::uint64_t seeds(std::uint64_t in_ci) {
  return qEnvironmentVariableIntValue("NS_LONG") != 0 ? 10 * in_ci : in_ci;
}

bool is_safe(const ChainLab& lab) {
  const ChainWorldSeen& seen = lab.world.seen();
  return seen.conflicts + seen.twice + seen.wrong_anchors == 0;
}

std::uint64_t newest(const ChainLab& lab) {
  std::uint64_t round = 0;
  for (std::size_t node = 0; node < lab.world.size(); ++node) round = std::max(round, lab.world.round(node));
  return round;
}

// All have one anchor again, within two rounds from now.
bool settles(ChainLab& lab) {
  return lab.world.run_to_round(newest(lab) + 2, 60 * lab_round) &&
         lab.world.run_until([&] { return lab.world.agreement_rate() == 1; }, 2 * lab_round);
}

#define CHECK_LAB(lab, condition) QVERIFY2(condition, (lab).text(#condition).c_str())

class TestChainLost : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_third_of_all_messages_is_lost();
  void a_cut_heals();
  void a_cut_between_all_heals();
  void clocks_that_were_ahead_once_stop_nothing();
  void a_lock_of_clocks_that_were_ahead_stops_nothing();
  void halves_name_each_other_as_missing();
  void one_of_four_dies_in_mid_round_and_comes_back();
  void the_power_goes_for_all();
  void a_node_is_back_after_many_rounds_data();
  void a_node_is_back_after_many_rounds();
  void a_block_that_a_quorum_prepared_is_not_held_up();
  void work_without_a_quorum_counts_once();
  void a_death_before_the_contribution_is_kept_is_no_equivocation();
  void an_expired_farewell_is_taken_back();
};

void TestChainLost::a_third_of_all_messages_is_lost() {
  for (std::uint64_t seed = 1; seed <= seeds(6); ++seed) {
    auto options = lab_options(seed, 4 + seed % 3);
    options.network.loss = 0.3;
    ChainLab lab(options);
    CHECK_LAB(lab, lab.world.run_to_round(5, 5 * 20 * lab_round));
    lab.world.network().set_loss(0);
    CHECK_LAB(lab, settles(lab));
    CHECK_LAB(lab, is_safe(lab));
    QCOMPARE(expelled(lab, 0), 0u);
  }
}

void TestChainLost::a_cut_heals() {
  for (std::uint64_t seed = 1; seed <= seeds(12); ++seed) {
    ChainLab lab(lab_options(seed, 4 + seed % 4));
    Rng rng(seed);
    lab.run_for(lab_round + std::chrono::milliseconds(rng.below(9000)));
    for (std::size_t i = 0; i < lab.world.size(); ++i) lab.world.set_part(i, static_cast<int>(rng.below(2)));
    lab.run_for(lab_round * static_cast<int>(1 + rng.below(10)));
    CHECK_LAB(lab, is_safe(lab));
    for (std::size_t i = 0; i < lab.world.size(); ++i) lab.world.set_part(i, 0);
    CHECK_LAB(lab, settles(lab));
    CHECK_LAB(lab, is_safe(lab));
    QCOMPARE(expelled(lab, 0), 0u);
  }
}

// Each voter signs a vector that lists its own contribution only, so no contribution is due. The round closes without any.
void TestChainLost::a_cut_between_all_heals() {
  for (std::uint64_t seed = 1; seed <= seeds(3); ++seed) {
    ChainLab lab(lab_options(seed, 3));
    lab.run_for(lab_second);
    for (int i = 0; i < 3; ++i) lab.world.set_part(static_cast<std::size_t>(i), i);
    lab.run_for(6 * lab_round);  // the first deadline and the grace
    for (std::size_t i = 0; i < 3; ++i) {
      QCOMPARE(lab.world.training(i).view().vectors, std::size_t{1});
      lab.world.set_part(i, 0);
    }
    CHECK_LAB(lab, settles(lab) && is_safe(lab));
    QCOMPARE(expelled(lab, 0), 0u);
  }
}

// The times of blocks never go back, so the clocks would have to come to where they were.
void TestChainLost::clocks_that_were_ahead_once_stop_nothing() {
  ChainLab lab(lab_options(4, 4));
  CHECK_LAB(lab, lab.world.run_to_round(2, 20 * lab_round));
  const auto tip_ms = [&] { return lab.world.chain(0).history()->tip().block->header.time_ms; };
  const std::uint64_t right_ms = tip_ms();
  lab.world.world().jump_wall(std::chrono::hours(2));
  CHECK_LAB(lab, lab.world.run_until([&] { return tip_ms() > right_ms + 3'600'000; }, 10 * lab_round));
  lab.world.world().jump_wall(-std::chrono::hours(2));
  const std::uint64_t ahead_ms = tip_ms();
  CHECK_LAB(lab, settles(lab) && is_safe(lab));
  QVERIFY(tip_ms() > ahead_ms && tip_ms() < ahead_ms + 1000);
}

// No commit arrives before the power goes, so the voters have a lock and no certificate.
void TestChainLost::a_lock_of_clocks_that_were_ahead_stops_nothing() {
  bool holds = false, locked = false;
  ChainLab lab(lab_options(4, 4), true, [&](std::size_t) -> test::EditingCaller::Edit {
    return [&](const net::Contact&, PostKind kind, Bytes* post) {
      if (!holds || kind != PostKind::Vote) return Fate::Send;
      const auto item = chain::decode_item(*post, Hash256{});
      const auto* vote = item.ok() ? std::get_if<chain::SignedVote>(&*item) : nullptr;
      if (vote == nullptr || vote->vote.step != chain::VoteStep::Commit) return Fate::Send;
      locked = true;
      return Fate::Drop;
    };
  });
  CHECK_LAB(lab, lab.world.run_to_round(2, 20 * lab_round));
  holds = true;
  lab.world.world().jump_wall(std::chrono::hours(2));
  CHECK_LAB(lab, lab.world.run_until([&] { return locked; }, 10 * lab_round));
  lab.run_for(lab_second);
  for (std::size_t i = 0; i < 4; ++i) lab.world.kill(i);
  lab.world.world().jump_wall(-std::chrono::hours(2));
  holds = false;
  lab.world.start_all();
  CHECK_LAB(lab, settles(lab) && is_safe(lab));
}

// Neither half can certify a block, so nobody votes. The status names the other half as missing, and not the own one.
void TestChainLost::halves_name_each_other_as_missing() {
  ChainLab lab(lab_options(1, 4));
  CHECK_LAB(lab, lab.world.run_to_round(3, 20 * lab_round));
  for (std::size_t i = 0; i < 4; ++i) lab.world.set_part(i, i < 2 ? 0 : 1);
  lab.run_for(std::chrono::minutes(10));
  for (std::size_t i = 0; i < 4; ++i) {
    const chain::ChainView view = lab.world.chain(i).view();
    const std::size_t other = i < 2 ? 2 : 0;
    std::vector<net::NodeId> expected{lab.world.id(other), lab.world.id(other + 1)};
    std::vector<net::NodeId> missing = view.missing;
    std::sort(expected.begin(), expected.end());
    std::sort(missing.begin(), missing.end());
    CHECK_LAB(lab, missing == expected);
    QCOMPARE(2 * view.heard_units, view.active_units);
  }
  for (std::size_t i = 0; i < 4; ++i) lab.world.set_part(i, 0);
  CHECK_LAB(lab, settles(lab));
  for (std::size_t i = 0; i < 4; ++i) CHECK_LAB(lab, lab.world.chain(i).view().missing.empty());
  CHECK_LAB(lab, is_safe(lab));
}

void TestChainLost::one_of_four_dies_in_mid_round_and_comes_back() {
  for (std::uint64_t seed = 1; seed <= seeds(8); ++seed) {
    ChainLab lab(lab_options(seed, 4));
    Rng rng(seed);
    for (int i = 0; i < 3; ++i) {
      const std::size_t node = rng.below(4);
      lab.run_for(std::chrono::milliseconds(rng.below(6000)));
      lab.world.kill(node);
      lab.run_for(std::chrono::milliseconds(rng.below(12'000)));
      lab.world.start(node);
    }
    CHECK_LAB(lab, settles(lab));
    CHECK_LAB(lab, is_safe(lab));
    QCOMPARE(expelled(lab, 0), 0u);
  }
}

void TestChainLost::the_power_goes_for_all() {
  for (std::uint64_t seed = 1; seed <= seeds(8); ++seed) {
    ChainLab lab(lab_options(seed, 4));
    Rng rng(seed);
    lab.run_for(2 * lab_round + std::chrono::milliseconds(rng.below(8000)));
    for (std::size_t i = 0; i < 4; ++i) lab.world.kill(i);
    lab.run_for(lab_second);
    for (std::size_t i = 0; i < 4; ++i) lab.world.start(i);
    CHECK_LAB(lab, settles(lab));
    CHECK_LAB(lab, is_safe(lab));
    QCOMPARE(expelled(lab, 0), 0u);
  }
}

void TestChainLost::a_node_is_back_after_many_rounds_data() {
  QTest::addColumn<bool>("anchors");
  QTest::newRow("with its disk") << true;
  QTest::newRow("without its anchors") << false;
}

void TestChainLost::a_node_is_back_after_many_rounds() {
  QFETCH(bool, anchors);
  ChainLab lab(lab_options(6, 5));
  CHECK_LAB(lab, lab.world.run_to_round(2, 20 * lab_round));
  lab.world.kill(3);
  CHECK_LAB(lab, lab.world.run_to_round(80, 400 * lab_round));
  const net::NodeId id = lab.world.id(3);
  const auto votes = [&] { return lab.world.chain(0).history()->tip().committee->position(id).has_value(); };
  CHECK_LAB(lab, !votes());
  if (!anchors) lab.world.disk(3).anchors.clear();
  lab.world.start(3);
  CHECK_LAB(lab, lab.world.run_until([&] { return votes() && lab.world.training(3).view().counted >= 2; },
                                     20 * lab_round));
  CHECK_LAB(lab, lab.world.training(3).view().fetched_anchors >= 1);
  CHECK_LAB(lab, settles(lab) && is_safe(lab));
}

// Two of eight have contributions that the six others lack. A death leaves no quorum without these two.
void TestChainLost::a_block_that_a_quorum_prepared_is_not_held_up() {
  constexpr std::size_t all = 8;
  ChainLab* self = nullptr;
  std::optional<std::size_t> dead;
  ChainLab lab(lab_options(3, all), false, [&](std::size_t node) -> test::EditingCaller::Edit {
    return [&, node](const net::Contact& to, PostKind kind, Bytes* post) {
      if (self->world.round(node) > 0) return Fate::Send;
      if (kind == PostKind::Contribution && node >= 5)
        for (std::size_t other = 0; other < 6; ++other)
          if (to.id == self->world.id(other)) return Fate::Drop;
      if (kind == PostKind::Vote && node < 6 && !dead) {
        const auto item = chain::decode_item(*post, self->world.network_id());
        const auto* vote = item.ok() ? std::get_if<chain::SignedVote>(&*item) : nullptr;
        if (vote != nullptr && vote->vote.step == chain::VoteStep::Commit) {
          dead = node;
          self->world.world().after(Duration{}, [&world = self->world, node] { world.kill(node); });
          return Fate::Drop;
        }
      }
      return Fate::Send;
    };
  });
  self = &lab;
  lab.world.start_all();
  CHECK_LAB(lab, lab.world.run_to_round(1, 40 * lab_round));
  QVERIFY(dead.has_value());
  CHECK_LAB(lab, is_safe(lab));
  lab.world.start(*dead);
  CHECK_LAB(lab, settles(lab) && is_safe(lab));
}

// Two halves train on by themselves; their work goes into their next contributions.
void TestChainLost::work_without_a_quorum_counts_once() {
  ChainLab lab(lab_options(11, 4));
  CHECK_LAB(lab, lab.world.run_to_round(2, 20 * lab_round));
  for (std::size_t i = 0; i < 4; ++i) lab.world.set_part(i, i < 2 ? 0 : 1);
  const std::uint64_t before = newest(lab);
  lab.run_for(12 * lab_round);
  QVERIFY(newest(lab) <= before + 1);  // one may have been signed before the cut
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK_LAB(lab, lab.world.training(i).view().provisional);
    const auto trained = lab.world.trainer(i).steps_trained();
    QVERIFY2(trained > (before + 2) * test::lab_inner_steps, qPrintable(QString::number(trained)));
    lab.world.set_part(i, 0);
  }
  CHECK_LAB(lab, settles(lab) && is_safe(lab));
  // The work trained meanwhile is in a contribution: its tokens are of more than a round.
  std::uint64_t most = 0;
  for (const auto& bytes : lab.world.disk(0).blocks) {
    const auto block = chain::decode_certified(*bytes, lab.world.network_id());
    if (!block->block->body.close) continue;
    for (const chain::ContributionEntry& entry : block->block->body.close->contributions)
      most = std::max(most, entry.tokens);
  }
  QVERIFY2(most > 12 * test::lab_inner_steps * 5 / 4, qPrintable(QString::number(most)));
}

// Its disk takes a second: it dies while its contribution is written. Nobody has seen that one, so another one
// contradicts nothing.
void TestChainLost::a_death_before_the_contribution_is_kept_is_no_equivocation() {
  for (std::uint64_t seed = 1; seed <= seeds(3); ++seed) {
    for (const int after : {100, 500, 900, 1100}) {
      auto options = lab_options(seed, 3);
      options.disk_time = std::chrono::milliseconds(600);
      ChainLab lab(options);
      CHECK_LAB(lab, lab.world.run_to_round(2, 30 * lab_round));
      lab.run_for(lab_round - lab_second + std::chrono::milliseconds(after));
      lab.world.kill(0);
      lab.world.start(0);
      CHECK_LAB(lab, settles(lab) && is_safe(lab));
      QCOMPARE(expelled(lab, 0), 0u);
      for (std::size_t node = 0; node < 3; ++node) QCOMPARE(lab.world.chain(node).view().evidence, 0u);
    }
  }
}

// A node says that it goes before its computer suspends, and comes back, sometimes before the others know.
void TestChainLost::an_expired_farewell_is_taken_back() {
  for (std::uint64_t seed = 1; seed <= seeds(6); ++seed) {
    ChainLab lab(lab_options(seed, 2 + seed % 3));
    CHECK_LAB(lab, lab.world.run_to_round(2, 20 * lab_round));
    Rng rng(seed);
    lab.run_for(std::chrono::milliseconds(rng.below(5000)));
    lab.world.chain(0).set_away(true);
    if (seed % 2 != 0) {
      CHECK_LAB(lab, lab.world.run_until([&] { return lab.world.chain(0).is_away(); }, lab_round));
      lab.run_for(3 * lab_round);
    }
    lab.world.chain(0).set_away(false);
    const std::uint64_t counted = lab.world.training(0).view().counted;
    CHECK_LAB(lab, lab.world.run_until(
                       [&] {
                         return !lab.world.chain(0).is_away() &&
                                lab.world.training(0).view().counted > counted + 1;
                       },
                       15 * lab_round));
    CHECK_LAB(lab, settles(lab) && is_safe(lab));
  }
}

}  // namespace

NS_TEST(TestChainLost)
#include "test_chain_lost.moc"
