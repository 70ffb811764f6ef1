// Real processes on the loopback interface that train one model in outer rounds: one begins alone, others
// join, one is killed in the middle of a round and comes back. The test compares afterwards, round by round, the
// anchors that each certified. Nodes with other texts: test_rounds_texts.cpp.
#include <QTest>

#include "tests/support/rounds_run.h"
#include "tests/support/test_main.h"

using namespace neuroshard::test;  // NOLINT

class TestRounds : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase();
  void one_begins_and_another_joins();
  void a_third_fetches_the_anchor_and_takes_part();
  void one_is_killed_in_the_middle_of_a_round_and_takes_part_again();
  void the_waiting_is_counted();
  void all_certified_the_same();
  void each_round_leaves_a_checkpoint();
  void who_stops_is_not_waited_for();
  void a_stopped_node_goes_on_where_it_was();

 private:
  RoundsRun run_;
};

void TestRounds::initTestCase() {
  run_.founder = "a";
  const QByteArray trouble = run_.make("together", "200");
  QVERIFY2(trouble.isEmpty(), trouble.constData());
}

void TestRounds::one_begins_and_another_joins() {
  QCOMPARE(run_.start("a"), QByteArray());
  QTRY_VERIFY_WITH_TIMEOUT(run_.round("a") >= 2, RoundsRun::patience_ms);
  QVERIFY(run_.rounds("a")["agrees"].toBool());
  QCOMPARE(run_.start("b"), QByteArray());
  QVERIFY(run_.together({"a", "b"}));
  QVERIFY(run_.rounds("b")["fetched"].toInt() >= 1);  // a's work so far
}

void TestRounds::a_third_fetches_the_anchor_and_takes_part() {
  QCOMPARE(run_.start("c"), QByteArray());
  QVERIFY(run_.together({"a", "b", "c"}, run_.round("a")));
  QVERIFY(run_.rounds("c")["fetched"].toInt() >= 1);
  QVERIFY(run_.rounds("a")["bytes_sent"].toInt() > 0 && run_.rounds("c")["bytes_received"].toInt() > 0);
}

void TestRounds::one_is_killed_in_the_middle_of_a_round_and_takes_part_again() {
  run_.node("c").kill_now();
  // The others can't certify without the third: more than two thirds of three are all.
  const int before = run_.round("a");
  QCOMPARE(run_.start("c"), QByteArray());
  QVERIFY(run_.together({"a", "b", "c"}, before + 2));
  QVERIFY(run_.rounds("c")["contributed"].toInt() >= 1);
}

void TestRounds::the_waiting_is_counted() {
  for (const char* name : {"a", "b", "c"}) {
    const QJsonObject seen = run_.rounds(name);
    QVERIFY2(seen["waiting_share"].toDouble() > 0 && seen["waiting_share"].toDouble() < 1,
             QJsonDocument(seen).toJson().constData());
    QCOMPARE(seen["inner_steps"].toInt(), 200);
    QCOMPARE(seen["corruptions"].toInt(), 0);
  }
  const ProcessResult plain = run_node({"status", "--data-dir", run_.path("a")});
  QVERIFY2(plain.out.contains("certified, 3 members"), plain.text().constData());
}

void TestRounds::all_certified_the_same() {
  const auto at_a = run_.certified("a"), at_b = run_.certified("b"), at_c = run_.certified("c");
  int compared = 0, of_three = 0;
  for (auto it = at_a.begin(); it != at_a.end(); ++it) {
    for (const auto* other : {&at_b, &at_c}) {
      if (!other->contains(it.key())) continue;
      QCOMPARE(other->value(it.key()).anchor, it->anchor);
      QCOMPARE(other->value(it.key()).contributors, it->contributors);
      ++compared;
    }
    if (it->contributors == 3) ++of_three;
  }
  QVERIFY2(compared >= 8, QByteArray::number(compared).constData());
  QVERIFY2(of_three >= 3, QByteArray::number(of_three).constData());
  QSet<QString> anchors;
  for (const CertifiedRound& one : at_a) anchors.insert(one.anchor);
  QCOMPARE(anchors.size(), at_a.size());  // each round moved the model
}

// Of the anchor, as soon as it is in the model: these nodes make no others while they run.
void TestRounds::each_round_leaves_a_checkpoint() {
  const auto saved_at = [this] {
    const ProcessResult listed = run_node({"checkpoint", "list", "--json", "--data-dir", run_.path("b")});
    return json_lines(listed.out).value(0)["saved_at_ms"].toDouble();
  };
  QTRY_VERIFY_WITH_TIMEOUT(saved_at() > 0, RoundsRun::patience_ms);
  const double first = saved_at();
  QTRY_VERIFY_WITH_TIMEOUT(saved_at() > first, RoundsRun::patience_ms);
}

// Of three all have to vote: without its farewell nothing could be certified any more.
void TestRounds::who_stops_is_not_waited_for() {
  run_.node("c").terminate();
  const ProcessResult by_signal = run_.node("c").finish();
  QVERIFY2(by_signal.ok(), by_signal.text().constData());
  QVERIFY(run_.together({"a", "b"}, run_.round("a") + 1));
  const ProcessResult asked = run_node({"stop", "--data-dir", run_.path("b")});
  QVERIFY2(asked.ok(), asked.text().constData());
  QVERIFY(run_.node("b").finish().ok());
  QVERIFY(run_.together({"a"}, run_.round("a") + 1));
}

void TestRounds::a_stopped_node_goes_on_where_it_was() {
  run_.node("a").terminate();
  const ProcessResult stopped = run_.node("a").finish();
  QVERIFY2(stopped.ok(), stopped.text().constData());
  const int last = run_.certified("a").lastKey();
  for (const char* name : {"a", "b", "c"}) QCOMPARE(run_.start(name), QByteArray());
  QVERIFY(run_.together({"a", "b", "c"}, last));
  all_certified_the_same();
}

NS_TEST(TestRounds)
#include "test_rounds.moc"
