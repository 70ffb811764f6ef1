// Real processes that train in fragments (sync "fragments=2"): each half of the model is a row of the chain, and
// rounds close the rows in turn. Two nodes certify the same anchors of both, one is killed in the middle and goes
// on, a third one joins and leaves.
#include <QTest>
#include <algorithm>
#include <cmath>

#include "tests/support/rounds_run.h"
#include "tests/support/test_main.h"
#include "tests/support/until.h"

using namespace neuroshard::test;  // NOLINT

namespace {

constexpr int fragments = 2;

}  // namespace

class TestRoundsFragmentsRun : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() {
    run_.founder = "a";
    const QByteArray trouble = run_.make("halves", "120", {"--sync", "fragments=2"});
    QVERIFY2(trouble.isEmpty(), trouble.constData());
  }

  void two_train_together() {
    QCOMPARE(run_.start("a"), QByteArray());
    QTRY_VERIFY_WITH_TIMEOUT(run_.round("a") >= 1, RoundsRun::patience_ms);
    QCOMPARE(run_.start("b"), QByteArray());
    QVERIFY(run_.together({"a", "b"}));
    QVERIFY(run_.together({"a", "b"}, run_.round("a") + 2));
    for (const char* name : {"a", "b"}) {
      const QJsonObject seen = run_.rounds(name);
      QVERIFY2(seen["contributed"].toInt() >= 2 * fragments && seen["corruptions"].toInt() == 0,
               QJsonDocument(seen).toJson().constData());
    }
  }

  void one_is_killed_and_back_and_one_is_new() {
    run_.node("b").kill_now();
    for (const char* part : {"/chain/row-0", "/chain/row-1", "/chain/votes"})
      QVERIFY2(QFile::exists(run_.path("b") + part), part);
    const int before = run_.round("a");
    run_.launch("b");
    run_.launch("c");
    QCOMPARE(run_.joined("b"), QByteArray());
    QCOMPARE(run_.joined("c"), QByteArray());
    QVERIFY(run_.together({"a", "b", "c"}, before + 2));
    QVERIFY(run_.rounds("c")["fetched"].toInt() >= fragments);
  }

  void who_goes_says_so() {
    run_.node("c").terminate();
    const ProcessResult stopped = run_.node("c").finish();
    QVERIFY2(stopped.ok(), stopped.text().constData());
    QVERIFY(run_.together({"a", "b"}, run_.round("a")));
  }

  // One training: the loss falls, and every node says the same of all fragments together.
  void the_status_speaks_of_the_whole_model() {
    const double begun = std::log(300.0);  // of a model that knows nothing of its vocabulary
    QJsonObject global;
    const auto all_agree = [&] {
      global = run_.rounds("a")["global"].toObject();
      return global["hash_agreement_rate"].toDouble() == 1.0;
    };
    QVERIFY(neuroshard::testing::seen_once(all_agree, RoundsRun::patience_ms));
    const double loss = global["global_avg_loss"].toDouble();
    QVERIFY2(loss > 0 && loss < 0.8 * begun, QByteArray::number(loss).constData());
    const ProcessResult said = run_node({"status", "--rounds", "--json", "--data-dir", run_.path("a")});
    const QJsonArray rounds = json_lines(said.out).value(1)["rounds"].toArray();
    QSet<QString> named;
    for (const auto& round : rounds) named.insert(round.toObject()["rule"].toString().section(':', 0, 0));
    QCOMPARE(named, (QSet<QString>{"fragment 1 of 2", "fragment 2 of 2"}));
  }

  void all_certified_the_same() {
    QSet<QString> anchors;
    for (int f = 1; f <= fragments; ++f) {
      const auto at_a = run_.certified("a", f);
      int of_two = 0, of_three = 0;
      for (const char* other : {"b", "c"}) {
        const auto theirs = run_.certified(other, f);
        for (auto it = at_a.begin(); it != at_a.end(); ++it) {
          if (!theirs.contains(it.key())) continue;
          QCOMPARE(theirs.value(it.key()).anchor, it->anchor);
          QCOMPARE(theirs.value(it.key()).contributors, it->contributors);
          if (it->contributors == 2) ++of_two;
          if (it->contributors == 3) ++of_three;
        }
      }
      QVERIFY2(of_two >= 3 && of_three >= 1, QByteArray::number(f).constData());
      for (const CertifiedRound& round : at_a) anchors.insert(round.anchor);
      QVERIFY(at_a.lastKey() >= 6);
    }
    QCOMPARE(anchors.size(), run_.certified("a", 1).size() + run_.certified("a", 2).size());
  }

 private:
  RoundsRun run_;
};

NS_TEST(TestRoundsFragmentsRun)
#include "test_rounds_fragments_run.moc"
