// The tray's text in each of its six states; unknown is a dash, never a number.
#include <QSet>
#include <QtTest>

#include "core/node/node.h"
#include "tests/support/test_main.h"
#include "ui/text/snooze.h"
#include "ui/tray/tray_text.h"

using namespace neuroshard;      // NOLINT
using namespace neuroshard::ui;  // NOLINT

class TestTrayText : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() { Q_INIT_RESOURCE(icons); }
  void six_states_have_six_icons();
  void every_reason_is_told();
  void a_snooze_has_an_end_only_while_contributing_is_on();
  void idle_says_what_ended_the_training();
  void unknown_is_a_dash();
  void a_core_that_does_not_answer();
  void tomorrow_is_the_next_morning();
  void finish_says_what_it_completes();

 private:
  static constexpr WallTime now_{std::chrono::milliseconds(1'700'000'000'000)};
  TrayView view(const node::Snapshot& snapshot) {
    return TrayWords::describe(&snapshot, true, std::nullopt, now_);
  }
};

void TestTrayText::six_states_have_six_icons() {
  QSet<QString> icons;
  node::Snapshot snapshot;
  snapshot.state = node::RunState::Training;
  icons << tray_icon_name(view(snapshot).display);
  snapshot.alerts.push_back({"disk_low", node::Severity::Warning, "nearly full", {}});
  icons << tray_icon_name(view(snapshot).display);
  snapshot.alerts.clear();
  for (const auto state :
       {node::RunState::Idle, node::RunState::Paused, node::RunState::Starting, node::RunState::Failed}) {
    snapshot.state = state;
    icons << tray_icon_name(view(snapshot).display);
  }
  QCOMPARE(icons.size(), 6);
  for (const QString& icon : icons) QVERIFY2(QFile::exists(":/icons/" + icon + ".svg"), qPrintable(icon));
}

void TestTrayText::every_reason_is_told() {
  node::Snapshot snapshot;
  snapshot.state = node::RunState::Paused;
  snapshot.pause_reasons.push_back({"battery", "on battery, 40 %", std::nullopt, true});
  snapshot.pause_reasons.push_back({"metered", "the network is metered", std::nullopt, true});
  const TrayView both = view(snapshot);
  QVERIFY2(both.tooltip.contains("on battery, 40 %") && both.tooltip.contains("the network is metered"),
           qPrintable(both.tooltip));
  QVERIFY(both.status.startsWith("Paused"));
}

void TestTrayText::a_snooze_has_an_end_only_while_contributing_is_on() {
  node::Snapshot snapshot;
  snapshot.state = node::RunState::Paused;
  snapshot.snoozed_until = now_ + std::chrono::minutes(30);
  snapshot.pause_reasons = {{"snooze", "snoozed", snapshot.snoozed_until, false}};
  QVERIFY2(view(snapshot).status.startsWith("Snoozed"), qPrintable(view(snapshot).status));
  snapshot.contributing = false;
  const node::PauseReason user{"user", "you switched contributing off", std::nullopt, false};
  snapshot.pause_reasons.insert(snapshot.pause_reasons.begin(), user);
  QVERIFY2(view(snapshot).status.startsWith("Paused: you switched contributing off"),
           qPrintable(view(snapshot).status));
  const StateText pill = StateWords::describe(&snapshot, true, std::nullopt, now_);
  QVERIFY2(pill.reason.startsWith("you switched contributing off"), qPrintable(pill.reason));
}

void TestTrayText::idle_says_what_ended_the_training() {
  node::Snapshot snapshot;
  snapshot.state = node::RunState::Idle;
  QCOMPARE(view(snapshot).status, QString("Idle: nothing to train on yet"));
  snapshot.training.step = 204;
  QCOMPARE(view(snapshot).status, QString("Idle: stopped after step 204"));
  snapshot.training.target_step = 300;  // it was stopped before its goal
  QCOMPARE(view(snapshot).status, QString("Idle: stopped after step 204"));
  snapshot.training.step = 300;
  QCOMPARE(view(snapshot).status, QString("Idle: the goal of 300 steps is reached"));
}

void TestTrayText::unknown_is_a_dash() {
  node::Snapshot snapshot;
  const TrayView unknown = view(snapshot);
  QVERIFY2(unknown.tooltip.contains(QString::fromUtf8("Loss —")), qPrintable(unknown.tooltip));
  QVERIFY(unknown.tooltip.contains(QString::fromUtf8("Earned today —")));
  snapshot.training.smoothed_loss = 3.2149;
  QVERIFY(view(snapshot).tooltip.contains("3.215"));
}

void TestTrayText::a_core_that_does_not_answer() {
  const TrayView starting =
      TrayWords::describe(nullptr, false, CoreLife{DisplayState::Syncing, "Starting", {}}, now_);
  QCOMPARE(starting.display, DisplayState::Syncing);
  QCOMPARE(starting.status, QString("Starting"));
  // The pill in the window says the same, as calmly.
  const StateText pill =
      StateWords::describe(nullptr, false, CoreLife{DisplayState::Syncing, "Starting", {}}, now_);
  QCOMPARE(pill.word, QString("Starting"));
  QCOMPARE(pill.tone, Tone::Info);
  QCOMPARE(StateWords::describe(nullptr, false, std::nullopt, now_).tone, Tone::Danger);
  node::Snapshot old;
  old.state = node::RunState::Training;
  old.training.smoothed_loss = 2;
  const TrayView crashed = TrayWords::describe(
      &old, false, CoreLife{DisplayState::Error, "Needs attention", "The core crashed"}, now_);
  QCOMPARE(crashed.display, DisplayState::Error);
  QVERIFY(crashed.tooltip.contains("The core crashed"));
  QVERIFY(crashed.tooltip.contains(QString::fromUtf8("Loss —")));  // what was, is not what is
}

void TestTrayText::tomorrow_is_the_next_morning() {
  const QDateTime evening(QDate(2026, 11, 21), QTime(22, 15), Qt::LocalTime);
  const auto until = Snooze::until_tomorrow(WallTime(std::chrono::milliseconds(evening.toMSecsSinceEpoch())));
  QCOMPARE(evening.addSecs(until.count()), QDateTime(QDate(2026, 11, 22), QTime(6, 0), Qt::LocalTime));
  const QDateTime night(QDate(2026, 11, 22), QTime(0, 5), Qt::LocalTime);
  QVERIFY(Snooze::until_tomorrow(WallTime(std::chrono::milliseconds(night.toMSecsSinceEpoch()))) <
          node::max_snooze);
}

// With others the round, because they count on it; else the step.
void TestTrayText::finish_says_what_it_completes() {
  node::Snapshot snapshot;
  snapshot.state = node::RunState::Training;
  snapshot.finishing = true;
  QCOMPARE(StateWords::finish_action(nullptr), QString("Finish this step, then stop"));
  QCOMPARE(StateWords::finish_action(&snapshot), QString("Finish this step, then stop"));
  QVERIFY(view(snapshot).tooltip.contains("stops after this step"));
  snapshot.rounds.taking_part = snapshot.rounds.member = true;
  snapshot.rounds.members = 1;
  QCOMPARE(StateWords::finish_action(&snapshot), QString("Finish this step, then stop"));
  snapshot.rounds.members = 3;
  QCOMPARE(StateWords::finish_action(&snapshot), QString("Finish this round, then stop"));
  QVERIFY(view(snapshot).tooltip.contains("stops after this round"));
}

NS_TEST(TestTrayText)
#include "test_tray_text.moc"
