// Real processes of one network. Four honest nodes learn. Then a fifth contributes ten times the opposite: the
// rule clips it, everybody can see that, and the others keep what they have learned. Four contributors, one of them
// Byzantine, are too few for a robust rule; the norms of earlier rounds bound it there. test_chain_hostile has the control.
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
  void among_four_earlier_norms_bound_it();

 private:
  // Of each round with so many contributors that node a aggregated: the note and the share of the Byzantine node, and
  // the least share of an honest one.
  struct Judgement {
    QString note;
    double liar = 1, least_honest = 1;
  };
  std::vector<Judgement> judgements(int contributors) const;
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
  run_.founder = "a";
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

std::vector<TestRoundsLiars::Judgement> TestRoundsLiars::judgements(int contributors) const {
  const QString liar = run_.status("liar")["node_id"].toString();
  const ProcessResult said = run_node({"status", "--rounds", "--json", "--data-dir", run_.path("a")});
  std::vector<Judgement> found;
  for (const QJsonObject& line : json_lines(said.out))
    for (const QJsonValue& round : line["rounds"].toArray()) {
      if (round["contributors"].toInt() != contributors || round["fetched"].toBool()) continue;
      Judgement judgement;
      bool is_there = false;
      for (const QJsonValue& one : round["who"].toArray()) {
        const bool is_liar = one["id"].toString() == liar;
        is_there |= is_liar;
        double& share = is_liar ? judgement.liar : judgement.least_honest;
        share = qMin(share, one["share"].toDouble());
        if (is_liar) judgement.note = one["note"].toString();
      }
      if (is_there) found.push_back(judgement);
    }
  return found;
}

void TestRoundsLiars::the_liar_is_made_small_and_told() {
  const auto told = judgements(5);
  QVERIFY(told.size() >= 2);
  for (const Judgement& one : told) {
    QVERIFY2(one.note.startsWith("clipped to"), qPrintable(one.note));
    QVERIFY(one.liar < one.least_honest);
  }
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
void TestRoundsLiars::among_four_earlier_norms_bound_it() {
  run_.node("d").terminate();
  const double loss = loss_after_rounds({"a", "b", "c", "liar"}, 2);
  qInfo() << "loss beside a liar among four" << loss;
  const auto told = judgements(4);
  QVERIFY(!told.empty());
  for (const Judgement& one : told) QVERIFY2(one.note.startsWith("clipped to"), qPrintable(one.note));
  QVERIFY(loss < clean_loss_ + margin);
  run_.kill_all();
}

NS_TEST(TestRoundsLiars)
#include "test_rounds_liars.moc"
