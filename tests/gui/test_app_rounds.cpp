// The window of a core that trains in rounds with another node: its Training page shows the rounds that the
// core certified.
#include <QAbstractItemModel>
#include <QTableView>

#include "tests/gui/support/app_test.h"
#include "tests/support/rounds_run.h"
#include "tests/support/test_main.h"

using namespace neuroshard;        // NOLINT
using namespace neuroshard::test;  // NOLINT

class TestAppRounds : public AppTest {
  Q_OBJECT
 private Q_SLOTS:
  // The nodes are started later: they need the folders that the app has.
  void init() { fixture_ = std::make_unique<AppFixture>(); }
  void cleanup() { end(); }
  void the_page_shows_the_rounds_of_two_nodes();

 private:
  // A round of both nodes that the page lists and the core's log names.
  int shown_round() {
    const auto* table = fixture_->find<QTableView>("rounds_table");
    if (table == nullptr || !table->isVisible()) return 0;
    const QMap<int, CertifiedRound> certified = run_.certified("b");
    for (int row = 0; row < table->model()->rowCount(); ++row) {
      const int round = table->model()->index(row, 0).data().toString().toInt();
      if (certified.value(round).contributors == 2) return round;
    }
    return 0;
  }

  RoundsRun run_;
};

void TestAppRounds::the_page_shows_the_rounds_of_two_nodes() {
  QCOMPARE(run_.make("window-rounds", "100"), QByteArray());
  QCOMPARE(run_.start("a"), QByteArray());
  QTRY_VERIFY_WITH_TIMEOUT(run_.round("a") >= 1, RoundsRun::patience_ms);
  QCOMPARE(run_.start("b"), QByteArray());
  QVERIFY(run_.together({"a", "b"}));

  // The window of the second node, which runs already.
  gui::UserConfig config(fixture_->places().config_file);
  config.set_data_directory(run_.path("b"), gui::instance_of(run_.path("b")));
  fixture_->start();
  QTRY_VERIFY_WITH_TIMEOUT(fixture_->phase() == gui::CorePhase::Running, RoundsRun::patience_ms);
  QCOMPARE(fixture_->core_pid(), run_.node("b").pid());
  fixture_->app().window().open_page("training");
  QTRY_VERIFY_WITH_TIMEOUT(fixture_->snapshot() && fixture_->snapshot()->rounds.members == 2,
                           RoundsRun::patience_ms);
  QTRY_VERIFY_WITH_TIMEOUT(shown_round() > 0, RoundsRun::patience_ms);
  // And it follows them.
  const int first = shown_round();
  QTRY_VERIFY_WITH_TIMEOUT(shown_round() > first, RoundsRun::patience_ms);
}

NS_UI_TEST(TestAppRounds)
#include "test_app_rounds.moc"
