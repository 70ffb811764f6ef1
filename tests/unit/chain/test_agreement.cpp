// The agreement on one block, alone: members on a virtual clock and a bus that loses, delays and cuts; leaders
// that die, that make wrong proposals and that tell two stories.
#include <QtTest>

#include "tests/support/test_main.h"
#include "tests/unit/chain/agreement_bus.h"

using namespace neuroshard;
using namespace neuroshard::chain;
using namespace neuroshard::test;

namespace {

BusOptions options(std::uint64_t seed, std::size_t members, double loss = 0) {
  BusOptions options;
  options.seed = seed;
  options.units = equal_units(members);
  options.loss = loss;
  return options;
}

// How many different results there are at the end of a cut that heals.
std::size_t results_after_a_cut(const BusOptions& options, bool* decided = nullptr) {
  Bus bus(options);
  Rng rng(options.seed + 1000);
  bus.world.run_for(std::chrono::milliseconds(rng.below(2000)));
  for (auto& member : bus.members) member->part = static_cast<int>(rng.below(2));
  if (options.local_views)
    for (auto& member : bus.members) {
      member->power_off();
      member->power_on();
    }
  bus.world.run_for(second * static_cast<int>(5 + rng.below(60)));
  for (auto& member : bus.members) member->part = 0;
  const bool all = bus.run_until_decided(10 * 60 * second);
  if (decided != nullptr) *decided = all;
  return options.local_views ? bus.different_results() : std::max(bus.different_results(), bus.certifiable());
}

}  // namespace

class TestAgreement : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void members_agree_in_the_first_view();
  void units_decide_and_not_members();
  void a_silent_leader_is_replaced();
  void a_wrong_proposal_is_not_certified();
  void a_refused_proposal_costs_a_moment();
  void a_member_that_refuses_alone_waits_for_the_others();
  void a_member_that_is_almost_a_view_ahead_waits_for_the_others();
  void omissions_bind_until_view_3();
  void a_locked_block_is_not_held_up_by_what_only_some_know();
  void a_leader_that_has_lost_its_proposal_gives_up();
  void a_leader_dies_at_every_stage();
  void members_restart_at_any_moment();
  void cuts_and_losses_never_make_two();
  void equivocation_below_a_third_never_makes_two_and_is_proven();
  void collected_votes_of_20_members();
  void collected_votes_under_faults();
  void others_pass_on_only_what_the_leader_signed();
  void with_local_views_there_are_two();
};

void TestAgreement::members_agree_in_the_first_view() {
  for (const std::size_t n : {1u, 2u, 3u, 4u, 7u, 16u}) {
    Bus bus(options(n, n));
    QVERIFY(bus.run_until_decided(3 * second));
    QCOMPARE(bus.different_results(), std::size_t(1));
    QCOMPARE(bus.certifiable(), std::size_t(1));
    QCOMPARE(bus.bad_certificates, std::size_t(0));
    for (const auto& member : bus.members) {
      QCOMPARE(member->certificate.commits.view, 0u);
      QVERIFY(!member->certificate.lock);
      QCOMPARE(member->result->hash, bus.leader(0).block()->hash);
    }
  }
}

// Planted: VoteLedger::add counting 1 per vote instead of units fails both halves.
void TestAgreement::units_decide_and_not_members() {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    // Three of seven are away, but only a fifth of the units.
    BusOptions weighted = options(seed, 7);
    weighted.units = {12, 12, 12, 12, 4, 4, 4};
    Bus bus(weighted);
    for (const std::size_t away : {4u, 5u, 6u}) bus.members[away]->power_off();
    QVERIFY2(bus.run_until_decided(60 * second), seed_text(seed).c_str());
    QVERIFY(bus.members[0]->result != nullptr);
    // One of four is away, and with it a third.
    weighted.units = {12, 12, 4, 8};
    Bus without(weighted);
    without.members[0]->power_off();
    without.world.run_for(300 * second);
    QCOMPARE(without.different_results(), std::size_t(0));
    QCOMPARE(without.certifiable(), std::size_t(0));
    without.members[0]->power_on();
    QVERIFY2(without.run_until_decided(120 * second), seed_text(seed).c_str());
  }
}

void TestAgreement::a_silent_leader_is_replaced() {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Bus bus(options(seed, 7));
    bus.leader(0).power_off();
    bus.leader(1).power_off();
    QVERIFY2(bus.run_until_decided(60 * second), seed_text(seed).c_str());
    QCOMPARE(bus.different_results(), std::size_t(1));
  }
}

void TestAgreement::a_wrong_proposal_is_not_certified() {
  Bus bus(options(3, 4));
  const Hash256 wrong = bus.leader(0).block()->hash;
  bus.finds_right = [&](const Bus::Member&, const Block& block, Demand) { return block.hash != wrong; };
  QVERIFY(bus.run_until_decided(60 * second));
  for (const auto& member : bus.members) QVERIFY(member->result->hash != wrong);
}

// A view lasts four seconds. The members wait as long for a leader that is silent, not for one whose proposal
// they refuse; and of three one that refuses is enough, because it takes all.
// Planted: without give_up_soon() in try_prepare() it takes more than four seconds.
void TestAgreement::a_refused_proposal_costs_a_moment() {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    for (const std::size_t n : {2u, 3u, 4u, 7u}) {
      Bus bus(options(seed, n));
      const Hash256 wrong = bus.leader(0).block()->hash;
      const std::size_t second_leader = bus.leader(1).index;
      bus.finds_right = [=](const Bus::Member& member, const Block& block, Demand) {
        return block.hash != wrong || (n <= 3 && member.index != second_leader);
      };
      QVERIFY2(bus.run_until_decided(std::chrono::milliseconds(3500)), seed_text(seed).c_str());
      for (const auto& member : bus.members) QVERIFY(member->result->hash != wrong);
    }
  }
}

// Of four one is dead, so all others are needed; one of them refuses what the first leader proposes. If it
// went through views by itself, it would be further on whenever the others came to one.
void TestAgreement::a_member_that_refuses_alone_waits_for_the_others() {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Bus bus(options(seed, 4));
    const Hash256 wrong = bus.leader(0).block()->hash;
    const std::size_t alone = bus.leader(2).index;
    bus.finds_right = [=](const Bus::Member& member, const Block& block, Demand) {
      return block.hash != wrong || member.index != alone;
    };
    bus.leader(3).power_off();
    // The others' first view, and the next one with all its messages.
    QVERIFY2(bus.run_until_decided(7 * second), seed_text(seed).c_str());
    QCOMPARE(bus.leader(0).certificate.commits.view, 1u);
  }
}

// Of four one is dead, and another one was cut off. It began almost a view's time before the two that were
// together, so all of them are in one view for a moment only. Planted: with start_clock() that starts the time
// at once they never decide.
void TestAgreement::a_member_that_is_almost_a_view_ahead_waits_for_the_others() {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Bus bus(options(seed, 4));
    for (auto& member : bus.members) member->power_off();
    bus.leader(0).part = 1;
    bus.leader(0).power_on();
    bus.world.run_for(28 * second + second / 2);
    bus.leader(1).power_on();
    bus.leader(2).power_on();
    bus.world.run_for(300 * second);
    bus.leader(0).part = 0;
    // Views last 30 s by then. Three of four leaders are there.
    QVERIFY2(bus.run_until_decided(120 * second), seed_text(seed).c_str());
  }
}

// Two of four know of something that all blocks leave out. All leaders propose the same block, so that what
// was judged wrong is judged anew. Planted: demand() that ignores the view never decides; KnownBlocks::ask()
// that keeps "wrong" for all demands never decides either.
void TestAgreement::omissions_bind_until_view_3() {
  for (const std::size_t n : {4u, 20u}) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      Bus bus(options(seed, n));
      const BlockPtr same = bus_block(77, false);
      bus.makes = [&](const Bus::Member&, bool) { return same; };
      bus.finds_right = [n](const Bus::Member& member, const Block&, Demand demand) {
        return demand != Demand::Everything || member.index >= n / 2;
      };
      QVERIFY2(bus.run_until_decided(120 * second), seed_text(seed).c_str());
      for (const auto& member : bus.members) {
        QVERIFY(member->certificate.commits.view >= 3);
        QVERIFY(member->certificate.commits.view <= 5);
        if (member->index >= n / 2) continue;
        const auto lenient =
            std::find_if(member->questions.begin(), member->questions.end(),
                         [](const auto& asked) { return asked.second != Demand::Everything; });
        QVERIFY(lenient != member->questions.end());
        QVERIFY(std::none_of(lenient, member->questions.end(),
                             [](const auto& asked) { return asked.second == Demand::Everything; }));
      }
    }
  }
}

// One of four has heard the voter that the block marks; the others have prepared it. It commits all the same:
// no other block may be possible any more. Planted: demand() without its first line leaves it without a commit.
void TestAgreement::a_locked_block_is_not_held_up_by_what_only_some_know() {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Bus bus(options(seed, 4));
    const std::size_t alone = bus.leader(1).index;
    bus.finds_right = [=](const Bus::Member& member, const Block&, Demand demand) {
      return demand == Demand::Nothing || member.index != alone;
    };
    QVERIFY2(bus.run_until_decided(4 * second), seed_text(seed).c_str());
    QCOMPARE(bus.leader(0).certificate.commits.view, 0u);
    // The same where its commit is needed: one of the three others sends and receives none.
    Bus three(options(seed, 4));
    const std::size_t dying = three.leader(2).index, refusing = three.leader(1).index;
    three.finds_right = [=](const Bus::Member& member, const Block&, Demand demand) {
      return demand == Demand::Nothing || member.index != refusing;
    };
    three.passes = [=](const Bus::Member& from, const Bus::Member& to, const ChainItem& item) {
      const auto* vote = std::get_if<SignedVote>(&item);
      const bool commits = vote != nullptr && vote->vote.step == VoteStep::Commit;
      return !commits || (from.index != dying && to.index != dying);
    };
    QVERIFY2(three.run_until_decided(6 * second), seed_text(seed).c_str());
  }
}

// It keeps what it proposes, and dies before anybody hears of it: after the restart it makes another block, and
// may not propose that in the same view. Planted: put_forward() without its first check prepares two blocks in
// one view.
void TestAgreement::a_leader_that_has_lost_its_proposal_gives_up() {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Bus bus(options(seed, 3));
    Bus::Member& leader = bus.leader(0);
    leader.part = 1;
    QVERIFY(bus.world.run_until(
        [&] {
          return !leader.disk.empty() && decode_agreement_memory(leader.disk, {})->prepared.has_value();
        },
        bus.world.now() + second));
    leader.power_off();
    leader.power_on();
    leader.part = 0;
    QVERIFY2(bus.run_until_decided(std::chrono::milliseconds(3500)), seed_text(seed).c_str());
    for (const auto& member : bus.members) QVERIFY(member->evidence.empty());
  }
}

void TestAgreement::a_leader_dies_at_every_stage() {
  for (const std::size_t stage : {Bus::ProposalKind, Bus::PrepareKind, Bus::CommitKind}) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      Bus bus(options(seed, 4 + seed % 4, 0.1));
      const std::size_t leader = bus.leader(0).index;
      bus.dies_after = [=](const Bus::Member& member, std::size_t kind) {
        return member.index == leader && kind == stage;
      };
      QVERIFY2(bus.run_until_decided(5 * 60 * second), seed_text(seed).c_str());
      bus.dies_after = nullptr;
      bus.members[leader]->power_off();
      bus.members[leader]->power_on();
      QVERIFY2(bus.run_until_decided(5 * 60 * second), seed_text(seed).c_str());
      QVERIFY2(bus.different_results() == 1 && bus.certifiable() == 1, seed_text(seed).c_str());
    }
  }
}

// Planted: power_on() with an empty memory makes evidence against honest members.
void TestAgreement::members_restart_at_any_moment() {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Bus bus(options(seed, 4 + seed % 3, 0.2));
    Rng rng(seed);
    for (int i = 0; i < 12; ++i) {
      bus.world.run_for(std::chrono::milliseconds(rng.below(1500)));
      Bus::Member& member = *bus.members[rng.below(bus.members.size())];
      if (member.agreement) member.power_off();
      if (rng.below(3) > 0 || i > 9) member.power_on();
    }
    for (auto& member : bus.members)
      if (!member->agreement) member->power_on();
    QVERIFY2(bus.run_until_decided(10 * 60 * second), seed_text(seed).c_str());
    QVERIFY2(bus.different_results() == 1 && bus.certifiable() == 1, seed_text(seed).c_str());
    for (const auto& member : bus.members) QVERIFY2(member->evidence.empty(), seed_text(seed).c_str());
  }
}

void TestAgreement::cuts_and_losses_never_make_two() {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    bool decided = false;
    const std::size_t results =
        results_after_a_cut(options(seed, 4 + seed % 5, seed % 2 == 0 ? 0.3 : 0.0), &decided);
    QVERIFY2(results == 1, seed_text(seed).c_str());
    QVERIFY2(decided, seed_text(seed).c_str());
  }
}

// Half of the members are told another story. Planted: on_vote() that reports no evidence.
void TestAgreement::equivocation_below_a_third_never_makes_two_and_is_proven() {
  std::size_t proven = 0;
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    const std::size_t byzantine = 1 + seed % 2;
    BusOptions two_stories = options(seed, 3 * byzantine + 1, 0.1);
    two_stories.byzantine = byzantine;
    Bus bus(two_stories);
    // Votes of one half reach the other half, too, so that the two stories meet.
    bus.passes = [&bus](const Bus::Member& from, const Bus::Member& to, const ChainItem& item) {
      const auto* vote = std::get_if<SignedVote>(&item);
      if (from.is_byzantine() && vote != nullptr && to.index % 2 == 0)
        for (auto& member : bus.members)
          if (!member->is_byzantine() && member->index % 2 == 1) bus.give(*member, from.index, *vote);
      return true;
    };
    QVERIFY2(bus.run_until_decided(10 * 60 * second), seed_text(seed).c_str());
    QVERIFY2(bus.different_results() == 1 && bus.certifiable() <= 1, seed_text(seed).c_str());
    for (const auto& member : bus.members)
      for (const Evidence& evidence : member->evidence) {
        QVERIFY(evidence_holds(evidence, {}));
        const bool guilty = std::any_of(bus.members.begin(), bus.members.end(), [&](const auto& other) {
          return other->is_byzantine() && other->key.public_key() == evidence.node;
        });
        QVERIFY(member->is_byzantine() || guilty);
        ++proven;
      }
  }
  QVERIFY(proven > 40);
}

// Votes go to the leader only. Planted: send_new_view() to all, or vote() to all, sends more.
void TestAgreement::collected_votes_of_20_members() {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Bus bus(options(seed, 20));
    bus.passes = [&bus](const Bus::Member&, const Bus::Member& to, const ChainItem& item) {
      const auto* vote = std::get_if<SignedVote>(&item);
      return vote == nullptr || &to == &bus.leader(vote->vote.view);
    };
    const bool led =
        bus.world.run_until([&bus] { return bus.leader(0).result != nullptr; }, bus.world.now() + 3 * second);
    QVERIFY2(led, seed_text(seed).c_str());
    QCOMPARE(bus.bad_certificates, std::size_t(0));
    for (const auto& member : bus.members) {
      const bool leads = member.get() == &bus.leader(0);
      QCOMPARE(bus.sent[std::pair(member->index, std::size_t(Bus::LockedKind))], leads ? 1 : 0);
      for (const auto& [kind, sent] : member->outbox) {
        const bool is_vote = kind.first == Bus::PrepareKind || kind.first == Bus::CommitKind;
        if (is_vote) QCOMPARE(sent.to, std::optional(bus.leader(0).index));
      }
    }
    // Two leaders are silent: the NewViews reach the third.
    Bus late(options(seed, 20));
    late.leader(0).power_off();
    late.leader(1).power_off();
    QVERIFY2(late.run_until_decided(60 * second), seed_text(seed).c_str());
    QCOMPARE(late.different_results(), std::size_t(1));
  }
}

// In a large committee a proposal comes from any member, so its leader's prepare says whose it is.
void TestAgreement::others_pass_on_only_what_the_leader_signed() {
  Bus bus({1, test::equal_units(17)});
  for (auto& member : bus.members) member->power_on();
  Bus::Member& leader = bus.leader(0);
  const std::size_t relay = bus.committee->leader(1);
  Bus::Member& to = *bus.members[bus.committee->leader(2)];
  const BlockPtr block = leader.block();
  const Vote vote{VoteStep::Prepare, test::bus_height, test::bus_previous, 0, block->hash};
  const auto signed_by = [&](Bus::Member& signer, const Vote& what) {
    const std::uint32_t number = bus.committee->members()[signer.index].number;
    return sign_vote(what, number, signer.key, Hash256{}).signature;
  };
  Proposal proposal{0, block, {}, {}};
  QCOMPARE(to.agreement->on_item(relay, proposal), Verdict::NotLeader);
  proposal.prepare = signed_by(*bus.members[relay], vote);
  QCOMPARE(to.agreement->on_item(relay, proposal), Verdict::BadSignature);
  proposal.prepare = signed_by(leader, vote);
  QCOMPARE(to.agreement->on_item(relay, proposal), Verdict::Taken);
  QCOMPARE(to.agreement->on_item(relay, proposal), Verdict::Known);
  // The leader signs another one in the same view.
  Proposal second{0, leader.block(false, 1), {}, {}};
  Vote other = vote;
  other.block = second.block->hash;
  second.prepare = signed_by(leader, other);
  QCOMPARE(to.agreement->on_item(relay, second), Verdict::Equivocation);
  QCOMPARE(to.evidence.size(), 1u);
}

void TestAgreement::collected_votes_under_faults() {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    bool decided = false;
    QVERIFY2(results_after_a_cut(options(seed, 17 + seed % 4, 0.2), &decided) == 1, seed_text(seed).c_str());
    QVERIFY2(decided, seed_text(seed).c_str());
    BusOptions two_stories = options(seed, 19, 0.1);
    two_stories.byzantine = 4;
    Bus equivocating(two_stories);
    QVERIFY2(equivocating.run_until_decided(10 * 60 * second), seed_text(seed).c_str());
    QVERIFY2(equivocating.certifiable() <= 1, seed_text(seed).c_str());
    Bus restarting(options(seed, 17));
    Rng rng(seed);
    for (int i = 0; i < 12; ++i) {
      restarting.world.run_for(std::chrono::milliseconds(rng.below(1500)));
      Bus::Member& member = *restarting.members[rng.below(17)];
      member.power_off();
      member.power_on();
    }
    QVERIFY2(restarting.run_until_decided(10 * 60 * second), seed_text(seed).c_str());
    QVERIFY2(restarting.certifiable() == 1, seed_text(seed).c_str());
  }
}

// The control: what a common committee is for shows when it is taken away.
void TestAgreement::with_local_views_there_are_two() {
  std::size_t broken = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    BusOptions local = options(seed, 6);
    local.local_views = true;
    if (results_after_a_cut(local) > 1) ++broken;
  }
  QVERIFY2(broken > 0, "local views never made two results: the test does not see them");
}

NS_TEST(TestAgreement)
#include "test_agreement.moc"
