// "Finish" of a node that trains with others: it completes the round, because they count on its work; asked
// again, paused, or alone it ends with the step. And while its text is missing, it goes along with the rounds.
#include <QTemporaryDir>
#include <QtTest>

#include <algorithm>
#include <atomic>

#include "core/engine/engine.h"
#include "core/engine/round_trainer.h"
#include "tests/support/stored.h"
#include "tests/support/test_main.h"
#include "tests/unit/crypto/counting_entropy.h"
#include "tests/unit/engine/counting_session.h"
#include "tests/unit/engine/event_recorder.h"
#include "tests/unit/engine/no_sync_file_env.h"

using namespace neuroshard;          // NOLINT
using namespace neuroshard::engine;  // NOLINT

namespace {

constexpr int long_time = 20'000;  // ms; only a failing test waits so long
constexpr std::uint32_t inner_steps = 40;

struct OneWeight final : RoundModel {
  std::uint64_t parameters() const override { return 1; }
  const Hash256& tokenizer_hash() const override { return tokenizer; }
  Expected<void> read_weights(std::uint64_t, Span<float> target) override {
    target[0] = weight;
    return {};
  }
  Expected<void> write_weights(std::uint64_t, Span<const float> source) override {
    weight = source[0];
    return {};
  }
  bool fresh_moments() const override { return false; }
  void set_schedule(std::uint64_t, double) override {}
  void synced() override {}
  void set_places(std::vector<RoundPlace>, std::uint64_t) override {}
  const std::vector<RoundPlace>& places() const override { return at; }
  Hash256 tokenizer{};
  std::vector<RoundPlace> at;
  std::atomic<float> weight{1};
};

rounds::RoundLearner::Start start_of(std::uint64_t round, float weight = 1) {
  return {round, test::state_with({weight}), rounds::Carry::Nothing, true};
}

// The state of the rounds, set by the test.
struct Said {
  node::RoundsView view() const {
    node::RoundsView now;
    now.taking_part = now.member = true;
    now.round = round;
    now.members = members;
    now.phase = "training";
    return now;
  }
  std::atomic<std::uint64_t> round{7};
  std::atomic<std::uint32_t> members{3};
};

}  // namespace

#define WAIT(condition) QTRY_VERIFY_WITH_TIMEOUT(condition, long_time)

class TestFinishRound : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init();
  void cleanup();
  void the_round_is_completed();
  void asked_again_it_ends_with_the_step();
  void switched_on_again_it_goes_on();
  void a_pause_ends_it();
  void alone_the_step_is_enough();
  void a_stop_while_it_completes_the_round_holds();
  void a_failure_while_it_completes_the_round_stays();
  void while_the_model_is_made_again_it_ends_at_once();
  void without_text_it_serves_the_rounds_at_once();
  void text_that_is_still_fetched_raises_no_alert();

 private:
  bool trains_on(std::uint64_t from) const { return script_.steps > from + 2; }
  node::RunState state() const { return node_->snapshot()->state; }
  bool has_alert(const char* key) const {
    const auto view = node_->snapshot();
    return std::any_of(view->alerts.begin(), view->alerts.end(),
                       [key](const node::Alert& alert) { return alert.key == key; });
  }

  std::unique_ptr<QTemporaryDir> folder_;
  testing::NoSyncFileEnv files_;
  test::CountingEntropy entropy_;
  SystemClock clock_;
  NullLogger logger_;
  testing::Script script_;
  OneWeight model_;
  std::shared_ptr<Said> said_;
  std::shared_ptr<RoundTrainer> trainer_;
  std::unique_ptr<Engine> node_;
};

// A node in the middle of round 8.
void TestFinishRound::init() {
  folder_ = std::make_unique<QTemporaryDir>();
  said_ = std::make_shared<Said>();
  script_.steps = 0;
  script_.saved = 0;
  script_.fail_at = 0;
  script_.hold_prepare = false;
  script_.step_away = 0;
  script_.step_away_error = ErrorCode::Unavailable;
  script_.round_model = &model_;
  RoundTrainerOptions rounds;
  rounds.inner_steps = inner_steps;
  rounds.longest_rest = std::chrono::milliseconds(1);
  trainer_ = std::make_shared<RoundTrainer>(rounds, std::make_shared<MemorySpool>(), clock_, logger_);
  trainer_->learner().start(start_of(8));
  config::DataDirectoryOptions options;
  options.path = folder_->filePath("d").toStdString();
  options.environment = nullptr;
  auto directory = config::DataDirectory::open(options, {files_, entropy_, clock_, logger_});
  QVERIFY(directory.ok());
  EngineOptions engine;
  engine.version = "test";
  engine.remember_contributing = true;
  engine.resource_period = std::chrono::milliseconds(2);
  engine.text_retry = std::chrono::hours(1);
  engine.rounds = trainer_;
  engine.rounds_view = [said = said_] { return said->view(); };
  engine.make_session = [this](config::DataDirectory&,
                               TrainingServices s) -> Expected<std::unique_ptr<TrainingSession>> {
    return std::unique_ptr<TrainingSession>(std::make_unique<testing::CountingSession>(script_, s.history));
  };
  node_ = Engine::start(std::move(*directory), {files_, clock_, logger_}, std::move(engine));
  QVERIFY(node_->start_training({}).ok());
  WAIT(script_.steps > 2);
}

void TestFinishRound::cleanup() {
  node_.reset();
}

void TestFinishRound::the_round_is_completed() {
  QVERIFY(node_->finish().ok());
  WAIT(node_->snapshot()->finishing);
  QVERIFY(!node_->snapshot()->contributing);
  // All of the round's steps, and then the wait for its certificate.
  WAIT(script_.steps == inner_steps);
  QTest::qWait(50);
  QCOMPARE(state(), node::RunState::Training);
  QVERIFY(node_->snapshot()->pause_reasons.empty());
  said_->round = 8;
  WAIT(state() == node::RunState::Idle);
  QCOMPARE(script_.steps.load(), std::uint64_t{inner_steps});
  QVERIFY(!node_->snapshot()->finishing);
  // It takes up where it was.
  QVERIFY(node_->set_contributing(true).ok());
  trainer_->learner().start(start_of(9));
  WAIT(trains_on(inner_steps));
}

void TestFinishRound::asked_again_it_ends_with_the_step() {
  QVERIFY(node_->finish().ok());
  WAIT(script_.steps == inner_steps);
  QVERIFY(node_->finish().ok());
  WAIT(state() == node::RunState::Idle);
  QCOMPARE(said_->round.load(), std::uint64_t{7});
}

void TestFinishRound::switched_on_again_it_goes_on() {
  QVERIFY(node_->finish().ok());
  WAIT(node_->snapshot()->finishing);
  QVERIFY(node_->set_contributing(true).ok());
  WAIT(!node_->snapshot()->finishing);
  said_->round = 8;
  trainer_->learner().start(start_of(9));
  WAIT(trains_on(inner_steps));
  QCOMPARE(state(), node::RunState::Training);
  QVERIFY(node_->snapshot()->contributing);
}

void TestFinishRound::a_pause_ends_it() {
  QVERIFY(node_->finish().ok());
  WAIT(node_->snapshot()->finishing);
  QVERIFY(node_->snooze(std::chrono::hours(1)).ok());
  WAIT(state() == node::RunState::Idle);
  QVERIFY(!node_->snapshot()->finishing);
  QCOMPARE(said_->round.load(), std::uint64_t{7});
}

void TestFinishRound::alone_the_step_is_enough() {
  said_->members = 1;
  QVERIFY(node_->finish().ok());
  WAIT(state() == node::RunState::Idle);
  QCOMPARE(said_->round.load(), std::uint64_t{7});
}

void TestFinishRound::a_stop_while_it_completes_the_round_holds() {
  QVERIFY(node_->finish().ok());
  WAIT(node_->snapshot()->finishing);
  testing::EventRecorder events(*node_);
  const auto stopped = events.done(node_->stop_training());
  QVERIFY(stopped.has_value() && !stopped->error);
  QVERIFY(events.done(node_->save_checkpoint()).has_value());  // what follows the end has happened
  QCOMPARE(state(), node::RunState::Idle);
  QVERIFY(!node_->snapshot()->finishing);
  QVERIFY(!node_->snapshot()->pause_reasons.empty());
}

void TestFinishRound::a_failure_while_it_completes_the_round_stays() {
  WAIT(script_.steps == inner_steps);
  QVERIFY(node_->finish().ok());
  WAIT(node_->snapshot()->finishing);
  script_.fail_at = inner_steps + 1;
  trainer_->learner().start(start_of(9));
  WAIT(state() == node::RunState::Failed);
  testing::EventRecorder events(*node_);
  // A save is answered at the end of the training at the latest; the second one after it.
  for (int i = 0; i < 2; ++i) QVERIFY(events.done(node_->save_checkpoint()).has_value());
  QCOMPARE(state(), node::RunState::Failed);
  QVERIFY(has_alert("training_failed"));
  QVERIFY(!node_->snapshot()->finishing);
}

void TestFinishRound::while_the_model_is_made_again_it_ends_at_once() {
  const int sessions = script_.sessions;
  script_.hold_prepare = true;
  Hash256 other{};
  other[0] = 1;
  trainer_->want_tokenizer(other);
  WAIT(script_.sessions == sessions + 1);
  testing::EventRecorder events(*node_);
  const auto finished = events.done(node_->finish());
  QVERIFY(finished.has_value() && !finished->error);
  WAIT(state() == node::RunState::Idle);
  script_.hold_prepare = false;
  QVERIFY(node_->set_contributing(true).ok());
  WAIT(state() == node::RunState::Training);
}

void TestFinishRound::without_text_it_serves_the_rounds_at_once() {
  script_.step_away = 1;
  trainer_->learner().start(start_of(9));
  WAIT(node_->snapshot()->training.activity == "waiting for data");
  const std::uint64_t steps = script_.steps;
  trainer_->learner().start(start_of(10, 5));
  WAIT(model_.weight == 5);
  QCOMPARE(node_->snapshot()->training.activity, std::string("waiting for data"));
  QCOMPARE(state(), node::RunState::Training);
  QCOMPARE(script_.steps.load(), steps);
}

// The node looks again soon, however long it waits after an error.
void TestFinishRound::text_that_is_still_fetched_raises_no_alert() {
  script_.step_away_error = ErrorCode::Busy;
  script_.step_away = 1000;
  trainer_->learner().start(start_of(9));
  WAIT(node_->snapshot()->training.activity == "waiting for data");
  QVERIFY(!has_alert("data"));
  QCOMPARE(state(), node::RunState::Training);
  const std::uint64_t steps = script_.steps;
  script_.step_away = 0;
  WAIT(script_.steps > steps);
  WAIT(node_->snapshot()->training.activity != "waiting for data");
  QVERIFY(!has_alert("data"));
}

NS_TEST(TestFinishRound)
#include "test_finish_round.moc"
