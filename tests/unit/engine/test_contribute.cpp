// The contribute rules in the engine: sensors that a test sets, a clock that it moves, a session that only
// counts.
#include <QDeadlineTimer>
#include <QElapsedTimer>
#include <QTemporaryDir>
#include <QtTest>
#include <atomic>
#include <mutex>

#include "core/engine/contribute_state.h"
#include "core/engine/engine.h"
#include "core/engine/training_data.h"
#include "core/engine/training_history.h"
#include "tests/support/test_main.h"
#include "tests/unit/crypto/counting_entropy.h"
#include "tests/unit/engine/counting_session.h"
#include "tests/unit/engine/event_recorder.h"
#include "tests/unit/engine/jumping_clock.h"
#include "tests/unit/engine/no_sync_file_env.h"

using namespace neuroshard;          // NOLINT
using namespace neuroshard::engine;  // NOLINT
using contribute::MachineReadings;

namespace {

constexpr int long_time = 20'000;  // ms; only a failing test waits so long

struct FakeSensors final : contribute::MachineSensors {
  MachineReadings read(const std::vector<std::string>& programs) override {
    if (hang) {
      hanging = true;
      const QDeadlineTimer deadline(long_time);
      while (hang && !deadline.hasExpired()) QThread::yieldCurrentThread();
    }
    std::lock_guard lock(mutex);
    asked = programs;
    return values;
  }
  void set(MachineReadings now) {
    std::lock_guard lock(mutex);
    values = std::move(now);
  }
  std::vector<std::string> last_asked() {
    std::lock_guard lock(mutex);
    return asked;
  }
  std::atomic<bool> hang{false}, hanging{false};
  std::mutex mutex;
  MachineReadings values;
  std::vector<std::string> asked;
};

QString keys(const node::Node& node) {
  QStringList list;
  const auto now = node.snapshot();
  for (const node::PauseReason& reason : now->pause_reasons) list += QString::fromStdString(reason.key);
  return list.join(' ');
}
node::SensorView sensor(const node::Node& node, const char* key) {
  const auto now = node.snapshot();
  for (const node::SensorView& view : now->sensors) {
    if (view.key == key) return view;
  }
  return {};
}

}  // namespace

class TestContribute : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init();
  void battery_pauses_with_a_checkpoint_and_mains_goes_on();
  void a_setting_takes_effect_at_once();
  void run_anyway_and_its_end();
  void schedule_ends_run_anyway();
  void a_session_reports_and_goes();
  void listed_programs_are_looked_for();
  void snooze_and_run_anyway_survive_a_restart();
  void a_clock_set_back_makes_neither_longer();
  void a_sensor_does_not_interrupt_a_text_during_a_pause();
  void limits_change_with_idleness();
  void safe_mode_trains_nothing_and_answers();
  void a_hanging_sensor_holds_nothing_up();
  void a_hanging_sensor_does_not_hold_up_the_end();
  void training_by_hand_ignores_the_rules();
  void alerts_of_the_caller_are_raised();
  void state_file_data();
  void state_file();

 private:
  struct How {
    bool remember = true, safe = false;
    std::vector<node::Alert> alerts = {};
  };
  std::unique_ptr<Engine> start(How how = {true, false, {}}) {
    config::DataDirectoryOptions options;
    options.path = folder_->filePath("d").toStdString();
    options.environment = nullptr;
    auto directory = config::DataDirectory::open(options, {files_, entropy_, clock_, logger_});
    if (!directory.ok()) qFatal("%s", directory.error().describe().c_str());
    EngineOptions engine;
    engine.version = "test";
    engine.remember_contributing = how.remember;
    engine.safe_mode = how.safe;
    engine.alerts = how.alerts;
    engine.sensors = sensors_;
    engine.sensor_period = std::chrono::milliseconds(1);
    engine.resource_period = std::chrono::milliseconds(2);
    engine.make_session = [this](config::DataDirectory&,
                                 TrainingServices s) -> Expected<std::unique_ptr<TrainingSession>> {
      return std::unique_ptr<TrainingSession>(std::make_unique<testing::CountingSession>(script_, s.history));
    };
    auto node = Engine::start(std::move(*directory), {files_, clock_, logger_}, std::move(engine));
    if (!node->start_training({}).ok()) qFatal("training was refused");
    return node;
  }
  static MachineReadings power(bool on_battery, std::uint32_t percent) {
    MachineReadings readings;
    readings.power = MachineReadings::Power{on_battery, percent};
    return readings;
  }

  std::unique_ptr<QTemporaryDir> folder_;
  testing::NoSyncFileEnv files_;
  test::CountingEntropy entropy_;
  testing::JumpingClock clock_;
  NullLogger logger_;
  testing::Script script_;
  std::shared_ptr<FakeSensors> sensors_;
};

#define WAIT(condition) QTRY_VERIFY_WITH_TIMEOUT(condition, long_time)
#define WAIT_STATE(node, wanted) WAIT((node)->snapshot()->state == node::RunState::wanted)

void TestContribute::init() {
  folder_ = std::make_unique<QTemporaryDir>();
  sensors_ = std::make_shared<FakeSensors>();
  script_.steps = 0;
  script_.threads = 99;
  script_.sessions = script_.saved = 0;
  script_.fail_prepare = script_.hold_prepare = false;
}

void TestContribute::battery_pauses_with_a_checkpoint_and_mains_goes_on() {
  sensors_->set(power(false, 80));
  const auto node = start();
  WAIT(script_.steps > 2);
  WAIT(sensor(*node, "battery").value == "on mains power, 80 %");  // the sensors have a thread of their own
  sensors_->set(power(true, 79));
  WAIT_STATE(node, Paused);
  QCOMPARE(keys(*node), QString("battery"));
  QVERIFY(node->snapshot()->contributing);  // the switch is not touched
  QVERIFY(node->snapshot()->pause_reasons[0].can_override);
  QCOMPARE(script_.saved, 1);
  const std::uint64_t steps = script_.steps;
  sensors_->set(power(false, 79));
  WAIT(sensor(*node, "battery").note.find("a few more seconds") != std::string::npos);
  QCOMPARE(node->snapshot()->state, node::RunState::Paused);
  clock_.jump(contribute::settle_time);
  WAIT(script_.steps > steps);
  QCOMPARE(keys(*node), QString());
}

void TestContribute::a_setting_takes_effect_at_once() {
  sensors_->set(power(true, 30));
  const auto node = start();
  WAIT_STATE(node, Paused);
  QVERIFY(node->set_setting("pause_on_battery", "never").ok());
  WAIT_STATE(node, Training);
  QVERIFY(node->set_setting("pause_on_battery", "low").ok());
  WAIT_STATE(node, Paused);
  QVERIFY(node->set_setting("battery_low_percent", "20").ok());
  clock_.jump(contribute::settle_time * 2);
  // The band: low until 25 per cent, and there are 30.
  WAIT_STATE(node, Training);
  const auto refused = node->set_setting("schedule", "mon 8-25");
  QVERIFY(!refused.ok());
  QVERIFY2(refused.error().message.find("schedule") != std::string::npos, refused.error().message.c_str());
}

void TestContribute::run_anyway_and_its_end() {
  sensors_->set(power(true, 30));
  const auto node = start();
  WAIT_STATE(node, Paused);
  QVERIFY(node->override_rules(std::chrono::hours(2)).ok());
  WAIT_STATE(node, Training);
  QVERIFY(node->snapshot()->overridden_until.has_value());
  WAIT(sensor(*node, "battery").note.find("run anyway") != std::string::npos);
  clock_.jump(std::chrono::hours(2));
  WAIT_STATE(node, Paused);
  WAIT(!node->snapshot()->overridden_until);
  QVERIFY(node->override_rules(std::chrono::hours(1)).ok());
  WAIT_STATE(node, Training);
  QVERIFY(node->override_rules(std::chrono::seconds(0)).ok());
  WAIT_STATE(node, Paused);
  // The person's own pause holds.
  QVERIFY(node->override_rules(std::chrono::hours(1)).ok());
  QVERIFY(node->set_contributing(false).ok());
  WAIT(keys(*node) == "user");
  QVERIFY(!node->override_rules(std::chrono::hours(24 * 8)).ok());
}

void TestContribute::schedule_ends_run_anyway() {
  const auto node = start();
  WAIT(script_.steps > 1);
  QVERIFY(node->set_setting("schedule", "never").ok());
  WAIT_STATE(node, Paused);
  QCOMPARE(keys(*node), QString("schedule"));
  // Every other hour: whatever the time is now, the next change is less than two hours away.
  QString text = "daily ";
  for (int hour = 0; hour < 24; hour += 2)
    text += QString("%1%2-%3").arg(hour ? "," : "").arg(hour).arg(hour + 1);
  QVERIFY(node->set_setting("schedule", text.toStdString()).ok());
  WAIT(sensor(*node, "schedule").value.find("until") != std::string::npos);  // it is in force
  QVERIFY(node->override_rules(std::chrono::hours(20)).ok());
  WAIT(node->snapshot()->overridden_until.has_value());
  const auto left = *node->snapshot()->overridden_until - clock_.wall_now();
  QVERIFY2(left <= std::chrono::hours(1), std::to_string(left.count()).c_str());
}

void TestContribute::a_session_reports_and_goes() {
  const auto node = start();
  WAIT(script_.steps > 1);
  QVERIFY(sensor(*node, "full_screen").value.empty());
  node::SessionSensors session;
  session.full_screen = true;
  session.full_screen_program = "a film";
  QVERIFY(node->report_session(session).ok());
  WAIT_STATE(node, Paused);
  QCOMPARE(keys(*node), QString("full_screen"));
  QVERIFY(node->snapshot()->pause_reasons[0].text.find("a film") != std::string::npos);
  clock_.jump(node::sensor_lease + std::chrono::seconds(1));  // the app has gone: unknown
  WAIT(sensor(*node, "full_screen").value.empty());
  clock_.jump(contribute::settle_time);
  WAIT_STATE(node, Training);
  // Unknown means in use where that was asked for.
  QVERIFY(node->set_setting("only_when_idle", "on").ok());
  WAIT_STATE(node, Paused);
  QCOMPARE(keys(*node), QString("idle"));
  session = {};
  for (int hours = 3; hours <= 5; ++hours) {
    session.input_idle = std::chrono::hours(hours);
    QVERIFY(node->report_session(session).ok());
    WAIT(sensor(*node, "idle").value == std::to_string(hours) + " h without input");  // it has arrived
    if (hours < 5) clock_.jump(std::chrono::seconds(6));
  }
  WAIT_STATE(node, Training);
}

void TestContribute::listed_programs_are_looked_for() {
  MachineReadings readings;
  readings.running = {{"doom"}};
  sensors_->set(readings);
  const auto node = start();
  WAIT(script_.steps > 1);
  QVERIFY(node->set_setting("pause_for_programs", "vlc,doom").ok());
  WAIT_STATE(node, Paused);
  QCOMPARE(keys(*node), QString("program"));
  const std::vector<std::string> names = {"vlc", "doom"};
  WAIT(sensors_->last_asked() == names);
}

void TestContribute::snooze_and_run_anyway_survive_a_restart() {
  sensors_->set(power(true, 30));
  auto node = start();
  QVERIFY(node->snooze(std::chrono::hours(3)).ok());
  QVERIFY(node->override_rules(std::chrono::hours(1)).ok());
  WAIT(keys(*node) == "snooze");
  const auto until = node->snapshot()->snoozed_until;
  node.reset();
  node = start();
  QCOMPARE(keys(*node), QString("snooze"));
  QVERIFY(node->snapshot()->snoozed_until == until);
  QVERIFY(node->snapshot()->overridden_until.has_value());
  // Contributing on clears the snooze for good.
  QVERIFY(node->set_contributing(true).ok());
  WAIT_STATE(node, Training);
  node.reset();
  node = start();
  QVERIFY(!node->snapshot()->snoozed_until);
  // One that ended while the core was off is over.
  QVERIFY(node->snooze(std::chrono::hours(1)).ok());
  WAIT(keys(*node) == "snooze");
  node.reset();
  clock_.jump(std::chrono::hours(2));
  sensors_->set({});
  node = start();
  WAIT_STATE(node, Training);
}

void TestContribute::a_clock_set_back_makes_neither_longer() {
  constexpr auto asked = std::chrono::hours(1);
  sensors_->set(power(true, 30));
  const auto node = start();
  const auto left = [&](const std::optional<WallTime>& until) {
    return until ? *until - clock_.wall_now() : std::chrono::milliseconds(0);
  };
  WAIT_STATE(node, Paused);
  QVERIFY(node->snooze(asked).ok());
  QVERIFY(node->override_rules(asked).ok());
  WAIT(keys(*node) == "snooze");
  clock_.set_back(std::chrono::hours(5));
  WAIT(left(node->snapshot()->snoozed_until) <= asked);
  WAIT(left(node->snapshot()->overridden_until) <= asked);
  QVERIFY(node->snapshot()->snoozed_until && node->snapshot()->overridden_until);
  clock_.jump(asked);
  WAIT(!node->snapshot()->snoozed_until && !node->snapshot()->overridden_until);
  WAIT(keys(*node) == "battery");
}

// The text loads a model, which takes longer than a change of a sensor's value.
void TestContribute::a_sensor_does_not_interrupt_a_text_during_a_pause() {
  script_.fail_prepare = script_.hold_prepare = true;
  sensors_->set(power(true, 80));
  const auto node = start();
  testing::EventRecorder events(*node);
  WAIT_STATE(node, Paused);
  script_.sessions = 0;
  node::GenerateRequest request;
  request.prompt = "x";
  request.max_tokens = 5;
  const auto text = node->generate(request, {});
  QVERIFY(text.ok());
  WAIT(script_.sessions == 1);
  for (std::uint32_t percent = 79; percent > 75; --percent) {
    sensors_->set(power(true, percent));
    WAIT(sensor(*node, "battery").value.find(std::to_string(percent)) != std::string::npos);
  }
  script_.hold_prepare = false;  // now it fails
  const auto done = events.done(text);
  QVERIFY(done.has_value() && done->error);
  QCOMPARE(done->error->code, ErrorCode::NotFound);
  QCOMPARE(script_.sessions, 1);
}

void TestContribute::limits_change_with_idleness() {
  const auto node = start();
  QVERIFY(node->set_setting("cpu_threads", "1").ok());
  WAIT(script_.threads == 1);
  QVERIFY(node->set_setting("idle_cpu_threads", "2").ok());
  node::SessionSensors session;
  session.input_idle = std::chrono::minutes(5);
  QVERIFY(node->report_session(session).ok());
  WAIT(script_.threads == 2);
  // A model that is made while the computer is idle, too.
  QVERIFY(node->finish().ok());
  WAIT_STATE(node, Idle);
  QVERIFY(node->set_contributing(true).ok());
  WAIT_STATE(node, Training);
  QCOMPARE(node->snapshot()->compute.threads, usable_threads(2));
  session.input_idle = std::chrono::seconds(1);
  QVERIFY(node->report_session(session).ok());
  WAIT(script_.threads == 1);
}

void TestContribute::safe_mode_trains_nothing_and_answers() {
  const auto node = start({true, true, {}});
  WAIT_STATE(node, Paused);
  QVERIFY(node->snapshot()->safe_mode);
  QCOMPARE(keys(*node), QString("safe_mode"));
  QVERIFY(!node->snapshot()->pause_reasons[0].can_override);
  QVERIFY(node->override_rules(std::chrono::hours(1)).ok());
  QVERIFY(node->set_contributing(true).ok());
  std::atomic<bool> answered{false};
  QVERIFY(node->query_checkpoints(
                  {}, [&answered](const Expected<node::CheckpointPage>& page) { answered = page.ok(); })
              .ok());
  WAIT(answered);
  QCOMPARE(node->snapshot()->state, node::RunState::Paused);
  QCOMPARE(script_.sessions, 0);
}

void TestContribute::a_hanging_sensor_holds_nothing_up() {
  sensors_->set(power(true, 50));
  const auto node = start();
  WAIT(keys(*node) == "battery");
  sensors_->hang = true;
  WAIT(sensors_->hanging);
  clock_.jump(contribute::machine_lease + std::chrono::seconds(1));
  WAIT(sensor(*node, "battery").value.empty());
  clock_.jump(contribute::settle_time);
  WAIT_STATE(node, Training);
  QVERIFY(node->set_contributing(false).ok());
  WAIT_STATE(node, Paused);
  sensors_->hang = false;
  WAIT(keys(*node) == "user battery");
}

void TestContribute::a_hanging_sensor_does_not_hold_up_the_end() {
  sensors_->hang = true;
  auto node = start();
  WAIT(sensors_->hanging);
  QVERIFY(node->snooze(std::chrono::hours(3)).ok());
  WAIT(keys(*node) == "snooze");
  QElapsedTimer ending;
  ending.start();
  node.reset();
  QVERIFY(ending.elapsed() < long_time / 2);
  sensors_->hang = false;
  node = start();
  QCOMPARE(keys(*node), QString("snooze"));  // it was saved
}

void TestContribute::training_by_hand_ignores_the_rules() {
  sensors_->set(power(true, 1));
  const auto node = start({false, false, {}});
  WAIT(script_.steps > 100);
  QVERIFY(node->snapshot()->pause_reasons.empty());
  QVERIFY(node->snapshot()->sensors.empty());
}

void TestContribute::alerts_of_the_caller_are_raised() {
  const auto node = start({true, false, {{"crashed", node::Severity::Warning, "it crashed", {}}}});
  QCOMPARE(node->snapshot()->alerts.size(), std::size_t{1});
  QCOMPARE(node->snapshot()->alerts[0].key, std::string("crashed"));
  QVERIFY(to_unix_ms(node->snapshot()->alerts[0].since) > 0);
}

void TestContribute::state_file_data() {
  QTest::addColumn<QByteArray>("text");
  QTest::addColumn<bool>("read");
  QTest::addColumn<bool>("snoozed");
  const std::int64_t now = 1'700'000'000'000, week = 7LL * 24 * 3600 * 1000;
  const auto snooze = [](std::int64_t until) {
    return "{\"snoozed_until_ms\":" + QByteArray::number(until) + ",\"future\":[1]}";
  };
  QTest::newRow("ahead") << snooze(now + 1) << true << true;
  QTest::newRow("over") << snooze(now) << true << false;
  QTest::newRow("a week") << snooze(now + week) << true << true;
  QTest::newRow("absurd") << snooze(now + week + 1) << true << false;
  QTest::newRow("negative") << snooze(-5) << true << false;
  QTest::newRow("text") << QByteArray("{\"snoozed_until_ms\":\"later\"}") << true << false;
  QTest::newRow("list") << QByteArray("[]") << false << false;
  QTest::newRow("cut") << QByteArray("{\"snoozed") << false << false;
  QTest::newRow("empty") << QByteArray() << false << false;
  QTest::newRow("huge") << QByteArray(5000, ' ') << false << false;
}

void TestContribute::state_file() {
  QFETCH(QByteArray, text);
  QFETCH(bool, read);
  QFETCH(bool, snoozed);
  const WallTime now(std::chrono::milliseconds(1'700'000'000'000));
  const std::string given = text.toStdString();
  const auto state = parse_contribute_state(as_bytes(given), now);
  QCOMPARE(state.ok(), read);
  if (!read) return;
  QCOMPARE(state->snoozed_until.has_value(), snoozed);
  const std::string written = format_contribute_state(*state);
  const auto again = parse_contribute_state(as_bytes(written), now);
  QVERIFY(again.ok() && *again == *state);
}

NS_TEST(TestContribute)
#include "test_contribute.moc"
