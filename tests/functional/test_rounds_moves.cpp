// Real processes of a network that chooses who holds which part of the model: nodes that name no part cover all of them, and
// when a part has one holder left, another node moves to it.
#include <QTest>
#include <algorithm>
#include <utility>

#include "tests/support/rounds_run.h"
#include "tests/support/test_main.h"
#include "tests/support/until.h"

using namespace neuroshard::test;  // NOLINT

namespace {

const QStringList all_names{"a", "b", "c", "d", "e"};

}  // namespace

class TestRoundsMoves : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() {
    run_.founder = "a";
    run_.model = RoundsRun::model_of_two_layers();
    const QByteArray trouble = run_.make("moves", "200", {"--sync", "parts=2"});
    QVERIFY2(trouble.isEmpty(), trouble.constData());
  }

  void nodes_that_name_no_part_cover_all_of_them() {
    for (const QString& name : all_names) {
      QCOMPARE(run_.start(name), QByteArray());
      if (name == "a")
        QTRY_VERIFY_WITH_TIMEOUT(!run_.rounds("a")["chain"].toObject()["genesis"].toString().isEmpty(),
                                 RoundsRun::patience_ms);
    }
    const auto covered = [&] {
      return std::all_of(all_names.begin(), all_names.end(), [&](const QString& name) {
        const auto [first, second] = holders(name);
        return first >= 2 && second >= 2 && first + second == all_names.size();
      });
    };
    QVERIFY2(neuroshard::testing::seen_once(covered, RoundsRun::patience_ms), qPrintable(text_of(part("a"))));
    for (const QString& name : all_names) QVERIFY(part(name)["follows_plan"].toBool());
    // Each says in a block how much memory it offers.
    const auto offered = [&] {
      const QJsonObject memory = run_.rounds("a")["memory"].toObject();
      const QJsonObject present = memory["present"].toObject();
      return memory["known"] == all_names.size() && present["with_room"] == all_names.size() &&
             memory["own_bytes"].toDouble() > present["member_bytes"].toDouble();
    };
    QVERIFY2(neuroshard::testing::seen_once(offered, RoundsRun::patience_ms),
             qPrintable(text_of(run_.rounds("a")["memory"].toObject())));
  }

  // Else the part would be lost with its last holder.
  void a_node_moves_to_a_part_that_has_one_holder_left() {
    const auto [first, second] = holders("a");
    const int small = first < second ? 1 : 2;
    QString gone;
    for (const QString& name : all_names)
      if (name != "a" && part(name)["number"].toInt() == small) gone = name;
    QStringList others = all_names;
    others.removeAll(gone);
    QMap<QString, int> steps;
    for (const QString& name : others) steps[name] = step(name);
    run_.node(gone).terminate();
    run_.node(gone).finish();
    const auto moved = [&] { return holders("a") == std::pair(2, 2); };
    QVERIFY2(neuroshard::testing::seen_once(moved, RoundsRun::patience_ms), qPrintable(text_of(part("a"))));
    QVERIFY(run_.together(others, run_.round("a") + 2));
    for (const QString& name : others) {
      const QJsonObject seen = run_.rounds(name);
      QVERIFY2(seen["corruptions"].toInt() == 0 && seen["agrees"].toBool(), qPrintable(text_of(seen)));
      QVERIFY2(step(name) > steps[name], qPrintable(name));  // its charts go on
    }
  }

 private:
  int step(const QString& name) const { return run_.status(name)["training"].toObject()["step"].toInt(); }
  QJsonObject part(const QString& name) const { return run_.rounds(name)["part"].toObject(); }
  // Of each part, as this node knows it.
  std::pair<int, int> holders(const QString& name) const {
    const QJsonArray counts = part(name)["holders"].toArray();
    return {counts.at(0).toInt(), counts.at(1).toInt()};
  }

  RoundsRun run_;
};

NS_TEST(TestRoundsMoves)
#include "test_rounds_moves.moc"
