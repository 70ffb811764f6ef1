// Real processes of one network. Four honest nodes learn. Then a fifth contributes ten times the opposite: the
// rule clips it, everybody can see that, and the others keep what they have learned. Once they are four again,
// there is no vote (docs/protocol/chain.md), and the same lie undoes the training: the negative control.
#include <QJsonArray>
#include <QTest>

#include "tests/support/rounds_run.h"
#include "tests/support/test_main.h"

using namespace neuroshard::test;  // NOLINT

namespace {

constexpr int measured_rounds = 3;  // with all members in them
// A lie costs something, and the loss of single steps varies.
constexpr double margin = 0.35;

}  // namespace

class TestRoundsLiars : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void four_learn();
  void four_keep_learning_beside_a_liar();
  void the_liar_is_made_small_and_told();
  void all_certified_the_same();
  void among_four_there_is_no_vote();

 private:
  // The loss of honest node a after so many rounds of all nodes.
  double loss_after_rounds(const QStringList& nodes, int rounds) {
    if (!run_.together(nodes)) return qQNaN();
    if (!run_.together(nodes, run_.round("a") + rounds - 1)) return qQNaN();
    return run_.status("a")["training"].toObject()["loss"].toDouble(qQNaN());
  }

  const QStringList honest_{"a", "b", "c", "d"};
  RoundsRun run_;
  double clean_loss_ = 0;
};

void TestRoundsLiars::four_learn() {
  QCOMPARE(run_.make("liars", "100"), QByteArray());
  QCOMPARE(run_.start_all(honest_), QByteArray());
  clean_loss_ = loss_after_rounds(honest_, measured_rounds);
  qInfo() << "loss without a liar" << clean_loss_;
  QVERIFY(clean_loss_ < 5);  // ln 300 = 5.7 before
}

void TestRoundsLiars::four_keep_learning_beside_a_liar() {
  run_.launch("liar", "text",
              {"sign-flip-10", "1", QString::number(honest_.size()), run_.path("lies"), "liar"});
  QCOMPARE(run_.joined("liar"), QByteArray());
  const double loss = loss_after_rounds(honest_ + QStringList{"liar"}, measured_rounds);
  qInfo() << "loss beside a liar" << loss;
  QVERIFY(loss < clean_loss_ + margin);
  QVERIFY2(run_.node("liar").errors_so_far().contains("\"attack\": \"sign-flip-10\", \"knows\": 1"),
           run_.node("liar").errors_so_far().constData());
}

void TestRoundsLiars::the_liar_is_made_small_and_told() {
  const QString liar = run_.status("liar")["node_id"].toString();
  QVERIFY(!liar.isEmpty());
  const ProcessResult said = run_node({"status", "--rounds", "--json", "--data-dir", run_.path("a")});
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
  const auto at_a = run_.certified("a");
  for (const QString& name : honest_ + QStringList{"liar"}) {
    const auto there = run_.certified(name);
    for (auto it = there.begin(); it != there.end(); ++it)
      if (at_a.contains(it.key())) QCOMPARE(it->anchor, at_a.value(it.key()).anchor);
    QCOMPARE(run_.rounds(name)["corruptions"].toInt(), 0);
  }
}

// One of the honest goes, politely; nothing else changes.
void TestRoundsLiars::among_four_there_is_no_vote() {
  run_.node("d").terminate();
  const double loss = loss_after_rounds({"a", "b", "c", "liar"}, 2);
  qInfo() << "loss beside a liar among four" << loss;
  QVERIFY(loss > clean_loss_ + margin);
  run_.kill_all();
}

NS_TEST(TestRoundsLiars)
#include "test_rounds_liars.moc"
