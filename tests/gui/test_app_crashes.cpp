// The app when its core dies: killed, it is reported and started again, and training goes on; killed three
// times, the core comes up in safe mode, and leaves it on request. A real core with a small network.
#include <QtTest>

#include "tests/gui/support/app_test.h"
#include "tests/support/test_main.h"

using namespace neuroshard;        // NOLINT
using namespace neuroshard::test;  // NOLINT

class TestAppCrashes : public AppTest {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() { prepare(); }
  void init() { begin(); }
  void cleanup() { end(); }
  void a_killed_core_is_reported_and_started_again();
  void three_crashes_lead_to_safe_mode();

 private:
  bool another_runs(std::int64_t than) {
    return fixture_->phase() == gui::CorePhase::Running && fixture_->core_pid() != than;
  }
};

void TestAppCrashes::a_killed_core_is_reported_and_started_again() {
  QVERIFY(start_running());
  // The first step was made in the lab.
  NS_WAIT_FOR(patience_, fixture_->step() >= 3);
  const std::int64_t first = fixture_->core_pid();
  kill_now(first);
  NS_WAIT_FOR(patience_, fixture_->banners().contains("crashed"));
  NS_WAIT_FOR(patience_, another_runs(first));
  NS_WAIT_FOR(patience_, fixture_->banners().contains("was restarted"));
  QVERIFY(fixture_->app().bridge().attached());
  QVERIFY(!fixture_->app().supervisor().status().safe_mode);
  // From the last checkpoint, and on.
  NS_WAIT_FOR(patience_, fixture_->snapshot()->state == node::RunState::Training && fixture_->step() >= 3);
  NS_WAIT_FOR(patience_, fixture_->pill().contains("Training"));

  // Closed, the message stays away until the next crash.
  auto* told = fixture_->find<ui::Banner>("banner_core_life");
  QVERIFY(told != nullptr);
  Q_EMIT told->closed();
  NS_WAIT_FOR(patience_, !fixture_->banners().contains("was restarted"));
  QVERIFY(fixture_->app().supervisor().status().dismissed);
  Q_EMIT fixture_->app().supervisor().status_changed();
  QVERIFY(!fixture_->banners().contains("was restarted"));
  const std::int64_t second = fixture_->core_pid();
  kill_now(second);
  NS_WAIT_FOR(patience_, another_runs(second));
  NS_WAIT_FOR(patience_, fixture_->banners().contains("was restarted"));
}

void TestAppCrashes::three_crashes_lead_to_safe_mode() {
  QVERIFY(start_running());
  for (int i = 0; i < 3; ++i) {
    const std::int64_t pid = fixture_->core_pid();
    kill_now(pid);
    NS_WAIT_FOR(patience_, another_runs(pid));
  }
  QVERIFY(fixture_->app().supervisor().status().safe_mode);
  NS_WAIT_FOR(patience_, fixture_->snapshot()->safe_mode);
  NS_WAIT_FOR(patience_, fixture_->banners().contains("Safe mode"));
  NS_WAIT_FOR(patience_, fixture_->pill().contains("Safe mode"));
  const QJsonObject status = fixture_->core({"status"});
  QVERIFY(status["safe_mode"].toBool());
  QVERIFY(status["state"].toString() != "training");
  QVERIFY(fixture_->press_banner("Restart normally"));
  NS_WAIT_FOR(patience_, fixture_->phase() == gui::CorePhase::Running && !fixture_->snapshot()->safe_mode);
  QVERIFY2(!fixture_->banners().contains("Safe mode"), qPrintable(fixture_->banners()));
  NS_WAIT_FOR(patience_, fixture_->snapshot()->state == node::RunState::Training);
}

NS_UI_TEST(TestAppCrashes)
#include "test_app_crashes.moc"
