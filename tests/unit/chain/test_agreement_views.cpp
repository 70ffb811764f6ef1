// One member alone, on a virtual clock, and what the others say to it: to which view it goes and which
// blocks it judges. Byzantine members below a third move it no further than an honest member is,
// and however many they are, no number that they name breaks anything.
#include <QtTest>
#include <limits>

#include "tests/support/test_main.h"
#include "tests/unit/chain/agreement_bench.h"

using namespace neuroshard;
using namespace neuroshard::chain;
using namespace neuroshard::test;

namespace {

constexpr std::uint32_t furthest = std::numeric_limits<std::uint32_t>::max();
constexpr Hash256 previous = bus_previous;

std::size_t most_byzantine(std::size_t members) {
  return (members - 1) / 3;
}

}  // namespace

class TestAgreementViews : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void members_data();
  void claims_below_a_third_move_nobody_data() { members_data(); }
  void claims_below_a_third_move_nobody();
  void claims_take_nobody_further_than_an_honest_member_data() { members_data(); }
  void claims_take_nobody_further_than_an_honest_member();
  void more_than_a_third_take_a_late_member_along_data() { members_data(); }
  void more_than_a_third_take_a_late_member_along();
  void claims_count_by_units();
  void a_member_waits_in_a_view_for_a_quorum();
  void in_a_stall_the_stall_quorum_starts_a_view();
  void no_number_breaks_a_member_data();
  void no_number_breaks_a_member();
  void nobody_waits_for_a_proven_byzantine_leader_data() { members_data(); }
  void nobody_waits_for_a_proven_byzantine_leader();
  void what_a_byzantine_leader_proposed_is_not_dropped();
  void where_all_others_are_proven_time_goes_on();
  void only_two_proposals_are_judged();
  void early_proposals_lead_nobody_astray();
};

void TestAgreementViews::members_data() {
  QTest::addColumn<int>("members");
  for (const int n : {4, 8, 16, 24, 64}) QTest::addRow("%d", n) << n;
}

// Neither what the member does nor how long it waits is another than without them.
// Planted: ViewClaims::reached() that takes the greatest claim.
void TestAgreementViews::claims_below_a_third_move_nobody() {
  QFETCH(int, members);
  Bench quiet(equal_units(std::size_t(members))), bench(equal_units(std::size_t(members)));
  const std::size_t few = most_byzantine(std::size_t(members)), honest = std::size_t(members) - 1 - few;
  for (int i = 0; i < 40; ++i) {
    // To this member another view each time, and higher ones again and again.
    bench.say(0, few, furthest - std::uint32_t(i % 7), 3);
    bench.say(0, few, (1u << 30) - 1000 + std::uint32_t(i), 1);
    bench.say(0, few, 200u + std::uint32_t(i));
    QCOMPARE(bench.view(), quiet.view());
    quiet.run_with_others(honest, 2 * second);
    bench.run_with_others(honest, 2 * second);
    QCOMPARE(bench.view(), quiet.view());
  }
  QVERIFY(quiet.view() >= 5);
  QCOMPARE(bench.new_views, quiet.new_views);
  QCOMPARE(bench.asked_to_lead, quiet.asked_to_lead);
}

void TestAgreementViews::claims_take_nobody_further_than_an_honest_member() {
  QFETCH(int, members);
  Bench bench(equal_units(std::size_t(members)));
  const std::size_t few = most_byzantine(std::size_t(members));
  for (std::size_t i = 0; i < few; ++i) bench.say_as(bench.other(i), furthest - 9 * std::uint32_t(i));
  for (std::size_t i = 0; i < few; ++i) bench.say_as(bench.other(i), 1'000'000 + std::uint32_t(i));
  // The others time out one after the other.
  for (std::size_t i = few; i + 1 < std::size_t(members); ++i) {
    bench.say_as(bench.other(i), 3);
    QCOMPARE(bench.view(), 3u);
  }
  bench.world.run_for(3600 * second);
  if (bench.committee->is_collected()) {
    const std::uint32_t by_its_clock = bench.view();
    QVERIFY2(by_its_clock > 100 && by_its_clock < 140, qPrintable(QString::number(by_its_clock)));
  } else {
    QCOMPARE(bench.view(), 4u);  // it waits for the honest ones there
  }
}

// Planted: start_clock() that starts the time at once goes on alone.
void TestAgreementViews::a_member_waits_in_a_view_for_a_quorum() {
  for (const std::size_t members : {2u, 3u, 4u, 7u, 16u}) {
    Bench bench(equal_units(members));
    bench.world.run_for(3600 * second);
    QCOMPARE(bench.view(), 1u);
    // One too few; then the one that was missing. The view's whole time begins with it.
    const std::size_t needed = members * 2 / 3;  // beside itself
    for (std::size_t i = 0; i + 1 < needed; ++i) bench.say_as(bench.other(i), 1);
    bench.world.run_for(3600 * second);
    QCOMPARE(bench.view(), 1u);
    bench.say_as(bench.other(needed - 1), 1);
    bench.world.run_for(5 * second);
    QCOMPARE(bench.view(), 1u);
    bench.world.run_for(2 * second);
    QCOMPARE(bench.view(), 2u);
  }
}

// In a stall fewer are a quorum, also for the time.
void TestAgreementViews::in_a_stall_the_stall_quorum_starts_a_view() {
  Bench bench(equal_units(6));
  for (std::size_t i = 0; i < 3; ++i) bench.say_as(bench.other(i), 1);
  bench.world.run_for(3600 * second);
  QCOMPARE(bench.view(), 1u);
  bench.agreement->stall();
  bench.world.run_for(7 * second);
  QCOMPARE(bench.view(), 2u);
}

void TestAgreementViews::more_than_a_third_take_a_late_member_along() {
  QFETCH(int, members);
  // However far: hours of views, and most views that a month has.
  for (const std::uint32_t far : {1u, 64u, 65u, 3000u, 100'000u}) {
    Bench bench(equal_units(std::size_t(members)));
    const std::size_t needed = most_byzantine(std::size_t(members)) + 1;
    for (std::size_t i = 0; i + 1 < needed; ++i) bench.say_as(bench.other(i), far + 5);
    QCOMPARE(bench.view(), 0u);
    bench.say_as(bench.other(needed - 1), far);
    // There, and no further than the least of them.
    QCOMPARE(bench.view(), far);
    QCOMPARE(bench.agreement->leads(), bench.committee->leader(far) == bench.self);
    // The view lasts as long as the longest, not for ever and not for nothing.
    bench.world.run_for(3 * second);
    QCOMPARE(bench.view(), far);
    bench.run_with_others(std::size_t(members) - 1, bench_patience.longest_view);
    QVERIFY(bench.view() > far && bench.view() <= far + 8);
  }
}

// Planted: reached() that counts members moves to 5 with one small member more.
void TestAgreementViews::claims_count_by_units() {
  Bench bench({12, 12, 12, 3, 3, 3, 3});
  std::vector<std::size_t> small;
  for (std::size_t i = 3; i < 7; ++i)
    if (i != bench.self) small.push_back(i);
  for (const std::size_t member : small) bench.say_as(member, 5);
  QCOMPARE(bench.view(), 0u);
  std::size_t large = 0;
  while (large == bench.self) ++large;
  bench.say_as(large, 4);
  QCOMPARE(bench.view(), 4u);
}

// A third and more, and also one of two members, from the first number to the last: such a height may stand
// still, but the member stays what it is, comes back from its disk, and time goes on.
void TestAgreementViews::no_number_breaks_a_member_data() {
  QTest::addColumn<int>("members");
  for (const int n : {2, 3, 8, 17}) QTest::addRow("%d", n) << n;
}

void TestAgreementViews::no_number_breaks_a_member() {
  QFETCH(int, members);
  const std::size_t all = std::size_t(members) - 1;
  const BlockPtr block = bus_block(5, false);
  for (const std::uint32_t view :
       {furthest, furthest - 1, furthest - 64, 1u << 31, (1u << 30) + 1, 1u << 30, (1u << 30) - 1}) {
    Bench bench(equal_units(std::size_t(members)));
    bench.say(0, all, view);
    bench.say(0, all, furthest);
    for (std::size_t i = 0; i < all; ++i) {
      const std::size_t from = bench.other(i);
      bench.agreement->on_item(from, Proposal{view, block, {}, {}});
      bench.agreement->on_item(from, SignedVote{{VoteStep::Prepare, bus_height, previous, view, {}}, 0, {}});
      bench.agreement->on_item(from,
                               SignedVote{{VoteStep::Commit, bus_height, previous, furthest, {}}, 1, {}});
      bench.agreement->on_item(from, Locked{bench.prepares(all, view, block), {}});
      bench.agreement->on_item(from, NewView{bus_height, previous, view, Quorum{}, block, {}});
    }
    const std::uint32_t reached = bench.view();
    QVERIFY(reached == 0 || reached == view);
    bench.world.run_for(100 * second);
    QVERIFY(bench.view() > reached);
    if (!bench.disk.empty()) {
      const auto memory = decode_agreement_memory(bench.disk, {});
      QVERIFY(memory.ok());
      bench.begin(*memory);
    }
    bench.say(0, all, furthest);
    const std::uint32_t before = bench.view();
    bench.run_with_others(all, 100 * second);
    QVERIFY(bench.view() > before);
    // Views beyond all claims are entered while they are near.
    bench.say(0, all, bench.view() + 10);
    QVERIFY(bench.view() > before + 10);
  }
}

void TestAgreementViews::nobody_waits_for_a_proven_byzantine_leader() {
  QFETCH(int, members);
  // The first to lead, as many as there may be: at once with the first honest one.
  const std::size_t few = most_byzantine(std::size_t(members));
  Bench known(equal_units(std::size_t(members)), few);
  QCOMPARE(known.view(), std::uint32_t(few));
  // Evidence comes in the middle of a view. Evidence against a member that does not lead changes nothing.
  Bench bench(equal_units(std::size_t(members)));
  bench.world.run_for(second);
  bench.byzantine.insert(bench.committee->leader(1));
  bench.agreement->byzantine_member_found();
  QCOMPARE(bench.view(), 0u);
  bench.byzantine.insert(bench.committee->leader(0));
  bench.agreement->byzantine_member_found();
  QCOMPARE(bench.view(), 2u);
  // By the clock, too, and by what others say.
  if (members < 8) return;
  bench.byzantine.insert(bench.committee->leader(3));
  bench.run_with_others(std::size_t(members) - 1, 11 * second);
  QCOMPARE(bench.view(), 4u);
  bench.byzantine.insert(bench.committee->leader(5));
  bench.say(0, few + 1, 5);
  QCOMPARE(bench.view(), 6u);
}

// The block that a leader proposed before there was evidence may be on its way to be certified.
void TestAgreementViews::what_a_byzantine_leader_proposed_is_not_dropped() {
  Bench bench(equal_units(8));
  QCOMPARE(bench.propose_as_leader(0, bus_block(5, false)), Verdict::Taken);
  bench.byzantine.insert(bench.committee->leader(0));
  bench.agreement->byzantine_member_found();
  QCOMPARE(bench.view(), 0u);
}

void TestAgreementViews::where_all_others_are_proven_time_goes_on() {
  // Its own turn comes first, then again and again.
  Bench bench(equal_units(8), 7);
  QCOMPARE(bench.view(), 7u);
  bench.world.run_for(3600 * second);
  QCOMPARE(bench.committee->leader(bench.view()), bench.self);
  // Itself among them, which can't be: views pass as they do with the clock.
  Bench all(equal_units(8), 8);
  QCOMPARE(all.view(), 0u);
  all.run_with_others(7, 100 * second);
  QVERIFY(all.view() > 3 && all.view() < 10);
}

// A block costs the whole arithmetic of a round. Planted: on_proposal() that takes all views at once asks for
// five; without proposals_ahead it keeps blocks of all views.
void TestAgreementViews::only_two_proposals_are_judged() {
  Bench bench(equal_units(8));
  std::vector<BlockPtr> blocks;
  for (std::uint32_t view = 0; view < 7; ++view) blocks.push_back(bus_block(100 + view, false));
  for (std::uint32_t view = 0; view < 7; ++view) {
    const Verdict verdict = bench.propose_as_leader(view, blocks[view]);
    QCOMPARE(verdict, view <= proposals_ahead ? Verdict::Taken : Verdict::Later);
  }
  QCOMPARE(bench.questions.size(), std::size_t(2));
  QCOMPARE(bench.questions[0].first, blocks[0]->hash);
  QCOMPARE(bench.questions[1].first, blocks[1]->hash);
  QCOMPARE(bench.propose_as_leader(3, blocks[3]), Verdict::Known);
  QCOMPARE(bench.propose_as_leader(3, blocks[4]), Verdict::NotLeader);
  // One view further: one block more. Then the ones between are of no interest any more.
  bench.say(0, 3, 1);
  QCOMPARE(bench.view(), 1u);
  QCOMPARE(bench.questions.size(), std::size_t(3));
  QCOMPARE(bench.questions[2].first, blocks[2]->hash);
  bench.say(0, 3, 4);
  QCOMPARE(bench.view(), 4u);
  QCOMPARE(bench.questions.size(), std::size_t(4));
  QVERIFY(bench.questions[3] == std::pair(blocks[4]->hash, Demand::Presence));
  QCOMPARE(bench.agreement->proposed(), blocks[4]);
}

// The leaders of the next views have proposed already what this member will refuse. It is one view ahead all
// the same, not as many as there are proposals. Planted: start_clock() that starts the time at once.
void TestAgreementViews::early_proposals_lead_nobody_astray() {
  Bench bench(equal_units(7));
  const auto refuse_all = [&bench] {
    for (const auto& [block, demand] : std::exchange(bench.questions, {}))
      bench.agreement->judged(block, demand, false);
  };
  for (std::uint32_t view = 0; view < 5; ++view) bench.propose_as_leader(view, bus_block(100 + view, false));
  for (int i = 0; i < 30; ++i) {
    refuse_all();
    bench.world.run_for(second / 10);
  }
  QCOMPARE(bench.view(), 1u);
  // The others have come: it has no more patience with the second leader, and waits for them again.
  for (std::size_t i = 0; i < 4; ++i) bench.say_as(bench.other(i), 1);
  for (int i = 0; i < 20; ++i) {
    refuse_all();
    bench.world.run_for(second / 10);
  }
  QCOMPARE(bench.view(), 2u);
}

NS_TEST(TestAgreementViews)
#include "test_agreement_views.moc"
