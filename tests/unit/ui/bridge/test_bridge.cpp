// The bridge between the core's threads and the windows: what it coalesces, whom it calls and when it no
// longer does.
#include <QSignalSpy>
#include <QtTest>

#include "tests/support/fake_node.h"
#include "tests/support/test_main.h"
#include "ui/bridge/bridge.h"
#include "ui/bridge/bridge_inbox.h"

using namespace neuroshard;  // NOLINT
using testing::FakeNode;
using ui::Bridge;

namespace {

using Result = Expected<node::CommandResult>;

Expected<node::CommandId> contribute(node::Node& node) {
  return node.set_contributing(true);
}

template <class Work>
void on_another_thread(Work work) {
  const std::unique_ptr<QThread> thread(QThread::create(std::move(work)));
  thread->start();
  QVERIFY(thread->wait());
}

}  // namespace

class TestBridge : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init();
  void cleanup();
  void a_thousand_changes_are_one_per_tick();
  void nothing_changes_without_a_tick();
  void the_timer_ticks_ten_times_a_second();
  void steps_are_not_events();
  void the_latest_state_of_a_kind_is_kept_in_order();
  void the_inbox_is_bounded_and_keeps_outcomes();
  void a_command_ends_with_its_outcome_on_this_thread();
  void a_refusal_comes_after_the_call();
  void who_may_look_only_sends_no_command();
  void detached_commands_and_queries_fail_with_a_reason();
  void nothing_is_called_after_the_context_is_gone();
  void a_core_that_goes_ends_what_is_open();
  void an_outcome_that_came_before_the_core_went_is_told();
  void progress_and_cancel_reach_the_command();
  void too_many_commands_are_refused();
  void answers_from_other_threads_arrive_here();
  void age_grows_only_without_a_core();
  void a_callback_may_attach_another_core();

 private:
  ManualClock clock_;
  std::shared_ptr<FakeNode> node_;
  std::unique_ptr<Bridge> bridge_;
};

void TestBridge::init() {
  node_ = std::make_shared<FakeNode>();
  bridge_ = std::make_unique<Bridge>(clock_, nullptr);
  bridge_->attach(node_);
}

void TestBridge::cleanup() {
  bridge_.reset();
  node_.reset();
}

void TestBridge::a_thousand_changes_are_one_per_tick() {
  QSignalSpy changed(bridge_.get(), &Bridge::snapshot_changed);
  on_another_thread([this] {
    for (std::uint64_t step = 1; step <= 1000; ++step) {
      node_->publish([step](node::Snapshot& next) { next.training.step = step; });
      node_->emit(node::StepFinished{});
      node_->emit(node::StateChanged{node::RunState::Training, std::nullopt});
    }
  });
  QCoreApplication::processEvents();
  QCOMPARE(changed.count(), 0);
  bridge_->tick();
  QCOMPARE(changed.count(), 1);
  QCOMPARE(bridge_->snapshot()->training.step, std::uint64_t{1000});
  bridge_->tick();
  QCOMPARE(changed.count(), 1);  // nothing new
}

void TestBridge::nothing_changes_without_a_tick() {
  node_->publish([](node::Snapshot& next) { next.training.step = 7; });
  QCOMPARE(bridge_->snapshot()->training.step, std::uint64_t{0});
}

void TestBridge::the_timer_ticks_ten_times_a_second() {
  Bridge bridge(static_cast<QObject*>(nullptr));
  QVERIFY(Bridge::tick_period >= std::chrono::milliseconds(100));
  bridge.attach(node_);
  QSignalSpy changed(&bridge, &Bridge::snapshot_changed);
  node_->publish([](node::Snapshot& next) { next.training.step = 3; });
  QTRY_COMPARE_WITH_TIMEOUT(changed.count(), 1, 30000);
  bridge.attach(nullptr);
}

void TestBridge::steps_are_not_events() {
  QSignalSpy received(bridge_.get(), &Bridge::event_received);
  node_->emit(node::StepFinished{});
  node_->emit(node::ActivityProgress{});
  node_->emit(node::Prepared{});
  node_->emit(node::CommandDone{77, std::nullopt, {}});  // somebody else's
  bridge_->tick();
  QCOMPARE(received.count(), 0);
}

void TestBridge::the_latest_state_of_a_kind_is_kept_in_order() {
  std::vector<node::Event> seen;
  connect(bridge_.get(), &Bridge::event_received, this,
          [&seen](const node::Event& event) { seen.push_back(event); });
  node_->emit(node::StateChanged{node::RunState::Training, std::nullopt});
  node_->emit(node::AlertRaised{{"disk_low", node::Severity::Warning, "old", {}}});
  node_->emit(node::AlertRaised{{"hot", node::Severity::Warning, "hot", {}}});
  node_->emit(node::SettingChanged{"cpu_threads", "1"});
  node_->emit(node::SettingChanged{"cpu_threads", "2"});
  node_->emit(node::AlertCleared{"disk_low"});
  node_->emit(node::StateChanged{node::RunState::Paused, std::nullopt});
  bridge_->tick();
  QCOMPARE(seen.size(), std::size_t{4});
  QCOMPARE(std::get<node::AlertRaised>(seen[0]).alert.key, std::string("hot"));
  QCOMPARE(std::get<node::SettingChanged>(seen[1]).value, std::string("2"));
  QCOMPARE(std::get<node::AlertCleared>(seen[2]).key, std::string("disk_low"));
  QCOMPARE(std::get<node::StateChanged>(seen[3]).state, node::RunState::Paused);
}

void TestBridge::the_inbox_is_bounded_and_keeps_outcomes() {
  ui::BridgeInbox inbox;
  inbox.begin_call();
  inbox.end_call(5);
  inbox.put(node::CommandDone{5, std::nullopt, {}});
  for (int i = 0; i < 5000; ++i) {
    inbox.put(node::AlertRaised{{"key" + std::to_string(i % 2000), node::Severity::Notice, "", {}}});
    inbox.put(node::CommandDone{1000u + static_cast<node::CommandId>(i), std::nullopt, {}});
    inbox.put(node::CommandProgress{5, "reading", static_cast<std::uint64_t>(i), 0});
  }
  QVERIFY(inbox.waiting() <= ui::BridgeInbox::max_waiting);
  const auto events = inbox.take();
  const auto done = std::count_if(events.begin(), events.end(), [](const node::Event& event) {
    return std::holds_alternative<node::CommandDone>(event);
  });
  QCOMPARE(done, 1);
}

void TestBridge::a_command_ends_with_its_outcome_on_this_thread() {
  std::optional<Result> result;
  bridge_->run(this, contribute, [&](const Result& outcome) {
    QCOMPARE(QThread::currentThread(), qApp->thread());
    QVERIFY(bridge_->snapshot()->contributing);  // never older than the outcome
    result = outcome;
  });
  QVERIFY(!result);  // FakeNode is done at once; the callback still waits for the tick
  bridge_->tick();
  QVERIFY(result && result->ok());
  QCOMPARE(node_->commands(), std::vector<std::string>{"contribute on"});

  node_->hold_commands();
  result.reset();
  bridge_->run(this, contribute, [&](const Result& outcome) { result = outcome; });
  bridge_->tick();
  QVERIFY(!result);
  node_->finish_commands(make_error(ErrorCode::Io, "the disk is full"));
  bridge_->tick();
  QVERIFY(result && !result->ok());
  QCOMPARE(result->error().message, std::string("the disk is full"));
}

void TestBridge::a_refusal_comes_after_the_call() {
  node_->refuse(make_error(ErrorCode::Busy, "one at a time"));
  std::optional<Result> result;
  bridge_->run(this, contribute, [&](const Result& outcome) { result = outcome; });
  QVERIFY(!result);
  QTRY_VERIFY(result.has_value());
  QCOMPARE(result->error().code, ErrorCode::Busy);
}

void TestBridge::who_may_look_only_sends_no_command() {
  bridge_->attach(node_, /*may_steer=*/false);
  QVERIFY(bridge_->attached() && !bridge_->may_steer());
  bool sent = false;
  std::optional<ErrorCode> code;
  bridge_->run(
      nullptr,
      [&](node::Node& node) {
        sent = true;
        return contribute(node);
      },
      [&](const auto& result) { code = result.error().code; });
  QTRY_VERIFY(code.has_value());
  QCOMPARE(*code, ErrorCode::Denied);
  QVERIFY(!sent);
  bridge_->attach(node_);
  QVERIFY(bridge_->may_steer());
}

void TestBridge::detached_commands_and_queries_fail_with_a_reason() {
  bridge_->attach(nullptr);
  std::optional<Result> command;
  std::optional<Expected<node::Series>> series;
  bridge_->run(this, contribute, [&](const Result& outcome) { command = outcome; });
  bridge_->query<node::Series>(
      this,
      [](node::Node& node, auto reply) {
        return node.query_series({"loss", 0, 0, 10}, std::move(reply));
      },
      [&](const Expected<node::Series>& answer) { series = answer; });
  QVERIFY(!command && !series);
  QTRY_VERIFY(command && series);
  QCOMPARE(command->error().code, ErrorCode::Unavailable);
  QCOMPARE(series->error().code, ErrorCode::Unavailable);
  QVERIFY(!command->error().message.empty());
}

void TestBridge::nothing_is_called_after_the_context_is_gone() {
  int calls = 0;
  {
    QObject context;
    node_->hold_commands();
    bridge_->run(
        &context, contribute, [&](const Result&) { ++calls; },
        [&](const node::CommandProgress&) { ++calls; });
    bridge_->query<node::Series>(
        &context,
        [](node::Node& node, auto reply) {
          return node.query_series({"loss", 0, 0, 10}, std::move(reply));
        },
        [&](const Expected<node::Series>&) { ++calls; });
  }
  node_->emit(node::CommandProgress{node_->held("contribute"), "reading", 1, 2});
  node_->finish_commands();
  bridge_->tick();
  {
    QObject context;
    bridge_->attach(nullptr);
    bridge_->run(&context, contribute, [&](const Result&) { ++calls; });
  }
  QCoreApplication::processEvents();
  QCOMPARE(calls, 0);
}

void TestBridge::a_core_that_goes_ends_what_is_open() {
  node_->hold_commands();
  std::optional<Result> result;
  bridge_->run(this, contribute, [&](const Result& outcome) { result = outcome; });
  std::optional<Expected<int>> answer;
  bridge_->query<int>(
      this, [](node::Node&, node::Reply<int>) { return Expected<void>(); },  // never answers
      [&](const Expected<int>& value) { answer = value; });
  QSignalSpy attached(bridge_.get(), &Bridge::attached_changed);
  bridge_->attach(nullptr);
  QCOMPARE(attached.count(), 1);
  QVERIFY(!result && !answer);
  QTRY_VERIFY(result && answer);
  QCOMPARE(result->error().code, ErrorCode::Unavailable);
  QCOMPARE(answer->error().code, ErrorCode::Unavailable);
  QVERIFY(bridge_->snapshot() != nullptr);  // still to be shown, dimmed
  // Events of the old core reach nobody now.
  QSignalSpy received(bridge_.get(), &Bridge::event_received);
  node_->emit(node::StateChanged{});
  bridge_->tick();
  QCOMPARE(received.count(), 0);
}

void TestBridge::an_outcome_that_came_before_the_core_went_is_told() {
  std::optional<Result> result;
  QSignalSpy received(bridge_.get(), &Bridge::event_received);
  bridge_->run(
      this, [](node::Node& node) { return node.request_shutdown(); },
      [&](const Result& outcome) { result = outcome; });
  node_->emit(node::Ended{});
  bridge_->attach(nullptr);
  QTRY_VERIFY(result.has_value());
  QVERIFY(result->ok());
  QCOMPARE(received.count(), 1);
}

void TestBridge::progress_and_cancel_reach_the_command() {
  node_->hold_commands();
  std::vector<std::uint64_t> shown;
  std::optional<Result> result;
  const quint64 ticket = bridge_->run(
      this, contribute, [&](const Result& outcome) { result = outcome; },
      [&](const node::CommandProgress& progress) { shown.push_back(progress.done); });
  const node::CommandId id = node_->held("contribute on");
  QVERIFY(id != 0);
  for (std::uint64_t i = 1; i <= 50; ++i) node_->progress(id, "reading", i, 50);
  node_->emit(node::CommandProgress{id + 1000, "somebody else's", 1, 1});
  bridge_->tick();
  QCOMPARE(shown, std::vector<std::uint64_t>{50});
  bridge_->cancel(ticket + 100);  // of nobody
  bridge_->tick();
  QVERIFY(!result);
  bridge_->cancel(ticket);
  bridge_->tick();
  QVERIFY(result && !result->ok());
  QCOMPARE(result->error().code, ErrorCode::Cancelled);
}

void TestBridge::too_many_commands_are_refused() {
  node_->hold_commands();
  int refused = 0;
  for (std::size_t i = 0; i < Bridge::max_open_commands + 5; ++i) {
    bridge_->run(this, contribute, [&](const Result& outcome) {
      if (!outcome.ok() && outcome.error().code == ErrorCode::Busy) ++refused;
    });
  }
  QCoreApplication::processEvents();
  QCOMPARE(refused, 5);
}

void TestBridge::answers_from_other_threads_arrive_here() {
  node::Reply<int> reply;
  std::optional<Expected<int>> answer;
  bridge_->query<int>(
      this,
      [&reply](node::Node&, node::Reply<int> later) {
        reply = std::move(later);
        return Expected<void>();
      },
      [&](const Expected<int>& value) {
        QCOMPARE(QThread::currentThread(), qApp->thread());
        answer = value;
      });
  on_another_thread([&reply] { reply(42); });
  QVERIFY(!answer);
  QTRY_VERIFY(answer.has_value());
  QCOMPARE(**answer, 42);
  // An answer after the bridge's end touches nothing.
  bridge_->query<int>(
      this,
      [&reply](node::Node&, node::Reply<int> later) {
        reply = std::move(later);
        return Expected<void>();
      },
      [&](const Expected<int>&) { QFAIL("called after the end"); });
  bridge_.reset();
  on_another_thread([&reply] { reply(43); });
  QCoreApplication::processEvents();
}

void TestBridge::age_grows_only_without_a_core() {
  clock_.advance(std::chrono::seconds(60));
  QCOMPARE(bridge_->age(), std::chrono::milliseconds(0));
  bridge_->attach(nullptr);
  clock_.advance(std::chrono::seconds(5));
  QCOMPARE(bridge_->age(), std::chrono::milliseconds(5000));
  bridge_->attach(node_);
  QCOMPARE(bridge_->age(), std::chrono::milliseconds(0));
}

void TestBridge::a_callback_may_attach_another_core() {
  auto other = std::make_shared<FakeNode>();
  other->publish([](node::Snapshot& next) { next.program.pid = 99; });
  int events = 0;
  connect(bridge_.get(), &Bridge::event_received, this, [&](const node::Event&) {
    ++events;
    bridge_->attach(other);
  });
  node_->emit(node::StateChanged{});
  node_->emit(node::AlertRaised{});
  bridge_->tick();
  QCOMPARE(events, 1);
  QCOMPARE(bridge_->snapshot()->program.pid, std::uint64_t{99});
}

NS_TEST(TestBridge)
#include "test_bridge.moc"
