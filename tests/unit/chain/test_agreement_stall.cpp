// The stall rule: what a stall quorum may certify, what it must complete first, and that no schedule makes two
// blocks of one height.
#include <QtTest>

#include "tests/support/test_main.h"
#include "tests/unit/chain/agreement_bus.h"

using namespace neuroshard;
using namespace neuroshard::chain;
using namespace neuroshard::test;

namespace {

BusOptions options(std::uint64_t seed, std::size_t members) {
  BusOptions options;
  options.seed = seed;
  options.units = equal_units(members);
  return options;
}

bool is_commit(const ChainItem& item) {
  const auto* vote = std::get_if<SignedVote>(&item);
  return vote != nullptr && vote->vote.step == VoteStep::Commit;
}
bool is_vote(const ChainItem& item) {
  return std::holds_alternative<SignedVote>(item);
}

// A voter that does whatever it can: it votes for all blocks that it has seen and for blocks of its own, in all
// views near the present one, tells each member something else, and shows old locks.
class Adversary {
 public:
  Adversary(Bus& bus, std::size_t index, std::uint64_t seed)
      : bus_(bus), self_(*bus.members[index]), rng_(seed) {
    self_.power_off();
    for (std::uint64_t i = 0; i < 4; ++i) blocks_.push_back(bus_block(900 + i, i % 2 == 1));
    bus_.passes = [this](const Bus::Member&, const Bus::Member&, const ChainItem& item) {
      hear(item);
      return true;
    };
    act();
  }

 private:
  void hear(const ChainItem& item) {
    if (const auto* proposal = std::get_if<Proposal>(&item)) {
      if (std::none_of(blocks_.begin(), blocks_.end(),
                       [&](const BlockPtr& block) { return block->hash == proposal->block->hash; }))
        blocks_.push_back(proposal->block);
      if (proposal->justification) remember({*proposal->justification, proposal->full, proposal->block});
      view_ = std::max(view_, proposal->view);
    }
    if (const auto* new_view = std::get_if<NewView>(&item)) {
      if (new_view->lock) remember({*new_view->lock, new_view->full, new_view->block});
      view_ = std::max(view_, new_view->view);
    }
    if (const auto* vote = std::get_if<SignedVote>(&item)) {
      prepares_[{vote->vote.view, vote->vote.block}][vote->voter] = *vote;
      if (vote->vote.step != VoteStep::Prepare) prepares_.erase({vote->vote.view, vote->vote.block});
    }
  }
  struct Shown {
    Quorum lock;
    std::optional<Quorum> full;
    BlockPtr block;
  };
  void remember(const Shown& shown) {
    if (locks_.size() < 32) locks_.push_back(shown);
  }
  std::uint32_t some_view() {
    return view_ + static_cast<std::uint32_t>(rng_.below(3)) - std::min<std::uint32_t>(view_, 1);
  }
  const BlockPtr& some_block() { return blocks_[rng_.below(blocks_.size())]; }
  // A lock of its own making: what the others prepared, and its own vote.
  std::optional<Shown> made_lock() {
    for (const auto& [place, votes] : prepares_) {
      const auto block = std::find_if(blocks_.begin(), blocks_.end(),
                                      [&](const BlockPtr& known) { return known->hash == place.second; });
      if (block == blocks_.end() || rng_.below(3) != 0) continue;
      auto all = votes;
      const SignedVote own = vote(VoteStep::Prepare, place.first, place.second);
      all[own.voter] = own;
      Quorum lock{VoteStep::Prepare, bus_height, (*block)->header.previous, place.first, place.second, {}};
      for (const auto& [voter, each] : all) lock.signatures.push_back({voter, each.signature});
      return Shown{lock, std::nullopt, *block};
    }
    return std::nullopt;
  }
  SignedVote vote(VoteStep step, std::uint32_t view, const Hash256& block) {
    return sign_vote({step, bus_height, blocks_[0]->header.previous, view, block},
                     static_cast<std::uint32_t>(10 * self_.index + 3), self_.key, {});
  }
  AgreementItem something() {
    const std::uint32_t view = some_view();
    const std::uint64_t what = rng_.below(8);
    if (what < 5) return vote(what % 2 == 0 ? VoteStep::Prepare : VoteStep::Commit, view, some_block()->hash);
    std::optional<Shown> shown = made_lock();
    if (!shown && !locks_.empty()) shown = locks_[rng_.below(locks_.size())];
    if (what == 5 && shown) return Proposal{view, shown->block, shown->lock, shown->full};
    if (what == 6) return Proposal{view, some_block(), std::nullopt, std::nullopt};
    NewView item{bus_height, blocks_[0]->header.previous, view, std::nullopt, nullptr, std::nullopt};
    if (shown) {
      item.lock = shown->lock;
      item.block = shown->block;
      item.full = shown->full;
    }
    return item;
  }
  void act() {
    for (auto& to : bus_.members)
      if (to.get() != &self_ && to->part == self_.part && rng_.below(2) == 0)
        bus_.give(*to, self_.index, something());
    bus_.world.after(std::chrono::milliseconds(20 + rng_.below(400)), [this] { act(); });
  }

  Bus& bus_;
  Bus::Member& self_;
  Rng rng_;
  std::uint32_t view_ = 0;
  std::vector<BlockPtr> blocks_;
  std::vector<Shown> locks_;
  std::map<std::pair<std::uint32_t, Hash256>, std::map<std::uint32_t, SignedVote>> prepares_;
};

// Cuts, restarts, losses and stalls that some members notice earlier than others, for some minutes; then all is
// well. Whether all honest members decided.
bool survive(Bus& bus, std::uint64_t seed, std::size_t byzantine, bool stalls) {
  Rng rng(seed);
  for (int i = 0; i < 40; ++i) {
    bus.world.run_for(std::chrono::milliseconds(100 + rng.below(6000)));
    Bus::Member& one = *bus.members[byzantine + rng.below(bus.members.size() - byzantine)];
    switch (rng.below(6)) {
      case 0:
        for (auto& member : bus.members) member->part = static_cast<int>(rng.below(2));
        break;
      case 1:
        for (auto& member : bus.members) member->part = 0;
        break;
      case 2:
        if (one.agreement) one.power_off();
        break;
      case 3:
        if (one.agreement) one.power_off();
        one.power_on();
        break;
      case 4:
        if (stalls && one.agreement) one.agreement->stall();
        break;
      default: break;
    }
  }
  for (std::size_t i = 0; i < bus.members.size(); ++i) {
    bus.members[i]->part = 0;
    if (i >= byzantine && !bus.members[i]->agreement) bus.members[i]->power_on();
  }
  if (stalls) bus.stall();
  return bus.run_until_decided(30 * 60 * second);
}

}  // namespace

class TestAgreementStall : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void part_of_the_voters_goes_on_data();
  void part_of_the_voters_goes_on();
  void nothing_but_presence_passes();
  void a_full_lock_is_completed_first();
  void a_lock_of_a_later_view_goes_before_a_full_one();
  void without_changes_of_presence_all_others_wait_for_a_quorum();
  void no_schedule_makes_two_certificates_data();
  void no_schedule_makes_two_certificates();
};

void TestAgreementStall::part_of_the_voters_goes_on_data() {
  QTest::addColumn<int>("members");
  QTest::addColumn<int>("alive");
  QTest::addColumn<int>("mode");
  QTest::addColumn<bool>("goes_on");
  const int invited = int(VotersMode::Invited), founders = int(VotersMode::Founders);
  QTest::newRow("2 of 3") << 3 << 2 << founders << true;
  QTest::newRow("4 of 6") << 6 << 4 << founders << true;
  QTest::newRow("12 of 18, collected") << 18 << 12 << founders << true;
  QTest::newRow("1 of 2") << 2 << 1 << founders << false;
  QTest::newRow("2 of 4") << 4 << 2 << founders << false;
  QTest::newRow("3 of 5") << 5 << 3 << founders << false;
  QTest::newRow("3 of 5, invited") << 5 << 3 << invited << true;
  QTest::newRow("2 of 4, invited") << 4 << 2 << invited << false;
}

void TestAgreementStall::part_of_the_voters_goes_on() {
  QFETCH(int, members);
  QFETCH(int, alive);
  QFETCH(int, mode);
  QFETCH(bool, goes_on);
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    BusOptions with = options(seed, std::size_t(members));
    with.mode = static_cast<VotersMode>(mode);
    Bus bus(with);
    for (int i = alive; i < members; ++i) bus.members[std::size_t(i)]->power_off();
    bus.world.run_for(120 * second);
    QVERIFY2(bus.different_results() == 0, seed_text(seed).c_str());
    bus.stall();
    bus.run_until_decided(600 * second);
    QVERIFY2(bus.all_decided() == goes_on && bus.different_results() == (goes_on ? 1u : 0u),
             seed_text(seed).c_str());
    QCOMPARE(bus.bad_certificates, std::size_t(0));
    if (!goes_on) continue;
    QVERIFY(bus.members[0]->result->body.is_presence_only());
    QVERIFY(!bus.members[0]->certificate.lock);
    QVERIFY(bus.certifiable() == 1);
  }
}

// The stall quorum is there, and leaders propose blocks of rounds. Planted: rules_.lock_of() without its check of the block certifies it.
void TestAgreementStall::nothing_but_presence_passes() {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Bus bus(options(seed, 6));
    for (const std::size_t gone : {4u, 5u}) bus.members[gone]->power_off();
    bus.stall();
    bus.makes = [](const Bus::Member& member, bool) { return member.block(false); };
    bus.run_until_decided(300 * second);
    QVERIFY2(bus.different_results() == 0 && bus.certifiable() == 0, seed_text(seed).c_str());
    for (std::size_t i = 0; i < 4; ++i) {
      const auto& asked = bus.members[i]->asked_for;
      // Only in view 0 can a leader believe that all are there.
      QVERIFY(std::count(asked.begin(), asked.end(), false) <= 1);
      QVERIFY(!bus.members[i]->agreement->memory().lock);
    }
    bus.makes = nullptr;
    QVERIFY2(bus.run_until_decided(300 * second), seed_text(seed).c_str());
    QVERIFY(bus.members[0]->result->body.is_presence_only());
  }
}

// One of six saw all prepares of a round's block, and may be the only one that did. Then two die. The four
// complete that block. Planted: rules_.lock_of() that makes no stall lock from a full one never ends.
void TestAgreementStall::a_full_lock_is_completed_first() {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Bus bus(options(seed, 6));
    const std::size_t knows = seed % 4;
    bus.passes = [knows](const Bus::Member&, const Bus::Member& to, const ChainItem& item) {
      return !is_commit(item) && (!is_vote(item) || to.index == knows);
    };
    QVERIFY2(bus.world.run_until([&] { return bus.members[knows]->agreement->memory().lock != nullptr; },
                                 bus.world.now() + 60 * second),
             seed_text(seed).c_str());
    const Hash256 locked = bus.members[knows]->agreement->memory().lock->block;
    for (const std::size_t gone : {4u, 5u}) bus.members[gone]->power_off();
    bus.passes = nullptr;
    if (seed % 2 == 0) {  // the one that knows is restarted
      bus.world.run_for(second);
      bus.members[knows]->power_off();
      bus.members[knows]->power_on();
    }
    bus.world.run_for(100 * second);
    QVERIFY2(bus.different_results() == 0, seed_text(seed).c_str());
    bus.stall();
    QVERIFY2(bus.run_until_decided(600 * second), seed_text(seed).c_str());
    QCOMPARE(bus.bad_certificates, std::size_t(0));
    for (std::size_t i = 0; i < 4; ++i) {
      QCOMPARE(bus.members[i]->result->hash, locked);
      QVERIFY(bus.members[i]->certificate.lock.has_value());
    }
    QVERIFY2(bus.certifiable() == 1, seed_text(seed).c_str());
  }
}

// a alone holds a full lock and is cut off; the other honest ones certify a presence block in a stall, and only
// one of them learns of it. When a is back in its place, the presence block is the only one that can be
// certified. Planted: take_lock() that prefers a full lock to one of a later view makes two.
void TestAgreementStall::a_lock_of_a_later_view_goes_before_a_full_one() {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Bus bus(options(seed, 6));
    const std::size_t a = seed % 6, learns = (a + 1) % 6, gone = (a + 2) % 6;
    bus.passes = [a](const Bus::Member&, const Bus::Member& to, const ChainItem& item) {
      return !is_commit(item) && (!is_vote(item) || to.index == a);
    };
    QVERIFY(bus.world.run_until([&] { return bus.members[a]->agreement->memory().lock != nullptr; },
                                bus.world.now() + 60 * second));
    bus.members[a]->part = 1;
    bus.members[gone]->part = 2;
    bus.passes = [learns](const Bus::Member&, const Bus::Member& to, const ChainItem& item) {
      return !is_commit(item) || to.index == learns;
    };
    bus.stall();
    QVERIFY2(bus.world.run_until([&] { return bus.members[learns]->result != nullptr; },
                                 bus.world.now() + 600 * second),
             seed_text(seed).c_str());
    const Hash256 certified = bus.members[learns]->result->hash;
    QVERIFY(bus.members[learns]->result->body.is_presence_only());
    bus.members[learns]->part = 3;
    bus.members[a]->part = 0;
    bus.passes = nullptr;
    QVERIFY2(bus.world.run_until([&] { return bus.members[a]->result != nullptr; },
                                 bus.world.now() + 600 * second),
             seed_text(seed).c_str());
    QCOMPARE(bus.members[a]->result->hash, certified);
    QVERIFY2(bus.certifiable() == 1, seed_text(seed).c_str());
  }
}

// The network was cut for long, and all are back: nobody is silent. Planted: a leader that only ever asks for
// presence in a stall never ends.
void TestAgreementStall::without_changes_of_presence_all_others_wait_for_a_quorum() {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Bus bus(options(seed, 6));
    for (auto& member : bus.members) member->part = static_cast<int>(member->index % 2);
    bus.world.run_for(100 * second);
    bus.stall();
    bus.makes = [](const Bus::Member& member, bool presence_only) {
      return presence_only ? nullptr : member.block(false);
    };
    for (auto& member : bus.members) member->part = member->index < 4 ? 0 : 1;
    bus.world.run_for(300 * second);
    QVERIFY2(bus.different_results() == 0, seed_text(seed).c_str());
    for (auto& member : bus.members) member->part = 0;
    QVERIFY2(bus.run_until_decided(300 * second), seed_text(seed).c_str());
    QVERIFY(!bus.members[0]->result->body.is_presence_only());
  }
}

void TestAgreementStall::no_schedule_makes_two_certificates_data() {
  QTest::addColumn<int>("members");
  QTest::addColumn<int>("byzantine");
  QTest::addColumn<bool>("stalls");
  QTest::newRow("4, one Byzantine") << 4 << 1 << false;
  QTest::newRow("4, one Byzantine, stalls") << 4 << 1 << true;
  QTest::newRow("5, one Byzantine") << 5 << 1 << false;
  QTest::newRow("5, one Byzantine, stalls") << 5 << 1 << true;
  QTest::newRow("6, one Byzantine, stalls") << 6 << 1 << true;
  QTest::newRow("3, all honest, stalls") << 3 << 0 << true;
}

// certifiable() counts the blocks that could be certified with all that honest members signed and any Byzantine
// votes. Planted: try_prepare() without its check of the lock, and a restart without memory, each make two.
void TestAgreementStall::no_schedule_makes_two_certificates() {
  QFETCH(int, members);
  QFETCH(int, byzantine);
  QFETCH(bool, stalls);
  std::size_t decided = 0;
  const std::uint64_t seeds = qEnvironmentVariableIntValue("NS_LONG") != 0 ? 1000 : 40;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    BusOptions with = options(seed, std::size_t(members));
    with.byzantine = std::size_t(byzantine);
    with.loss = seed % 3 == 0 ? 0.2 : 0;
    Bus bus(with);
    std::optional<Adversary> adversary;
    if (byzantine > 0) adversary.emplace(bus, 0, seed);
    const bool all = survive(bus, seed, std::size_t(byzantine), stalls);
    QVERIFY2(all, seed_text(seed).c_str());
    QVERIFY2(bus.certifiable() == 1 && bus.different_results() == 1, seed_text(seed).c_str());
    QVERIFY2(bus.bad_certificates == 0, seed_text(seed).c_str());
    for (const auto& member : bus.members)
      for (const Evidence& evidence : member->evidence)
        QVERIFY2(byzantine > 0 && evidence.node == bus.members[0]->key.public_key(), seed_text(seed).c_str());
    ++decided;
  }
  QCOMPARE(decided, std::size_t(seeds));
}

NS_TEST(TestAgreementStall)
#include "test_agreement_stall.moc"
