// To which view a member goes by what the others say, alone: one real member on a virtual clock, and what is
// said to it. Liars say what they like: below a third they move nobody further than an honest member is, and
// however many they are, no number that they name breaks anything.
#include <QtTest>
#include <limits>
#include <set>

#include "core/crypto/hash.h"
#include "core/rounds/agreement.h"
#include "core/sim/world.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::rounds;

namespace {

constexpr Duration second = std::chrono::seconds(1);
constexpr AgreementOptions patience{4 * second, 30 * second};
constexpr std::uint32_t furthest = std::numeric_limits<std::uint32_t>::max();
const Hash256 network{};

crypto::KeyPair key(std::size_t number) {
  Bytes bytes;
  append_le(bytes, static_cast<std::uint64_t>(number));
  return crypto::KeyPair::from_seed(crypto::sha256(bytes));
}

// The first leader of the first view of a round of n members, and how the others speak to it.
class Bench final : public AgreementHost {
 public:
  Bench(std::size_t n, bool collected, std::size_t liars_first = 0) : collected_(collected) {
    std::vector<crypto::PublicKey> keys;
    for (std::size_t i = 0; i < n; ++i) keys.push_back(key(i).public_key());
    genesis_ = genesis_body({}, {}, keys);
    order_ = leader_order(body_hash(genesis_), 1, {}, genesis_.members);
    // Who leads none of the first views hears and waits.
    self_ = order_.back();
    for (std::size_t i = 0; i < n; ++i)
      if (key(i).public_key() == genesis_.members[self_].key) key_.emplace(key(i));
    for (std::size_t i = 0; i < liars_first; ++i) liars.insert(order_[i]);
    begin({});
  }

  // Again, as after a restart: with what was on the disk.
  void begin(AgreementMemory memory) {
    RoundAgreement::Setup setup{network, {}, 1, body_hash(genesis_), genesis_.members, 0, collected_};
    agreement.emplace(std::move(setup), patience, *key_, executor_, *this, std::move(memory));
    agreement->start();
  }

  // Said by that many members, this one not among them; each says it in both ways that there are.
  void say(std::size_t from, std::size_t count, std::uint32_t view, std::uint32_t apart = 0) {
    for (std::size_t i = 0, said = 0; said < count; ++i) {
      const std::size_t member = (from + i) % genesis_.members.size();
      if (member == self_) continue;
      const std::uint32_t its = view - static_cast<std::uint32_t>(said++) * apart;
      say_as(member, its);
    }
  }
  void say_as(std::size_t member, std::uint32_t view) {
    const net::NodeId& id = genesis_.members[member].id;
    agreement->on_view(id, view);
    agreement->on_new_view(id, {{}, 1, view, std::nullopt});
  }
  // Members beside this one, one after the other.
  std::size_t other(std::size_t i) const { return i < self_ ? i : i + 1; }
  std::uint32_t view() const { return agreement->view(); }

  void broadcast(const RoundItem& item) override {
    if (const auto* post = std::get_if<NewViewPost>(&item)) new_views.push_back(post->view);
  }
  void remember(const AgreementMemory& memory, std::function<void()> then) override {
    disk = encode_agreement_memory(memory);
    then();
  }
  void judge(const RoundBody&) override {}
  void make_body() override { ++asked_to_lead; }
  void certified(const RoundCertificate&) override {}
  bool is_liar(std::size_t member) const override { return liars.count(member) != 0; }

  sim::World world;
  RoundBody genesis_;
  std::vector<std::size_t> order_;
  std::size_t self_ = 0;
  std::optional<RoundAgreement> agreement;
  std::vector<std::uint32_t> new_views;  // that it told
  Bytes disk;
  int asked_to_lead = 0;
  std::set<std::size_t> liars;  // proven to be

 private:
  const bool collected_;
  std::optional<crypto::KeyPair> key_;
  sim::HostExecutor executor_{world};
};

std::size_t most_liars(std::size_t n) {
  return honest_size(n) - 1;
}

}  // namespace

class TestRoundsViews : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void members_data();
  void liars_below_a_third_move_nobody_data() { members_data(); }
  void liars_below_a_third_move_nobody();
  void liars_take_nobody_further_than_an_honest_member_data() { members_data(); }
  void liars_take_nobody_further_than_an_honest_member();
  void more_than_a_third_take_a_late_member_along_data() { members_data(); }
  void more_than_a_third_take_a_late_member_along();
  void no_number_breaks_a_member_data();
  void no_number_breaks_a_member();
  void nobody_waits_for_a_proven_liar_data() { members_data(); }
  void nobody_waits_for_a_proven_liar();
  void what_a_liar_proposed_is_not_dropped();
  void where_all_others_are_proven_time_goes_on();
  void strangers_say_nothing();
};

void TestRoundsViews::members_data() {
  QTest::addColumn<int>("members");
  QTest::addColumn<bool>("collected");
  for (const int n : {4, 8, 16, 24, 64})
    for (const bool collected : {false, true})
      QTest::addRow("%d%s", n, collected ? ", collected" : "") << n << collected;
}

// Neither what the member does nor how long it waits is another than without them.
void TestRoundsViews::liars_below_a_third_move_nobody() {
  QFETCH(int, members);
  QFETCH(bool, collected);
  Bench quiet(std::size_t(members), collected), bench(std::size_t(members), collected);
  const std::size_t liars = most_liars(std::size_t(members));
  for (int i = 0; i < 40; ++i) {
    // To this member another view each time, and higher ones again and again.
    bench.say(0, liars, furthest - std::uint32_t(i % 7), 3);
    bench.say(0, liars, (1u << 30) - 1000 + std::uint32_t(i), 1);
    bench.say(0, liars, 200u + std::uint32_t(i));
    QCOMPARE(bench.view(), quiet.view());
    quiet.world.run_for(2 * second);
    bench.world.run_for(2 * second);
    QCOMPARE(bench.view(), quiet.view());
    QCOMPARE(bench.agreement->leader(bench.view()), quiet.agreement->leader(quiet.view()));
  }
  QVERIFY(quiet.view() >= 5);
  QCOMPARE(bench.new_views, quiet.new_views);
  QCOMPARE(bench.asked_to_lead, quiet.asked_to_lead);
}

void TestRoundsViews::liars_take_nobody_further_than_an_honest_member() {
  QFETCH(int, members);
  QFETCH(bool, collected);
  Bench bench(std::size_t(members), collected);
  const std::size_t liars = most_liars(std::size_t(members));
  for (std::size_t i = 0; i < liars; ++i) bench.say_as(bench.other(i), furthest - 9 * std::uint32_t(i));
  for (std::size_t i = 0; i < liars; ++i) bench.say_as(bench.other(i), 1'000'000 + std::uint32_t(i));
  // The others time out one after the other.
  for (std::size_t i = liars; i + 1 < std::size_t(members); ++i) {
    bench.say_as(bench.other(i), 3);
    QCOMPARE(bench.view(), 3u);
  }
  bench.world.run_for(3600 * second);
  const std::uint32_t by_its_clock = bench.view();
  QVERIFY2(by_its_clock > 100 && by_its_clock < 140, qPrintable(QString::number(by_its_clock)));
}

void TestRoundsViews::more_than_a_third_take_a_late_member_along() {
  QFETCH(int, members);
  QFETCH(bool, collected);
  // However far: hours of views, and most views that a month has.
  for (const std::uint32_t far : {1u, 64u, 65u, 3000u, 100'000u}) {
    Bench bench(std::size_t(members), collected);
    const std::size_t needed = honest_size(std::size_t(members));
    for (std::size_t i = 0; i + 1 < needed; ++i) bench.say_as(bench.other(i), far + 5);
    QCOMPARE(bench.view(), 0u);
    bench.say_as(bench.other(needed - 1), far);
    // There, and no further than the least of them.
    QCOMPARE(bench.view(), far);
    QCOMPARE(bench.new_views, std::vector<std::uint32_t>{far});
    const std::size_t leader = bench.order_[far % std::size_t(members)];
    QCOMPARE(bench.agreement->leader(bench.view()), leader);
    QCOMPARE(bench.agreement->leads(), leader == bench.self_);
    // The view lasts as long as the longest, not for ever and not for nothing.
    bench.world.run_for(3 * second);
    QCOMPARE(bench.view(), far);
    bench.world.run_for(patience.longest_view);
    QVERIFY(bench.view() > far);
    QVERIFY(bench.view() <= far + 8);
  }
}

// A third and more, and also one of two members, from the first number to the last: such a round may stand
// still, but the member stays what it is, comes back from its disk, and time goes on.
void TestRoundsViews::no_number_breaks_a_member_data() {
  QTest::addColumn<int>("members");
  QTest::addColumn<bool>("collected");
  for (const int n : {2, 3, 8, 17})
    for (const bool collected : {false, true})
      QTest::addRow("%d%s", n, collected ? ", collected" : "") << n << collected;
}

void TestRoundsViews::no_number_breaks_a_member() {
  QFETCH(int, members);
  QFETCH(bool, collected);
  const std::size_t all = std::size_t(members) - 1;
  for (const std::uint32_t view :
       {furthest, furthest - 1, furthest - 64, 1u << 31, (1u << 30) + 1, 1u << 30, (1u << 30) - 1}) {
    Bench bench(std::size_t(members), collected);
    bench.say(0, all, view);
    bench.say(0, all, furthest);
    for (std::size_t i = 0; i < all; ++i) {
      const net::NodeId& id = bench.genesis_.members[bench.other(i)].id;
      bench.agreement->on_proposal(id, {view, bench.genesis_, std::nullopt});
      bench.agreement->on_vote({{VoteStep::Prepare, {}, 1, view, {}}, {std::uint16_t(i), {}}});
      bench.agreement->on_vote({{VoteStep::Commit, {}, 1, furthest, {}}, {std::uint16_t(i), {}}});
      bench.agreement->on_lock({bench.genesis_, view, {}});
    }
    const std::uint32_t reached = bench.view();
    QVERIFY(reached == 0 || reached == view);
    bench.world.run_for(100 * second);
    QVERIFY(bench.view() > reached);
    if (!bench.disk.empty()) {
      const auto memory = decode_agreement_memory(bench.disk, collected);
      QVERIFY(memory.ok());
      bench.begin(*memory);
    }
    bench.say(0, all, furthest);
    const std::uint32_t before = bench.view();
    bench.world.run_for(100 * second);
    QVERIFY(bench.view() > before);
    // What is beyond all claims is gone to while it is near.
    bench.say(0, all, bench.view() + 10);
    QVERIFY(bench.view() > before + 10);
  }
}

void TestRoundsViews::nobody_waits_for_a_proven_liar() {
  QFETCH(int, members);
  QFETCH(bool, collected);
  // The first to lead, as many as may lie: at once with the first honest one.
  const std::size_t liars = most_liars(std::size_t(members));
  Bench known(std::size_t(members), collected, liars);
  QCOMPARE(known.view(), std::uint32_t(liars));
  QCOMPARE(known.new_views, std::vector<std::uint32_t>{std::uint32_t(liars)});
  // Proof comes in the middle of a view. Who does not lead now may lie as it likes.
  Bench bench(std::size_t(members), collected);
  bench.world.run_for(second);
  bench.liars.insert(bench.order_[1]);
  bench.agreement->leader_may_be_liar();
  QCOMPARE(bench.view(), 0u);
  bench.liars.insert(bench.order_[0]);
  bench.agreement->leader_may_be_liar();
  QCOMPARE(bench.view(), 2u);
  // By the clock, too, and by what others say.
  if (members < 8) return;
  bench.liars.insert(bench.order_[3]);
  bench.world.run_for(15 * second);
  QCOMPARE(bench.view(), 4u);
  bench.liars.insert(bench.order_[5]);
  bench.say(0, honest_size(std::size_t(members)), 5);
  QCOMPARE(bench.view(), 6u);
}

// What a liar has proposed before it was proven may be on its way to be signed.
void TestRoundsViews::what_a_liar_proposed_is_not_dropped() {
  Bench bench(8, false);
  RoundBody body = bench.genesis_;
  body.round = 1;
  body.previous = body_hash(bench.genesis_);
  const net::NodeId& leader = bench.genesis_.members[bench.order_[0]].id;
  QCOMPARE(bench.agreement->on_proposal(leader, {0, body, std::nullopt}), Verdict::Taken);
  bench.liars.insert(bench.order_[0]);
  bench.agreement->leader_may_be_liar();
  QCOMPARE(bench.view(), 0u);
}

void TestRoundsViews::where_all_others_are_proven_time_goes_on() {
  // Its own turn comes first, then again and again.
  Bench bench(8, false, 7);
  QCOMPARE(bench.view(), 7u);
  bench.world.run_for(3600 * second);
  QCOMPARE(bench.agreement->leader(bench.view()), bench.self_);
  // Itself among them, which can't be: views pass as they do with the clock.
  Bench all(8, true, 8);
  QCOMPARE(all.view(), 0u);
  all.world.run_for(100 * second);
  QVERIFY(all.view() > 3 && all.view() < 10);
}

void TestRoundsViews::strangers_say_nothing() {
  Bench bench(4, true);
  for (std::size_t i = 100; i < 200; ++i) {
    const net::NodeId id = crypto::node_id(key(i).public_key());
    bench.agreement->on_view(id, 7);
    QCOMPARE(bench.agreement->on_new_view(id, {{}, 1, 7, std::nullopt}), Verdict::NotMember);
  }
  QCOMPARE(bench.view(), 0u);
}

NS_TEST(TestRoundsViews)
#include "test_views.moc"
