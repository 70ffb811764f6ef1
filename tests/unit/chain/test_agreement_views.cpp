// One member alone, on a virtual clock, and what the others say to it: to which view it goes, what it checks
// and judges, and what it keeps. Byzantine members below a third move it no further than an honest member is,
// and however many they are, no number that they name breaks anything.
#include <QtTest>
#include <limits>

#include "tests/support/test_main.h"
#include "tests/unit/chain/agreement_bus.h"

using namespace neuroshard;
using namespace neuroshard::chain;
using namespace neuroshard::test;

namespace {

constexpr AgreementOptions patience{4 * second, 30 * second};
constexpr std::uint32_t furthest = std::numeric_limits<std::uint32_t>::max();
const Hash256 previous = bus_block(1, false)->header.previous;

class CountingChecks final : public SignatureChecks {
 public:
  bool vote(const SignedVote& vote, const crypto::PublicKey& node, const Hash256& network) override {
    ++checked;
    return vote_holds(vote, node, network);
  }
  int checked = 0;
};

// The member that leads none of the first views, and how the others speak to it.
class Bench final : public AgreementHost {
 public:
  explicit Bench(const std::vector<std::uint32_t>& units, std::size_t byzantine_first = 0) {
    std::vector<CommitteeMember> rows;
    for (std::size_t i = 0; i < units.size(); ++i) {
      keys.push_back(bus_key(1, i));
      const crypto::PublicKey key = keys.back().public_key();
      rows.push_back({static_cast<std::uint32_t>(i), units[i], key, crypto::node_id(key)});
    }
    committee =
        std::make_shared<const Committee>(std::move(rows), VotersMode::Founders, Hash256{}, bus_height);
    self = committee->leader(static_cast<std::uint32_t>(units.size()) - 1);
    for (std::size_t i = 0; i < byzantine_first; ++i)
      byzantine.insert(committee->leader(static_cast<std::uint32_t>(i)));
    begin({});
  }

  // Again, as after a restart: with what was on the disk.
  void begin(AgreementMemory memory) {
    Agreement::Setup setup{{}, bus_height, previous, committee, self, &checks};
    agreement.emplace(std::move(setup), patience, keys[self], executor_, *this, std::move(memory));
    agreement->start();
  }

  // Said by that many members, this one not among them; each says it in both ways that there are.
  void say(std::size_t from, std::size_t count, std::uint32_t view, std::uint32_t apart = 0) {
    for (std::size_t i = 0, said = 0; said < count; ++i) {
      const std::size_t member = (from + i) % committee->size();
      if (member == self) continue;
      const std::uint32_t its = view - static_cast<std::uint32_t>(said++) * apart;
      say_as(member, its);
    }
  }
  Verdict say_as(std::size_t member, std::uint32_t view) {
    agreement->on_view(member, view);
    return agreement->on_item(member, NewView{bus_height, previous, view, {}, nullptr, {}});
  }
  Verdict propose_as_leader(std::uint32_t view, const BlockPtr& block) {
    return agreement->on_item(committee->leader(view), Proposal{view, block, {}, {}});
  }
  SignedVote vote(std::size_t member, VoteStep step, std::uint32_t view, const Hash256& block) const {
    return sign_vote({step, bus_height, previous, view, block}, committee->members()[member].number,
                     keys[member], {});
  }
  // Prepares of the first `count` members other than this one.
  Quorum prepares(std::size_t count, std::uint32_t view, const BlockPtr& block) const {
    Quorum quorum{VoteStep::Prepare, bus_height, previous, view, block->hash, {}};
    for (std::size_t i = 0; i < count; ++i) {
      const SignedVote each = vote(other(i), VoteStep::Prepare, view, block->hash);
      quorum.signatures.push_back({each.voter, each.signature});
    }
    return quorum;
  }
  Verdict show_lock(const Quorum& lock, const BlockPtr& block, std::optional<Quorum> full = {}) {
    return agreement->on_item(other(0),
                              NewView{bus_height, previous, lock.view + 1, lock, block, std::move(full)});
  }
  // Members beside this one, one after the other.
  std::size_t other(std::size_t i) const { return i < self ? i : i + 1; }
  std::uint32_t view() const { return agreement->view(); }

  void send(const AgreementItem& item, std::optional<std::size_t> to) override {
    if (const auto* said = std::get_if<NewView>(&item); said && !to) new_views.push_back(said->view);
    sent.emplace_back(item, to);
  }
  void remember(const AgreementMemory& memory, std::function<void()> then) override {
    disk = encode_agreement_memory(memory);
    then();
  }
  void judge(const BlockPtr& block, Demand demand) override { questions.emplace_back(block->hash, demand); }
  void make_block(bool) override { ++asked_to_lead; }
  bool is_byzantine(std::size_t member) const override { return byzantine.count(member) != 0; }
  void found_evidence(const Evidence& found) override { evidence.push_back(found); }
  void certified(const BlockPtr& block, const Certificate&) override { result = block; }

  sim::World world;
  std::vector<crypto::KeyPair> keys;
  CommitteePtr committee;
  std::size_t self = 0;
  CountingChecks checks;
  std::optional<Agreement> agreement;
  std::vector<std::uint32_t> new_views;  // that it told all
  std::vector<std::pair<AgreementItem, std::optional<std::size_t>>> sent;
  std::vector<std::pair<Hash256, Demand>> questions;
  std::vector<Evidence> evidence;
  BlockPtr result;
  Bytes disk;
  int asked_to_lead = 0;
  std::set<std::size_t> byzantine;  // proven to be

 private:
  sim::HostExecutor executor_{world};
};

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
  void no_number_breaks_a_member_data();
  void no_number_breaks_a_member();
  void nobody_waits_for_a_proven_byzantine_leader_data() { members_data(); }
  void nobody_waits_for_a_proven_byzantine_leader();
  void what_a_byzantine_leader_proposed_is_not_dropped();
  void where_all_others_are_proven_time_goes_on();
  void only_two_proposals_are_judged();
  void early_proposals_lead_nobody_astray();
  void two_votes_of_one_member_are_evidence();
  void cheap_checks_come_first();
  void stall_locks_count_in_a_stall_only();
  void a_lock_travels_to_the_leader_only();
  void the_memory_binds_after_a_restart();
  void memory_is_canonical();
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
  const std::size_t few = most_byzantine(std::size_t(members));
  for (int i = 0; i < 40; ++i) {
    // To this member another view each time, and higher ones again and again.
    bench.say(0, few, furthest - std::uint32_t(i % 7), 3);
    bench.say(0, few, (1u << 30) - 1000 + std::uint32_t(i), 1);
    bench.say(0, few, 200u + std::uint32_t(i));
    QCOMPARE(bench.view(), quiet.view());
    quiet.world.run_for(2 * second);
    bench.world.run_for(2 * second);
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
  const std::uint32_t by_its_clock = bench.view();
  QVERIFY2(by_its_clock > 100 && by_its_clock < 140, qPrintable(QString::number(by_its_clock)));
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
    bench.world.run_for(patience.longest_view);
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
    bench.world.run_for(100 * second);
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
  bench.world.run_for(15 * second);
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
  all.world.run_for(100 * second);
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
// the same, not as many as there are proposals. Planted: run_ahead() that does not set Pace::Ahead.
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
  // When its first view would have been over it has no more patience with the second leader.
  for (int i = 0; i < 20; ++i) {
    refuse_all();
    bench.world.run_for(second / 10);
  }
  QCOMPARE(bench.view(), 2u);
}

// Planted: on_vote() that compares the step alone, or that counts the second vote.
void TestAgreementViews::two_votes_of_one_member_are_evidence() {
  Bench bench(equal_units(4));
  const Hash256 a = bus_block(1, false)->hash, b = bus_block(2, false)->hash, c = bus_block(3, false)->hash;
  const std::size_t one = bench.other(0), two = bench.other(1);
  const auto take = [&bench](const SignedVote& vote) {
    return bench.agreement->on_item(bench.other(2), vote);
  };
  QCOMPARE(take(bench.vote(one, VoteStep::Prepare, 0, a)), Verdict::Taken);
  QCOMPARE(take(bench.vote(one, VoteStep::Prepare, 0, a)), Verdict::Known);
  // Another step and another view exclude nothing.
  QCOMPARE(take(bench.vote(one, VoteStep::Commit, 0, b)), Verdict::Taken);
  QCOMPARE(take(bench.vote(one, VoteStep::Prepare, 1, b)), Verdict::Taken);
  QCOMPARE(take(bench.vote(two, VoteStep::Prepare, 0, b)), Verdict::Taken);
  QVERIFY(bench.evidence.empty());
  // A forged second vote proves nothing.
  SignedVote forged = bench.vote(two, VoteStep::Prepare, 0, b);
  forged.voter = bench.committee->members()[one].number;
  QCOMPARE(take(forged), Verdict::BadSignature);
  QVERIFY(bench.evidence.empty());
  QCOMPARE(take(bench.vote(one, VoteStep::Prepare, 0, b)), Verdict::Equivocation);
  QCOMPARE(bench.evidence.size(), std::size_t(1));
  QCOMPARE(bench.evidence[0].node, bench.keys[one].public_key());
  QVERIFY(evidence_holds(bench.evidence[0], {}));
  // Once is enough; more of them cost no signature check.
  const int checked = bench.checks.checked;
  QCOMPARE(take(bench.vote(one, VoteStep::Prepare, 0, c)), Verdict::Equivocation);
  QCOMPARE(bench.evidence.size(), std::size_t(1));
  QCOMPARE(bench.checks.checked, checked);
}

void TestAgreementViews::cheap_checks_come_first() {
  Bench bench(equal_units(4));
  const BlockPtr block = bus_block(1, false);
  const std::size_t one = bench.other(0), stranger = 4;
  const auto take = [&](std::size_t from, const AgreementItem& item) {
    return bench.agreement->on_item(from, item);
  };
  SignedVote vote = bench.vote(one, VoteStep::Prepare, 0, block->hash);
  const auto with = [&vote](auto change) {
    SignedVote other = vote;
    change(other);
    return other;
  };
  QCOMPARE(take(stranger, vote), Verdict::NotMember);
  QCOMPARE(take(one, with([](SignedVote& v) { v.voter = 99; })), Verdict::NotMember);
  QCOMPARE(take(one, with([](SignedVote& v) { v.vote.height--; })), Verdict::Past);
  QCOMPARE(take(one, with([](SignedVote& v) { v.vote.height++; })), Verdict::Later);
  QCOMPARE(take(one, with([](SignedVote& v) { v.vote.previous[0]++; })), Verdict::OtherHistory);
  QCOMPARE(take(one, with([](SignedVote& v) { v.vote.step = VoteStep::Genesis; })), Verdict::Malformed);
  QCOMPARE(take(one, with([](SignedVote& v) { v.vote.view = votes_ahead + 1; })), Verdict::Later);
  QCOMPARE(take(one, with([](SignedVote& v) { v.vote.view = furthest; })), Verdict::OtherView);
  // Locks: too few units, a signer twice, another block, another step, a later view than the NewView's.
  Quorum lock = bench.prepares(3, 0, block);
  const auto show = [&](auto change) {
    Quorum other = lock;
    change(other);
    return bench.show_lock(other, block);
  };
  QCOMPARE(show([](Quorum& q) { q.signatures.pop_back(); }), Verdict::BadCertificate);
  QCOMPARE(show([](Quorum& q) { q.signatures[2] = q.signatures[1]; }), Verdict::BadCertificate);
  QCOMPARE(show([](Quorum& q) { q.signatures[2].voter = 77; }), Verdict::BadCertificate);
  QCOMPARE(show([](Quorum& q) { q.block[0]++; }), Verdict::BadCertificate);
  QCOMPARE(show([](Quorum& q) { q.step = VoteStep::Commit; }), Verdict::BadCertificate);
  QCOMPARE(take(one, NewView{bus_height, previous, 1, lock, nullptr, {}}), Verdict::Malformed);
  QCOMPARE(take(one, NewView{bus_height, previous, 1, {}, block, {}}), Verdict::Malformed);
  QCOMPARE(take(one, Proposal{0, nullptr, {}, {}}), Verdict::Malformed);
  QCOMPARE(take(bench.committee->leader(1), Proposal{0, block, {}, {}}), Verdict::NotLeader);
  QCOMPARE(take(one, Locked{lock, {}}), Verdict::Later);  // its block is not known yet
  QCOMPARE(bench.checks.checked, 0);
  // A signature that does not hold.
  QCOMPARE(show([](Quorum& q) { q.signatures[2].signature[5]++; }), Verdict::BadCertificate);
  QVERIFY(!bench.agreement->memory().lock);
  // The lock itself, and then it costs nothing any more.
  QCOMPARE(bench.show_lock(lock, block), Verdict::Taken);
  QVERIFY(bench.agreement->memory().lock && bench.agreement->memory().lock->block == block->hash);
  const int checked = bench.checks.checked;
  QCOMPARE(bench.show_lock(lock, block), Verdict::Taken);
  QCOMPARE(bench.checks.checked, checked);
}

// Planted: check() without `suffices` takes the lock at once; without the earlier lock it takes any block's.
void TestAgreementViews::stall_locks_count_in_a_stall_only() {
  const BlockPtr presence = bus_block(1, true), content = bus_block(2, false), other = bus_block(3, false);
  Bench bench(equal_units(6));
  const Quorum stall_lock = bench.prepares(4, 3, presence);
  QCOMPARE(bench.show_lock(stall_lock, presence), Verdict::Later);
  QVERIFY(!bench.agreement->memory().lock);
  QCOMPARE(bench.checks.checked, 0);
  bench.agreement->stall();
  QCOMPARE(bench.show_lock(stall_lock, presence), Verdict::Taken);
  QCOMPARE(bench.agreement->memory().lock->block, presence->hash);
  QCOMPARE(bench.view(), 3u);
  // Of a block that changes more, with an earlier lock of more than two thirds of that block, and no other.
  const Quorum with_content = bench.prepares(4, 5, content);
  QCOMPARE(bench.show_lock(with_content, content), Verdict::BadCertificate);
  QCOMPARE(bench.show_lock(with_content, content, bench.prepares(4, 1, content)), Verdict::BadCertificate);
  QCOMPARE(bench.show_lock(with_content, content, bench.prepares(5, 1, other)), Verdict::BadCertificate);
  QCOMPARE(bench.show_lock(with_content, content, bench.prepares(5, 5, content)), Verdict::BadCertificate);
  Quorum forged = bench.prepares(5, 1, content);
  forged.signatures[4].signature[0]++;
  QCOMPARE(bench.show_lock(with_content, content, forged), Verdict::BadCertificate);
  QCOMPARE(bench.agreement->memory().lock->block, presence->hash);
  const Quorum full = bench.prepares(5, 1, content);
  QCOMPARE(bench.show_lock(with_content, content, full), Verdict::Taken);
  QCOMPARE(bench.agreement->memory().lock->block, content->hash);
  QVERIFY(bench.agreement->memory().full_lock && *bench.agreement->memory().full_lock == full);
  // Kept, and told to leaders with it.
  const auto memory = decode_agreement_memory(bench.disk, {});
  QVERIFY(memory.ok() && memory->full_lock && *memory->full_lock == full);
  bench.sent.clear();
  bench.say(0, 3, 6);
  const auto told = std::find_if(bench.sent.begin(), bench.sent.end(), [](const auto& sent) {
    const auto* new_view = std::get_if<NewView>(&sent.first);
    return new_view != nullptr && new_view->lock;
  });
  if (!bench.agreement->leads()) {
    QVERIFY(told != bench.sent.end());
    QVERIFY(std::get<NewView>(told->first).full == full);
  }
}

// Planted: send_new_view() to all.
void TestAgreementViews::a_lock_travels_to_the_leader_only() {
  Bench bench(equal_units(7));
  const BlockPtr block = bus_block(1, false);
  QCOMPARE(bench.show_lock(bench.prepares(5, 0, block), block), Verdict::Taken);
  bench.sent.clear();
  bench.say(0, 3, 2);
  QCOMPARE(bench.view(), 2u);
  int bare = 0, full = 0;
  for (const auto& [item, to] : bench.sent) {
    const auto* said = std::get_if<NewView>(&item);
    if (said == nullptr) continue;
    QCOMPARE(said->lock.has_value(), to.has_value());
    QCOMPARE(said->block != nullptr, to.has_value());
    if (to) QCOMPARE(*to, bench.committee->leader(2));
    ++(to ? full : bare);
  }
  QCOMPARE(bare, 1);
  QCOMPARE(full, 1);
}

// It prepared a block of view 0 and has a lock of view 1. Planted: an Agreement that ignores its memory.
void TestAgreementViews::the_memory_binds_after_a_restart() {
  const BlockPtr first = bus_block(1, false), second_block = bus_block(2, false);
  Bench bench(equal_units(4));
  const auto prepared = [&bench] {
    std::vector<Hash256> blocks;
    for (const auto& [item, to] : std::exchange(bench.sent, {}))
      if (const auto* vote = std::get_if<SignedVote>(&item); vote && vote->vote.step == VoteStep::Prepare)
        blocks.push_back(vote->vote.block);
    return blocks;
  };
  const auto find_all_right = [&bench] {
    for (const auto& [block, demand] : std::exchange(bench.questions, {}))
      bench.agreement->judged(block, demand, true);
  };
  bench.propose_as_leader(0, first);
  find_all_right();
  QCOMPARE(prepared(), std::vector<Hash256>{first->hash});
  bench.begin(*decode_agreement_memory(bench.disk, {}));
  bench.propose_as_leader(0, second_block);
  find_all_right();
  QCOMPARE(prepared(), std::vector<Hash256>{});
  // The lock: nothing else is prepared in later views, until there is a later lock.
  QCOMPARE(bench.show_lock(bench.prepares(3, 1, first), first), Verdict::Taken);
  bench.begin(*decode_agreement_memory(bench.disk, {}));
  bench.say(0, 3, 2);
  bench.propose_as_leader(2, second_block);
  find_all_right();
  QCOMPARE(prepared(), std::vector<Hash256>{});
  QCOMPARE(bench.show_lock(bench.prepares(3, 2, second_block), second_block), Verdict::Taken);
  find_all_right();
  // A memory of another height or history says nothing about this one.
  AgreementMemory other = bench.agreement->memory();
  other.height++;
  bench.begin(other);
  QVERIFY(!bench.agreement->memory().lock);
  QCOMPARE(bench.view(), 0u);
  QCOMPARE(bench.agreement->memory().height, bus_height);
}

void TestAgreementViews::memory_is_canonical() {
  Bench bench(equal_units(6));
  const BlockPtr block = bus_block(2, false);
  AgreementMemory memory;
  memory.height = bus_height;
  memory.previous = previous;
  memory.view = 9;
  const auto check = [](const AgreementMemory& whole) {
    const Bytes bytes = encode_agreement_memory(whole);
    const auto read = decode_agreement_memory(bytes, {});
    QVERIFY(read.ok());
    QVERIFY(encode_agreement_memory(*read) == bytes);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const auto cut = decode_agreement_memory(ByteSpan(bytes).first(i), {});
      QVERIFY(!cut.ok() && cut.error().code == ErrorCode::Corrupt);
    }
    Bytes longer = bytes;
    longer.push_back(0);
    QVERIFY(!decode_agreement_memory(longer, {}).ok());
    // With one byte changed it is another canonical memory, Corrupt, or of a later version.
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      Bytes other = bytes;
      other[i] ^= 0x41;
      const auto changed = decode_agreement_memory(other, {});
      if (changed.ok()) QVERIFY(encode_agreement_memory(*changed) == other);
      if (!changed.ok()) QVERIFY(changed.error().code == ErrorCode::Corrupt || i == 4 || i == 5);
    }
  };
  check(memory);
  memory.prepared = block->hash;
  check(memory);
  memory.lock = std::make_shared<const Quorum>(bench.prepares(4, 7, block));
  memory.block = block;
  check(memory);
  memory.full_lock = std::make_shared<const Quorum>(bench.prepares(5, 3, block));
  check(memory);
  // Parts that do not belong together.
  const auto refused = [](AgreementMemory wrong) {
    return !decode_agreement_memory(encode_agreement_memory(wrong), {}).ok();
  };
  AgreementMemory wrong = memory;
  wrong.view = 6;
  QVERIFY(refused(wrong));
  wrong = memory;
  wrong.full_lock = std::make_shared<const Quorum>(bench.prepares(5, 7, block));
  QVERIFY(refused(wrong));
  wrong = memory;
  wrong.full_lock = std::make_shared<const Quorum>(bench.prepares(5, 3, bus_block(3, false)));
  QVERIFY(refused(wrong));
  wrong = memory;
  wrong.block = bus_block(4, false);
  QVERIFY(refused(wrong));
  wrong = memory;
  wrong.height++;
  QVERIFY(refused(wrong));
}

NS_TEST(TestAgreementViews)
#include "test_agreement_views.moc"
