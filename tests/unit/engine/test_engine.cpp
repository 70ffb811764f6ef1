// The engine behind the seam, over a session that only counts: commands, events, pause, stop and shutdown.
#include <QtTest>

#include <cmath>
#include <future>

#include "core/engine/engine.h"
#include "tests/support/test_main.h"
#include "tests/unit/crypto/counting_entropy.h"
#include "tests/unit/engine/counting_session.h"
#include "tests/unit/engine/event_recorder.h"
#include "tests/unit/engine/no_sync_file_env.h"

using namespace neuroshard;          // NOLINT
using namespace neuroshard::engine;  // NOLINT
using testing::CountingSession;
using testing::EventRecorder;
using testing::Script;

class TestEngine : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init();
  void cleanup();
  void trains_the_steps_asked_for_and_evaluates_the_last();
  void a_loss_that_is_no_number_is_forgotten();
  void continues_to_a_step();
  void stop_is_obeyed_within_a_step_and_saves();
  void pause_saves_and_goes_on();
  void snooze_ends_by_itself_and_with_the_switch();
  void pause_before_the_model_is_ready();
  void switch_is_remembered_when_asked_to();
  void forced_switch_is_refused();
  void finish_ends_and_the_switch_takes_it_up();
  void end_is_the_last_event();
  void checkpoint_on_demand();
  void failed_preparation_is_told_and_can_be_repeated();
  void waits_for_its_text_data();
  void waits_for_its_text();
  void an_alert_of_missing_text_stays_while_it_is_fetched();
  void a_wait_for_text_ends_with_a_pause_or_a_stop();
  void only_text_is_waited_for();
  void failed_step_saves_what_there_is();
  void failed_final_checkpoint_is_told();
  void a_later_end_that_saves_takes_the_failed_one_back();
  void an_end_without_a_model_takes_nothing_back();
  void alerts_of_steps_end();
  void second_training_is_refused();
  void shutdown_refuses_what_comes_after();
  void destruction_is_a_clean_stop();
  void settings_change_between_steps();
  void queries_answer_with_and_without_a_session();
  void bad_arguments_are_refused_at_once();

 private:
  std::unique_ptr<Engine> start(bool remember = false, const char* contribute_flag = nullptr,
                                Duration text_retry = std::chrono::seconds(5)) {
    config::DataDirectoryOptions options;
    if (contribute_flag != nullptr) options.setting_flags = {{config::Setting::Contribute, contribute_flag}};
    options.path = folder_->filePath("d").toStdString();
    options.environment = nullptr;
    auto directory = config::DataDirectory::open(options, {files_, entropy_, clock_, logger_});
    if (!directory.ok()) qFatal("%s", directory.error().describe().c_str());
    EngineOptions engine;
    engine.version = "test";
    engine.remember_contributing = remember;
    engine.text_retry = text_retry;
    engine.make_session = [this](config::DataDirectory&,
                                 TrainingServices s) -> Expected<std::unique_ptr<TrainingSession>> {
      return std::unique_ptr<TrainingSession>(std::make_unique<CountingSession>(script_, s.history));
    };
    return Engine::start(std::move(*directory), {files_, clock_, logger_}, std::move(engine));
  }

  std::unique_ptr<QTemporaryDir> folder_;
  testing::NoSyncFileEnv files_;
  test::CountingEntropy entropy_;
  SystemClock clock_;
  NullLogger logger_;
  Script script_;
};

void TestEngine::init() {
  folder_ = std::make_unique<QTemporaryDir>();
  script_.steps = 0;
  script_.saved = script_.finished = script_.sessions = 0;
  script_.fail_at = script_.infinite_at = script_.alerts_at = 0;
  script_.fail_prepare = script_.fail_finish = script_.hold = false;
  script_.prepare_error = ErrorCode::NotFound;
  script_.prepare_away = script_.step_away = 0;
  script_.step_away_error = ErrorCode::Unavailable;
}

void TestEngine::cleanup() {
  folder_.reset();
}

void TestEngine::trains_the_steps_asked_for_and_evaluates_the_last() {
  const auto engine = start();
  EventRecorder events(*engine);
  QCOMPARE(engine->snapshot()->state, node::RunState::Idle);
  QVERIFY(engine->start_training({.text_path = "text", .steps = 5}).ok());
  for (std::uint64_t step = 1; step <= 5; ++step) {
    const auto finished = events.wait<node::StepFinished>();
    QVERIFY(finished.has_value());
    QCOMPARE(finished->step.step, step);
    QCOMPARE(finished->step.tokens, 10 * step);
    QCOMPARE(finished->evaluation.has_value(), step == 5);
  }
  QVERIFY(events.state(node::RunState::Idle));
  const auto view = engine->snapshot();
  QCOMPARE(view->training.step, std::uint64_t{5});
  QCOMPARE(view->training.last_evaluation->loss, 1.5);
  QCOMPARE(script_.finished.load(), 1);
  QCOMPARE(view->program.network, std::string("solo"));
  QCOMPARE(view->identity.node_id.size(), std::size_t{64});
  QVERIFY(node::encoded_bytes(*view) <= node::max_snapshot_bytes);
}

void TestEngine::a_loss_that_is_no_number_is_forgotten() {
  script_.infinite_at = 2;
  const auto engine = start();
  EventRecorder events(*engine);
  QVERIFY(engine->start_training({.text_path = "text", .steps = 3}).ok());
  QVERIFY(events.wait<node::StepFinished>().has_value());
  QVERIFY(events.state(node::RunState::Idle));
  const auto loss = engine->snapshot()->training.smoothed_loss;
  QVERIFY(loss && std::isfinite(*loss) && *loss < 5);
}

void TestEngine::continues_to_a_step() {
  script_.steps = 7;
  const auto engine = start();
  EventRecorder events(*engine);
  QVERIFY(engine->start_training({.text_path = {}, .until_step = 9}).ok());
  QCOMPARE(events.wait<node::Prepared>()->step, std::uint64_t{7});
  QVERIFY(events.state(node::RunState::Idle));
  QCOMPARE(script_.steps.load(), std::uint64_t{9});
  // Already there: nothing to do.
  QVERIFY(engine->start_training({.text_path = {}, .until_step = 9}).ok());
  QVERIFY(events.state(node::RunState::Idle));
  QCOMPARE(script_.steps.load(), std::uint64_t{9});
}

void TestEngine::stop_is_obeyed_within_a_step_and_saves() {
  script_.hold = true;  // the step would never end by itself
  const auto engine = start();
  EventRecorder events(*engine);
  QVERIFY(engine->start_training({}).ok());
  QVERIFY(events.state(node::RunState::Training));
  const auto done = events.done(engine->stop_training());
  QVERIFY(done.has_value() && !done->error);
  QCOMPARE(script_.finished.load(), 1);
  QCOMPARE(engine->snapshot()->state, node::RunState::Idle);
}

void TestEngine::pause_saves_and_goes_on() {
  const auto engine = start();
  EventRecorder events(*engine);
  QVERIFY(engine->start_training({}).ok());
  QVERIFY(events.wait<node::StepFinished>().has_value());
  QVERIFY(engine->set_contributing(false).ok());
  QVERIFY(events.state(node::RunState::Paused));
  const std::uint64_t paused_at = script_.steps;
  QCOMPARE(script_.saved.load(), 1);
  QVERIFY(!engine->snapshot()->pause_reasons.empty());
  QVERIFY(!engine->snapshot()->contributing);
  QVERIFY(engine->set_contributing(true).ok());
  const auto next = events.wait<node::StepFinished>();
  QVERIFY(next.has_value());
  QCOMPARE(next->step.step, paused_at + 1);
  QVERIFY(engine->snapshot()->pause_reasons.empty());
}

void TestEngine::snooze_ends_by_itself_and_with_the_switch() {
  const auto engine = start();
  EventRecorder events(*engine);
  QVERIFY(engine->start_training({}).ok());
  QVERIFY(events.wait<node::StepFinished>().has_value());
  QCOMPARE(engine->snooze(std::chrono::seconds(0)).error().code, ErrorCode::InvalidArgument);
  QCOMPARE(engine->snooze(node::max_snooze + std::chrono::seconds(1)).error().code,
           ErrorCode::InvalidArgument);
  QVERIFY(engine->snooze(std::chrono::seconds(1)).ok());
  QVERIFY(events.state(node::RunState::Paused));
  const auto view = engine->snapshot();
  QVERIFY(view->contributing);  // the switch is not touched
  QVERIFY(view->snoozed_until > view->taken - std::chrono::seconds(1));
  QVERIFY(view->pause_reasons.at(0).text.find("snoozed until") != std::string::npos);
  QVERIFY(events.state(node::RunState::Training));
  QVERIFY(!engine->snapshot()->snoozed_until);
  // Reasons add up, and contributing on ends both.
  QVERIFY(engine->snooze(std::chrono::hours(1)).ok());
  QVERIFY(engine->set_contributing(false).ok());
  QVERIFY(events.state(node::RunState::Paused));
  const auto both = events.done(engine->set_contributing(false));
  QVERIFY(both.has_value());
  QCOMPARE(engine->snapshot()->pause_reasons.size(), std::size_t{2});
  QVERIFY(engine->set_contributing(true).ok());
  QVERIFY(events.state(node::RunState::Training));
  QVERIFY(engine->snapshot()->pause_reasons.empty());
}

void TestEngine::pause_before_the_model_is_ready() {
  const auto engine = start();
  EventRecorder events(*engine);
  QVERIFY(events.done(engine->set_contributing(false)).has_value());
  const auto started = events.done(engine->start_training({.text_path = {}, .steps = 2}));
  QVERIFY(started.has_value() && !started->error);  // not left open for the length of the pause
  QTRY_COMPARE(engine->snapshot()->state, node::RunState::Paused);
  QCOMPARE(script_.sessions.load(), 0);  // nothing was loaded
  QVERIFY(engine->set_contributing(true).ok());
  QVERIFY(events.wait<node::Prepared>().has_value());
  QVERIFY(events.state(node::RunState::Idle));
  QCOMPARE(script_.steps.load(), std::uint64_t{2});
}

void TestEngine::switch_is_remembered_when_asked_to() {
  {
    const auto engine = start(/*remember=*/true);
    EventRecorder events(*engine);
    QVERIFY(engine->snapshot()->contributing);
    const auto off = events.done(engine->set_contributing(false));
    QVERIFY(off.has_value() && !off->error);
  }
  {
    const auto engine = start(/*remember=*/true);
    EventRecorder events(*engine);
    QVERIFY(!engine->snapshot()->contributing);
    QVERIFY(!engine->snapshot()->pause_reasons.empty());
    QVERIFY(engine->start_training({}).ok());
    QVERIFY(events.state(node::RunState::Paused));
    QVERIFY(events.done(engine->set_setting("contribute", "on")).has_value());
    QVERIFY(events.wait<node::StepFinished>().has_value());
  }
  QVERIFY(start(/*remember=*/true)->snapshot()->contributing);
}

void TestEngine::forced_switch_is_refused() {
  const auto engine = start(/*remember=*/true, "off");
  QVERIFY(!engine->snapshot()->contributing);
  const auto refused = engine->set_contributing(true);
  QCOMPARE(refused.error().code, ErrorCode::Denied);
  QVERIFY(refused.error().message.find("--contribute") != std::string::npos);
}

void TestEngine::finish_ends_and_the_switch_takes_it_up() {
  const auto engine = start(/*remember=*/true);
  EventRecorder events(*engine);
  QVERIFY(engine->start_training({.text_path = "text", .until_step = 100'000'000}).ok());
  QVERIFY(events.wait<node::StepFinished>().has_value());
  const auto done = events.done(engine->finish());
  QVERIFY(done.has_value() && !done->error);
  QCOMPARE(script_.finished.load(), 1);
  QCOMPARE(engine->snapshot()->state, node::RunState::Idle);
  QVERIFY(!engine->snapshot()->contributing);
  const std::uint64_t steps = script_.steps;
  QVERIFY(events.done(engine->set_contributing(true)).has_value());
  QCOMPARE(events.wait<node::StepFinished>()->step.step, steps + 1);
  QCOMPARE(engine->snapshot()->training.target_step, std::uint64_t{100'000'000});
  QCOMPARE(script_.sessions.load(), 2);
  // A stopped, unfinished training stays stopped.
  QVERIFY(events.done(engine->stop_training()).has_value());
  QVERIFY(events.done(engine->set_contributing(true)).has_value());
  QCOMPARE(engine->snapshot()->state, node::RunState::Idle);
}

void TestEngine::end_is_the_last_event() {
  auto engine = start();
  EventRecorder events(*engine);
  QVERIFY(engine->start_training({}).ok());
  QVERIFY(events.wait<node::StepFinished>().has_value());
  const auto id = engine->request_shutdown();
  QVERIFY(events.done(id).has_value());
  const auto ended = events.wait<node::Ended>();
  QVERIFY(ended.has_value() && !ended->error);
}

void TestEngine::checkpoint_on_demand() {
  const auto engine = start();
  EventRecorder events(*engine);
  const auto nothing = events.done(engine->save_checkpoint());
  QCOMPARE(nothing->error->code, ErrorCode::NotFound);
  QVERIFY(engine->start_training({}).ok());
  QVERIFY(events.wait<node::StepFinished>().has_value());
  const auto saved = events.done(engine->save_checkpoint());
  QVERIFY(saved.has_value() && !saved->error);
  QCOMPARE(engine->snapshot()->checkpoint.newest, std::string("saved"));
}

void TestEngine::failed_preparation_is_told_and_can_be_repeated() {
  script_.fail_prepare = true;
  const auto engine = start();
  EventRecorder events(*engine);
  const auto done = events.done(engine->start_training({}));
  QCOMPARE(done->error->code, ErrorCode::NotFound);
  const auto failed = events.wait<node::StateChanged>();
  QCOMPARE(failed->state, node::RunState::Failed);
  QVERIFY(failed->error->message.find("--text") != std::string::npos);
  QVERIFY(!engine->snapshot()->alerts.empty());
  script_.fail_prepare = false;
  QVERIFY(engine->start_training({.text_path = {}, .steps = 1}).ok());
  QVERIFY(events.state(node::RunState::Idle));
  QVERIFY(engine->snapshot()->alerts.empty());
}

void TestEngine::waits_for_its_text_data() {
  QTest::addColumn<bool>("prepared");
  QTest::newRow("before the model is prepared") << false;
  QTest::newRow("between two steps") << true;
}

void TestEngine::waits_for_its_text() {
  QFETCH(const bool, prepared);
  (prepared ? script_.step_away : script_.prepare_away) = 2;
  const auto engine = start(false, nullptr, std::chrono::milliseconds(1));
  EventRecorder events(*engine);
  QVERIFY(engine->start_training({.text_path = {}, .steps = 1}).ok());
  const auto raised = events.wait<node::AlertRaised>();
  QVERIFY(raised.has_value());
  QCOMPARE(raised->alert.key, std::string("data"));
  QVERIFY(raised->alert.message.find("not reachable") != std::string::npos);
  const auto last = events.wait<node::StateChanged>([](const node::StateChanged& event) {
    return event.state == node::RunState::Idle || event.state == node::RunState::Failed;
  });
  QVERIFY(last.has_value());
  QCOMPARE(last->state, node::RunState::Idle);
  QCOMPARE(script_.steps.load(), std::uint64_t{1});
  QCOMPARE(script_.sessions.load(), prepared ? 1 : 3);
  QVERIFY(engine->snapshot()->alerts.empty());
  QVERIFY(engine->snapshot()->training.activity.empty());
}

void TestEngine::an_alert_of_missing_text_stays_while_it_is_fetched() {
  constexpr int many = 1'000'000;
  script_.step_away = many;
  const auto engine = start(false, nullptr, std::chrono::milliseconds(1));
  EventRecorder events(*engine);
  QVERIFY(engine->start_training({.text_path = {}, .steps = 1}).ok());
  QVERIFY(events.wait<node::AlertRaised>().has_value());
  script_.step_away_error = ErrorCode::Busy;
  const int tries = script_.step_away;
  QTRY_VERIFY_WITH_TIMEOUT(script_.step_away < tries - 5, 20'000);
  QCOMPARE(engine->snapshot()->alerts.size(), std::size_t{1});
  QVERIFY(engine->snapshot()->alerts[0].message.find("can't be fetched") != std::string::npos);
  script_.step_away = 0;
  QVERIFY(events.wait<node::StepFinished>().has_value());
  QVERIFY(events.state(node::RunState::Idle));
  QVERIFY(engine->snapshot()->alerts.empty());
}

void TestEngine::a_wait_for_text_ends_with_a_pause_or_a_stop() {
  script_.step_away = 1;
  const auto engine = start(false, nullptr, std::chrono::hours(1));
  EventRecorder events(*engine);
  QVERIFY(engine->start_training({}).ok());
  QVERIFY(events.wait<node::AlertRaised>().has_value());
  QCOMPARE(engine->snapshot()->training.activity, std::string("waiting for data"));
  const auto saved = events.done(engine->save_checkpoint());
  QVERIFY(saved.has_value() && !saved->error);
  QVERIFY(engine->set_contributing(false).ok());
  QVERIFY(events.state(node::RunState::Paused));
  QVERIFY(engine->snapshot()->alerts.empty());
  QVERIFY(engine->set_contributing(true).ok());
  QVERIFY(events.wait<node::StepFinished>().has_value());  // at once
  script_.step_away = 1000;
  QVERIFY(events.wait<node::AlertRaised>().has_value());
  const auto done = events.done(engine->stop_training());
  QVERIFY(done.has_value() && !done->error);
  QCOMPARE(engine->snapshot()->state, node::RunState::Idle);
  QCOMPARE(script_.finished.load(), 1);
  QVERIFY(engine->snapshot()->alerts.empty());
}

void TestEngine::only_text_is_waited_for() {
  script_.fail_prepare = true;
  script_.prepare_error = ErrorCode::Unavailable;  // as of a compute module that can't be loaded
  const auto engine = start();
  EventRecorder events(*engine);
  const auto done = events.done(engine->start_training({}));
  QVERIFY(done.has_value() && done->error);
  QCOMPARE(done->error->code, ErrorCode::Unavailable);
  QVERIFY(events.state(node::RunState::Failed));
}

void TestEngine::failed_step_saves_what_there_is() {
  script_.fail_at = 3;
  const auto engine = start();
  EventRecorder events(*engine);
  QVERIFY(engine->start_training({}).ok());
  const auto failed = events.wait<node::StateChanged>(
      [](const node::StateChanged& event) { return event.state == node::RunState::Failed; });
  QCOMPARE(failed->error->code, ErrorCode::Corrupt);
  QVERIFY(events.done(engine->request_shutdown()).has_value());
  QCOMPARE(script_.finished.load(), 1);
  QCOMPARE(script_.steps.load(), std::uint64_t{2});
}

void TestEngine::failed_final_checkpoint_is_told() {
  script_.fail_finish = true;
  const auto engine = start();
  EventRecorder events(*engine);
  QVERIFY(engine->start_training({}).ok());
  QVERIFY(events.wait<node::StepFinished>().has_value());
  const auto done = events.done(engine->request_shutdown());
  QCOMPARE(done->error->code, ErrorCode::Exhausted);
}

void TestEngine::a_later_end_that_saves_takes_the_failed_one_back() {
  script_.fail_finish = true;
  const auto engine = start();
  EventRecorder events(*engine);
  QVERIFY(engine->start_training({.text_path = {}, .steps = 1}).ok());
  QVERIFY(events.state(node::RunState::Failed));
  QCOMPARE(engine->snapshot()->alerts.size(), std::size_t{1});
  QCOMPARE(engine->snapshot()->alerts[0].key, std::string("checkpoint"));
  script_.fail_finish = false;
  QVERIFY(engine->start_training({.text_path = {}, .steps = 1}).ok());
  QVERIFY(events.state(node::RunState::Idle));
  QVERIFY(engine->snapshot()->alerts.empty());
  const auto done = events.done(engine->request_shutdown());
  QVERIFY(done.has_value() && !done->error);
}

// The training is stopped before its model is ready, so the steps of the first one are still lost.
void TestEngine::an_end_without_a_model_takes_nothing_back() {
  script_.fail_finish = true;
  const auto engine = start(false, nullptr, std::chrono::hours(1));
  EventRecorder events(*engine);
  QVERIFY(engine->start_training({.text_path = {}, .steps = 1}).ok());
  QVERIFY(events.state(node::RunState::Failed));
  script_.fail_finish = false;
  script_.prepare_away = 1000;
  QVERIFY(events.done(engine->start_training({.text_path = {}, .steps = 1})).has_value());
  QVERIFY(events.done(engine->stop_training()).has_value());
  QCOMPARE(engine->snapshot()->alerts.size(), std::size_t{1});
  QCOMPARE(engine->snapshot()->alerts[0].key, std::string("checkpoint"));
  const auto done = events.done(engine->request_shutdown());
  QVERIFY(done.has_value() && done->error);
  QCOMPARE(done->error->code, ErrorCode::Exhausted);
}

// By a change of the setting, by a loss that was measured, and at the latest with the next training.
void TestEngine::alerts_of_steps_end() {
  script_.alerts_at = 1;
  const auto engine = start();
  EventRecorder events(*engine);
  const auto alerts = [&engine] {
    QStringList keys;
    const auto view = engine->snapshot();
    for (const node::Alert& alert : view->alerts) keys << QString::fromStdString(alert.key);
    return keys.join(' ');
  };
  QVERIFY(engine->start_training({.text_path = {}, .steps = 2}).ok());  // the second step is evaluated
  QVERIFY(events.state(node::RunState::Idle));
  QCOMPARE(alerts(), QString("memory cpu_threads disk_limit"));
  QVERIFY(events.done(engine->set_setting("max_micro_batch", "4")).has_value());
  QCOMPARE(alerts(), QString("cpu_threads disk_limit"));
  QVERIFY(events.done(engine->set_setting("cpu_threads", "1")).has_value());
  QVERIFY(events.done(engine->set_setting("idle_cpu_threads", "1")).has_value());
  QVERIFY(events.done(engine->set_setting("disk_limit", "")).has_value());  // as it was
  QCOMPARE(alerts(), QString("disk_limit"));
  QVERIFY(events.done(engine->set_setting("disk_limit", "1GiB")).has_value());
  QCOMPARE(alerts(), QString());
  script_.alerts_at = 3;
  QVERIFY(engine->start_training({.text_path = {}, .steps = 1}).ok());
  QVERIFY(events.state(node::RunState::Idle));
  QCOMPARE(alerts(), QString("memory cpu_threads disk_limit train"));
  QVERIFY(engine->start_training({.text_path = {}, .steps = 1}).ok());
  QVERIFY(events.state(node::RunState::Idle));
  QCOMPARE(alerts(), QString());
}

void TestEngine::second_training_is_refused() {
  script_.hold = true;
  const auto engine = start();
  EventRecorder events(*engine);
  QVERIFY(engine->start_training({}).ok());
  const auto second = events.done(engine->start_training({}));
  QCOMPARE(second->error->code, ErrorCode::Busy);
}

void TestEngine::shutdown_refuses_what_comes_after() {
  const auto engine = start();
  EventRecorder events(*engine);
  QVERIFY(engine->start_training({}).ok());
  QVERIFY(events.wait<node::StepFinished>().has_value());
  QVERIFY(events.done(engine->request_shutdown()).has_value());
  QCOMPARE(script_.finished.load(), 1);
  QCOMPARE(engine->start_training({}).error().code, ErrorCode::Cancelled);
  QCOMPARE(engine->request_shutdown().error().code, ErrorCode::Cancelled);
  QCOMPARE(engine->query_settings([](auto) {}).error().code, ErrorCode::Cancelled);
}

void TestEngine::destruction_is_a_clean_stop() {
  script_.hold = true;
  {
    const auto engine = start();
    EventRecorder events(*engine);
    QVERIFY(engine->start_training({}).ok());
    QVERIFY(events.state(node::RunState::Training));
  }
  QCOMPARE(script_.finished.load(), 1);
  // The directory is free again.
  const auto again = start();
  QCOMPARE(again->snapshot()->state, node::RunState::Idle);
}

void TestEngine::settings_change_between_steps() {
  const auto engine = start();
  EventRecorder events(*engine);
  QVERIFY(engine->start_training({}).ok());
  QVERIFY(events.state(node::RunState::Training));
  const auto id = engine->set_setting("memory_limit", "2GiB");
  const auto changed = events.wait<node::SettingChanged>();
  QCOMPARE(changed->name, std::string("memory_limit"));
  QCOMPARE(changed->value, std::string("2GiB"));
  QVERIFY(events.done(id).has_value());
  QCOMPARE(engine->snapshot()->resources.memory_limit_bytes, std::uint64_t{2} << 30);
}

void TestEngine::queries_answer_with_and_without_a_session() {
  const auto engine = start();
  EventRecorder events(*engine);
  for (const bool training : {false, true}) {
    if (training) {
      QVERIFY(engine->start_training({}).ok());
      QVERIFY(events.wait<node::StepFinished>().has_value());
      script_.hold = true;  // the compute thread is busy from now on: nobody waits for it
    }
    std::promise<Expected<node::Series>> series;
    QVERIFY(
        engine->query_series({.name = "loss", .buckets = 10}, [&](auto answer) { series.set_value(answer); })
            .ok());
    QVERIFY(series.get_future().get().ok());
    std::promise<Expected<node::LogPage>> logs;
    QVERIFY(engine->query_logs({}, [&](auto answer) { logs.set_value(answer); }).ok());
    QVERIFY(logs.get_future().get().ok());
    std::promise<Expected<node::CheckpointPage>> checkpoints;
    QVERIFY(engine->query_checkpoints({}, [&](auto answer) { checkpoints.set_value(answer); }).ok());
    QVERIFY(checkpoints.get_future().get().ok());
    std::promise<Expected<std::vector<node::SettingEntry>>> settings;
    QVERIFY(engine->query_settings([&](auto answer) { settings.set_value(answer); }).ok());
    QCOMPARE(settings.get_future().get()->size(), config::setting_count);
  }
}

void TestEngine::bad_arguments_are_refused_at_once() {
  const auto engine = start();
  QCOMPARE(engine->start_training({.text_path = {}, .steps = 1, .until_step = 2}).error().code,
           ErrorCode::InvalidArgument);
  QCOMPARE(engine->set_setting("colour", "red").error().code, ErrorCode::NotFound);
  QCOMPARE(engine->set_setting("cpu_threads", "red").error().code, ErrorCode::InvalidArgument);
  QCOMPARE(engine->query_series({.name = "loss", .buckets = 0}, [](auto) {}).error().code,
           ErrorCode::InvalidArgument);
  QCOMPARE(engine->query_logs({.limit = 1'000'000}, [](auto) {}).error().code, ErrorCode::InvalidArgument);
}

NS_TEST(TestEngine)
#include "test_engine.moc"
