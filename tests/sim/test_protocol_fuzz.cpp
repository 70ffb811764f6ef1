// Messages that are changed at random, straight to the handlers of real chain nodes on virtual time: thousands of a
// second, from a stranger and from a member, at every method. Nothing may crash, each call has one answer, and
// honest nodes go on.
#include <QtTest>

#include "core/sim/identities.h"
#include "tests/sim/attacked_world.h"
#include "tests/sim/attacker.h"
#include "tests/support/test_main.h"

using namespace neuroshard;  // NOLINT
using test::AttackedWorld;
using test::Attacker;
using test::FuzzTarget;
using test::Message;

namespace {

class TestProtocolFuzz : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void chain_and_rounds_hold_data();
  void chain_and_rounds_hold();
  void leaders_with_changed_blocks();
};

void TestProtocolFuzz::chain_and_rounds_hold_data() {
  QTest::addColumn<int>("nodes");
  QTest::addColumn<bool>("is_member");
  QTest::addColumn<bool>("open_start");
  QTest::addColumn<int>("calls");
  QTest::newRow("a stranger, four members") << 4 << false << false << 15'000;
  QTest::newRow("one of five members") << 5 << true << false << 15'000;
  QTest::newRow("a stranger at an open start") << 4 << false << true << 6000;
  QTest::newRow("one of twenty members, who relay") << 20 << true << false << 3000;
}

void TestProtocolFuzz::chain_and_rounds_hold() {
  QFETCH(int, nodes);
  QFETCH(bool, is_member);
  QFETCH(bool, open_start);
  QFETCH(int, calls);
  const auto all = static_cast<std::size_t>(nodes);
  const std::uint64_t seed = test::first_seed();
  auto options = test::lab_options(seed, all);
  options.open_start = open_start;
  AttackedWorld attacked(std::move(options), seed);
  sim::ChainWorld& world = attacked.lab.world;
  const std::size_t honest = is_member ? all - 1 : all;
  if (is_member) world.set_honest(all - 1, false);
  QVERIFY(open_start || world.run_to_round(1, 20 * test::lab_round));
  Attacker attacker(*attacked.pool, world.world().clock(), seed);
  if (is_member) {
    const chain::MemberRecord* member = world.chain(0).history()->tip().registry->find(world.id(all - 1));
    QVERIFY(member != nullptr);
    attacker.take_key(sim::key_of_node(seed, all - 1), member->number);
    attacker.keeps_key = true;
  }
  std::uint64_t learned = 0;
  const auto limit = test::times(static_cast<std::uint64_t>(calls));
  while (attacked.target.calls() < limit && attacked.target.findings().empty()) {
    world.world().run_for(std::chrono::milliseconds(50));
    const chain::History* history = world.chain(0).history();
    for (; history != nullptr && learned <= history->tip().height(); ++learned)
      if (const chain::CertifiedBlock* block = history->find(learned)) attacked.pool->learn_block(*block);
    for (const Message& message : attacker.own_messages())
      if (message.method == net::Method::RoundPiece || chain::ChainServer::handles(message.method))
        attacked.pool->learn(message.method, message.request);
    for (int i = 0; i < 30; ++i) {
      attacked.victim = attacker.rng().below(honest);
      attacked.target.call(attacker.from(), attacker.next().message);
    }
  }
  const std::uint64_t round = world.round(0);
  const Duration patience = std::chrono::minutes(open_start ? 5 : 2);  // silent keys cost an attempt to begin
  const MonotonicTime ended = world.world().now();
  const bool goes_on = world.run_to_round(round + 2, patience);
  qInfo("two rounds later after %.0f s", to_seconds(world.world().now() - ended));
  attacked.target.expect_answers();
  qInfo("%s", text_of(attacked.target, seed).c_str());
  QVERIFY2(attacked.target.findings().empty(), text_of(attacked.target, seed).c_str());
  QVERIFY2(goes_on, test::text_of(world).c_str());
  QCOMPARE(world.seen().conflicts, 0u);
  QCOMPARE(world.seen().wrong_anchors, 0u);
}

// A member whose blocks are changed on their way out where it leads: those that it leads are judged whole,
// because place, root and leader are right.
void TestProtocolFuzz::leaders_with_changed_blocks() {
  constexpr std::size_t all = 4, liar = 3;
  const std::uint64_t seed = test::first_seed();
  auto options = test::lab_options(seed, all);
  options.trainer.step_time = test::lab_second / test::lab_inner_steps;
  options.training.clock.first_deadline = 3 * test::lab_second;
  options.chain.agreement = {test::lab_second, 4 * test::lab_second};
  AttackedWorld attacked(std::move(options), seed);
  sim::ChainWorld& world = attacked.lab.world;
  world.set_honest(liar, false);
  QVERIFY(world.run_to_round(1, 20 * test::lab_round));
  Attacker attacker(*attacked.pool, world.world().clock(), seed);
  const chain::MemberRecord* member = world.chain(0).history()->tip().registry->find(world.id(liar));
  QVERIFY(member != nullptr);
  attacker.take_key(sim::key_of_node(seed, liar), member->number);
  std::uint64_t changed = 0;
  attacked.edits[liar] = [&](net::Method method, Bytes* request) {
    if (method != net::Method::ChainPost || attacker.rng().below(8) == 0) return;
    auto other = attacker.changes().change_body(*request);
    if (!other) return;
    *request = std::move(*other);
    ++changed;
  };
  const std::uint64_t rounds = test::times(200);
  const bool there = world.run_to_round(rounds, static_cast<std::int64_t>(rounds) * 20 * test::lab_round);
  qInfo("seed %llu: %llu changed blocks, %llu rounds", (unsigned long long)seed, (unsigned long long)changed,
        (unsigned long long)world.round(0));
  QVERIFY2(there, test::text_of(world).c_str());
  QVERIFY2(changed >= 50, qPrintable(QString::number(changed)));
  QCOMPARE(world.seen().conflicts, 0u);
  QCOMPARE(world.seen().wrong_anchors, 0u);
  attacked.edits[liar] = nullptr;
}

}  // namespace

NS_TEST(TestProtocolFuzz)
#include "test_protocol_fuzz.moc"
