// The ledger that compares the accounts of several nodes: it is shown each fault that it must notice, and a history
// without one. It needs no node.
#include <QTest>

#include "tests/support/chain_ledger.h"
#include "tests/support/test_main.h"

using namespace neuroshard;        // NOLINT
using namespace neuroshard::test;  // NOLINT

namespace {

constexpr qint64 round_tokens = 15'360;

// Block `height` of a made-up export.
QByteArray made_up_block(int height, const QByteArray& hash, const QByteArray& previous,
                         const QByteArray& more = {}) {
  return "{\"height\":" + QByteArray::number(height) + ",\"hash\":\"" + hash + "\",\"previous\":\"" +
         previous + "\",\"time_ms\":" + QByteArray::number(1000 * height) + more + "}\n";
}
QByteArray made_up_close(int round, const QByteArray& contributions) {
  return ",\"close\":{\"round\":" + QByteArray::number(round) + ",\"contributions\":[" + contributions + "]}";
}
QByteArray made_up_result(int round, const QByteArray& anchor) {
  return ",\"result\":{\"round\":" + QByteArray::number(round) +
         ",\"rows\":[{\"row\":0,\"carried\":" + (anchor.isEmpty() ? "true" : "false") + ",\"anchor\":\"" +
         anchor + "\"}]}";
}
QByteArray work_of(int member, qint64 tokens) {
  return "{\"member\":" + QByteArray::number(member) + ",\"tokens\":" + QByteArray::number(tokens) + "}";
}

// Three rounds: of both members, carried with the work of one, of the other with the work of two rounds.
QByteArray sound_history() {
  return made_up_block(0, "g", "", ",\"genesis\":{}") +
         made_up_block(1, "h1", "g", made_up_close(1, work_of(0, round_tokens) + "," + work_of(1, 9))) +
         made_up_block(2, "h2", "h1", made_up_result(1, "aa11")) +
         made_up_block(3, "h3", "h2", made_up_close(2, work_of(1, 9))) +
         made_up_block(4, "h4", "h3", made_up_result(2, "")) +
         made_up_block(5, "h5", "h4", made_up_close(3, work_of(0, round_tokens + 512))) +
         made_up_block(6, "h6", "h5", made_up_result(3, "bb22"));
}

// Of two accounts: the sound history, and this one with this anchor of round 1.
QString faults_of(const QByteArray& blocks, const QString& anchor = "aa") {
  ChainLedger ledger(round_tokens);
  ledger.read_blocks("a", sound_history());
  ledger.read_blocks("b", blocks);
  ledger.read_anchors("a", {{1, {"aa", 2, 2}}});
  ledger.read_anchors("b", {{1, {anchor, 2, 2}}});
  return ledger.faults().join("\n");
}

}  // namespace

class TestChainLedger : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_sound_history_has_no_fault();
  void two_blocks_of_one_height_are_a_fault();
  void work_that_counts_twice_is_a_fault();
  void a_round_ends_once();
  void other_anchors_are_a_fault();
  void rounds_without_a_members_work_are_counted();
  void work_of_a_carried_round_is_counted_once();
};

void TestChainLedger::a_sound_history_has_no_fault() {
  QCOMPARE(faults_of(sound_history()), QString());
}

void TestChainLedger::two_blocks_of_one_height_are_a_fault() {
  QVERIFY(faults_of(made_up_block(3, "x3", "h2")).contains("height 3: a has block h3, b has block x3"));
  QVERIFY(faults_of(made_up_block(7, "h7", "x6")).contains("height 7"));
}

void TestChainLedger::work_that_counts_twice_is_a_fault() {
  const QByteArray one = work_of(0, round_tokens), more = work_of(0, round_tokens + 512);
  QVERIFY(
      faults_of(made_up_block(7, "h7", "h6", made_up_close(4, one + "," + one))).contains("counts twice"));
  // A second round's tokens are right after a carried round (round 3), and nowhere else.
  QVERIFY(faults_of(made_up_block(7, "h7", "h6", made_up_close(4, more))).contains("round 4: member 0"));
  QCOMPARE(faults_of(made_up_block(7, "h7", "h6", made_up_close(4, one))), QString());
}

void TestChainLedger::a_round_ends_once() {
  QVERIFY(faults_of(made_up_block(7, "h7", "h6", made_up_close(3, work_of(1, 9))))
              .contains("round 3 is closed twice"));
  QVERIFY(
      faults_of(made_up_block(7, "h7", "h6", made_up_result(3, "bb"))).contains("round 3 has two results"));
}

void TestChainLedger::other_anchors_are_a_fault() {
  QVERIFY(faults_of(sound_history(), "ab").contains("round 1: b has the anchor ab, certified is aa11"));
}

void TestChainLedger::rounds_without_a_members_work_are_counted() {
  ChainLedger ledger(round_tokens);
  ledger.read_blocks("a", sound_history());
  const auto missing = [&](int number, qint64 at_ms, qint64 back_ms) {
    const ChainLedger::Missing found = ledger.missing(number, at_ms, back_ms, 100'000);
    return QList<int>{found.lost, found.absent, found.counts_again ? 1 : 0};
  };
  QCOMPARE(missing(0, 500, 600), (QList<int>{0, 0, 1}));
  QCOMPARE(missing(0, 1500, 1600), (QList<int>{1, 0, 1}));  // round 2 is without it
  QCOMPARE(missing(0, 1500, 3500), (QList<int>{0, 1, 1}));  // and closed while it was away
  QCOMPARE(missing(1, 3500, 3600), (QList<int>{1, 0, 0}));  // never back
}

void TestChainLedger::work_of_a_carried_round_is_counted_once() {
  ChainLedger ledger(round_tokens);
  ledger.read_blocks("a", sound_history());
  QCOMPARE(ledger.tokens_of({0}), 2 * round_tokens + 512);
  QCOMPARE(ledger.tokens_of({1}), qint64{9});  // that of round 1 only
}

NS_TEST(TestChainLedger)
#include "test_chain_ledger.moc"
