// Real processes of a network whose model grows and shrinks with its members' memory: three nodes, then a fourth with more, one of
// them killed while the model changes, and back down when all offer less.
#include <QTest>
#include <algorithm>

#include "tests/support/rounds_run.h"
#include "tests/support/test_main.h"
#include "tests/support/until.h"

using namespace neuroshard::test;  // NOLINT
using neuroshard::testing::seen_once;

namespace {

const QStringList first_names{"a", "b", "c"}, all_names{"a", "b", "c", "d"};
constexpr int small = 2, large = 4;  // layers

}  // namespace

class TestRoundsSizes : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() {
    run_.founder = "a";
    run_.grows = true;
    run_.model = RoundsRun::model_of_two_layers();
    // Three offer 3 GB together, and four 6 GB: half as much again as 3.5 GB.
    const QByteArray trouble =
        run_.make("sizes", "60", {"--grow-to", "4x32@1GB/3.5GB", "--block-time-s", "1"});
    QVERIFY2(trouble.isEmpty(), trouble.constData());
  }

  void three_nodes_train_the_first_size() {
    for (const QString& name : first_names) QCOMPARE(limit(name, "1GiB"), QByteArray());
    QCOMPARE(run_.start_all(first_names), QByteArray());
    QVERIFY(run_.together(first_names, 6));
    for (const QString& name : first_names) QCOMPARE(layers(name), small);
  }

  // Killed in the middle, it has the old model or the new one, and goes on with the network's.
  void a_fourth_with_more_memory_makes_it_grow() {
    const double before = loss("a");
    QCOMPARE(limit("d", "3GiB"), QByteArray());
    QCOMPARE(run_.start("d"), QByteArray());
    const auto changing = [this] {
      return run_.log("b").contains("the members' memory asks for a larger model");
    };
    QVERIFY2(seen_once(changing, RoundsRun::patience_ms), run_.log_tail("b").constData());
    run_.node("b").kill_now();
    QCOMPARE(run_.start("b"), QByteArray());
    QVERIFY2(all_have(large), run_.log_tail("b").constData());
    QVERIFY(run_.together(all_names, run_.round("a") + 2));
    for (const QString& name : all_names) {
      const QJsonObject seen = run_.rounds(name);
      QVERIFY2(seen["corruptions"].toInt() == 0 && seen["agrees"].toBool(), qPrintable(text_of(seen)));
    }
    // It continues what was learned: a new model of this vocabulary has a loss of 5.7.
    const double after = loss("a");
    QVERIFY2(before < 5.5 && after < before + 0.1, qPrintable(QString("%1, then %2").arg(before).arg(after)));
    // The one before is kept.
    const ProcessResult kept = run_node({"checkpoint", "list", "--json", "--data-dir", run_.path("a")});
    QVERIFY2(kept.out.contains("\"pinned\":true"), kept.text().constData());
  }

  void it_shrinks_when_all_offer_less() {
    for (const QString& name : all_names) QCOMPARE(limit(name, "500MB"), QByteArray());
    QVERIFY2(all_have(small), run_.log_tail("a").constData());
    const auto goes_on = [this, round = run_.round("a")] {
      return std::all_of(all_names.begin(), all_names.end(), [&](const QString& name) {
        const QJsonObject seen = run_.rounds(name);
        return seen["round"].toInt() > round + 2 && seen["agrees"].toBool();
      });
    };
    QVERIFY2(seen_once(goes_on, RoundsRun::patience_ms), run_.log_tail("a").constData());
  }

 private:
  // A node that runs offers no more from then on. Empty: it is set.
  QByteArray limit(const QString& name, const QString& memory) const {
    const ProcessResult set =
        run_node({"set", "memory_limit", memory, "--data-dir", run_.path(name), "--profile", run_.profile()});
    return set.ok() ? QByteArray() : set.text();
  }
  int layers(const QString& name) const {
    return run_.rounds(name)["memory"].toObject()["present"].toObject()["layers"].toInt();
  }
  double loss(const QString& name) const {
    return run_.status(name)["training"].toObject()["loss"].toDouble();
  }
  bool all_have(int wanted) {
    const auto have = [&] {
      return std::all_of(all_names.begin(), all_names.end(),
                         [&](const QString& name) { return layers(name) == wanted; });
    };
    if (seen_once(have, RoundsRun::patience_ms)) return true;
    for (const QString& name : all_names)
      qWarning().noquote() << name << run_.node(name).errors_so_far() << text_of(run_.rounds(name))
                           << run_.crashes(name) << run_.log_tail(name);
    return false;
  }

  RoundsRun run_;
};

NS_TEST(TestRoundsSizes)
#include "test_rounds_sizes.moc"
