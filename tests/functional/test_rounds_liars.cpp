// Real processes, one of which lies: it trains as all do, and contributes ten times the opposite. Among five
// the rule makes it small, everybody can see that, and the others learn as they do without it. Once they are
// four, there is no vote (docs/protocol/chain.md), and the same lie undoes the training: the negative control.
#include <QJsonArray>
#include <QTest>

#include "tests/support/rounds_run.h"
#include "tests/support/test_main.h"

using namespace neuroshard::test;  // NOLINT

namespace {

constexpr int measured_rounds = 3;  // with all members in them
// A lie costs something, and no two runs have the same batches.
constexpr double margin = 0.35;

}  // namespace

class TestRoundsLiars : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void four_learn();
  void four_learn_as_well_beside_a_liar();
  void the_liar_is_made_small_and_told();
  void all_certified_the_same();
  void among_four_there_is_no_vote();

 private:
  // The loss of honest node a after so many rounds of all nodes.
  double loss_after_rounds(RoundsRun& run, const QStringList& nodes, int rounds) {
    if (!run.together(nodes)) return qQNaN();
    if (!run.together(nodes, run.round("a") + rounds - 1)) return qQNaN();
    return run.status("a")["training"].toObject()["loss"].toDouble(qQNaN());
  }

  const QStringList honest_{"a", "b", "c", "d"};
  RoundsRun clean_, lied_to_;
  double clean_loss_ = 0;
};

void TestRoundsLiars::four_learn() {
  QCOMPARE(clean_.make("clean", "100"), QByteArray());
  QCOMPARE(clean_.start_all(honest_), QByteArray());
  clean_loss_ = loss_after_rounds(clean_, honest_, measured_rounds);
  clean_.kill_all();
  qInfo() << "loss without a liar" << clean_loss_;
  QVERIFY(clean_loss_ < 5);  // ln 300 = 5.7 before
}

void TestRoundsLiars::four_learn_as_well_beside_a_liar() {
  QCOMPARE(lied_to_.make("liars", "100"), QByteArray());
  // Among fewer there is no vote, as the last test shows.
  QCOMPARE(lied_to_.start_all(honest_), QByteArray());
  QVERIFY(lied_to_.together(honest_));
  lied_to_.launch("liar", "text",
                  {"sign-flip-10", "1", QString::number(honest_.size()), lied_to_.path("lies"), "liar"});
  QCOMPARE(lied_to_.joined("liar"), QByteArray());
  const double loss = loss_after_rounds(lied_to_, honest_ + QStringList{"liar"}, measured_rounds);
  qInfo() << "loss beside a liar" << loss;
  QVERIFY(loss < clean_loss_ + margin);
  QVERIFY2(lied_to_.node("liar").errors_so_far().contains("\"attack\": \"sign-flip-10\", \"knows\": 1"),
           lied_to_.node("liar").errors_so_far().constData());
}

void TestRoundsLiars::the_liar_is_made_small_and_told() {
  const QString liar = lied_to_.status("liar")["node_id"].toString();
  QVERIFY(!liar.isEmpty());
  const ProcessResult said = run_node({"status", "--rounds", "--json", "--data-dir", lied_to_.path("a")});
  int told = 0;
  for (const QJsonObject& line : json_lines(said.out))
    for (const QJsonValue& round : line["rounds"].toArray()) {
      const QJsonArray who = round["who"].toArray();
      if (round["contributors"].toInt() != 5 || round["fetched"].toBool()) continue;
      double share_of_liar = 1, least_honest = 1;
      QString note;
      for (const QJsonValue& one : who) {
        const double share = one["share"].toDouble();
        if (one["id"].toString() == liar) {
          share_of_liar = share;
          note = one["note"].toString();
        } else {
          least_honest = qMin(least_honest, share);
        }
      }
      QVERIFY2(note.startsWith("clipped to"), QJsonDocument(round.toObject()).toJson().constData());
      QVERIFY2(share_of_liar < least_honest, QJsonDocument(round.toObject()).toJson().constData());
      ++told;
    }
  QVERIFY2(told >= 2, said.text().constData());
}

void TestRoundsLiars::all_certified_the_same() {
  const auto at_a = lied_to_.certified("a");
  for (const QString& name : honest_ + QStringList{"liar"}) {
    const auto there = lied_to_.certified(name);
    for (auto it = there.begin(); it != there.end(); ++it)
      if (at_a.contains(it.key())) QCOMPARE(it->anchor, at_a.value(it.key()).anchor);
    QCOMPARE(lied_to_.rounds(name)["corruptions"].toInt(), 0);
  }
}

// One of the honest goes, politely; nothing else changes.
void TestRoundsLiars::among_four_there_is_no_vote() {
  lied_to_.node("d").terminate();
  const double loss = loss_after_rounds(lied_to_, {"a", "b", "c", "liar"}, 2);
  qInfo() << "loss beside a liar among four" << loss;
  QVERIFY(loss > clean_loss_ + margin);
  lied_to_.kill_all();
}

NS_TEST(TestRoundsLiars)
#include "test_rounds_liars.moc"
