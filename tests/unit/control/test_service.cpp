// The control service over real loopback gRPC: hello, versions, the snapshot stream, events, commands,
// questions, and what a client says when the core goes away and comes back.
#include <QtTest>
#include <future>

#include "core/control/detail/convert.h"
#include "tests/support/test_main.h"
#include "tests/unit/control/control_fixture.h"

using namespace neuroshard;        // NOLINT
using namespace neuroshard::test;  // NOLINT

class TestControlService : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init();
  void cleanup() { fixture_.reset(); }
  void hello_names_both_sides();
  void newer_minor_is_welcome_and_another_major_is_told_what_to_do();
  void snapshot_arrives_whole_and_then_changes();
  void numbers_without_a_name_are_kept();
  void unknown_fields_are_kept_by_a_change();
  void events_arrive_in_order();
  void commands_reach_the_node_and_their_outcome_comes_back();
  void a_refused_shutdown_is_told_to_the_program();
  void refusal_is_told_with_its_code();
  void snapshot_is_never_older_than_the_outcome();
  void command_of_a_core_that_ends_is_not_left_open();
  void series_and_pages();
  void a_core_whose_clock_is_wrong_is_reached();
  void reconnects_to_a_new_core();
  void control_file_is_private_and_goes_away();
  void a_removed_control_file_is_written_again();

 private:
  std::unique_ptr<ControlFixture> fixture_;
};

void TestControlService::init() {
  fixture_ = std::make_unique<ControlFixture>();
  QVERIFY(fixture_->start().ok());
}

void TestControlService::hello_names_both_sides() {
  const auto remote = fixture_->connect();
  QVERIFY(remote != nullptr);
  const control::LinkView link = remote->link();
  QCOMPARE(link.state, control::LinkState::Connected);
  QVERIFY(link.control == control::version);
  QCOMPARE(link.build, std::string("1.2.3"));
  QCOMPARE(link.format, 7u);
  QCOMPARE(link.pid, std::uint64_t{4321});
  QVERIFY(!link.capabilities.empty());
}

void TestControlService::newer_minor_is_welcome_and_another_major_is_told_what_to_do() {
  const auto newer_minor = control::connect(fixture_->options({1, control::version.minor + 1}));
  QVERIFY(newer_minor->wait_connected(std::chrono::seconds(20), {}).ok());

  const auto newer = control::connect(fixture_->options({2, 0}));
  const auto refused = newer->wait_connected(std::chrono::seconds(20), {});
  QCOMPARE(refused.error().code, ErrorCode::Unsupported);
  QVERIFY(refused.error().message.find("start the installed, newer one") != std::string::npos);
  QCOMPARE(newer->link().state, control::LinkState::Refused);

  fixture_->server.reset();
  QVERIFY(fixture_->start({}, {2, 0}).ok());
  const auto older = control::connect(fixture_->options());
  const auto upgrade = older->wait_connected(std::chrono::seconds(20), {});
  QVERIFY(upgrade.error().message.find("upgrade this program") != std::string::npos);

  // A client that ignores the hello is refused by every other call.
  grpc::ClientContext context;
  fixture_->sign(&context);
  wire::CommandReply reply;
  const auto status = fixture_->raw()->Command(&context, wire::CommandRequest(), &reply);
  QCOMPARE(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

void TestControlService::snapshot_arrives_whole_and_then_changes() {
  fixture_->node.publish([](node::Snapshot& next) {
    next.state = node::RunState::Training;
    next.identity.node_id = std::string(64, 'a');
    next.program.network = "solo";
    next.snoozed_until = WallTime(std::chrono::milliseconds(1'700'000'000'123));
    next.training.last_step = node::StepView{7, 1.25, 1e-3, 0.5, 700, 1000.5, 1.1, 4, 0.1, 0.6, 0.2, 0.1};
    next.training.last_evaluation = node::EvaluationView{5, 2.5, std::nullopt};
    next.alerts = {{"disk_low", node::Severity::Warning, "only little is left", {}}};
  });
  const auto remote = fixture_->connect();
  QVERIFY(remote != nullptr);
  auto view = remote->snapshot();
  QCOMPARE(view->state, node::RunState::Training);
  QCOMPARE(view->identity.node_id, std::string(64, 'a'));
  QCOMPARE(to_unix_ms(*view->snoozed_until), std::int64_t{1'700'000'000'123});
  QCOMPARE(view->training.last_step->tokens_per_second, 1000.5);
  QVERIFY(!view->training.smoothed_loss);
  QVERIFY(!view->training.last_evaluation->bits_per_byte);
  QCOMPARE(view->alerts.size(), std::size_t{1});

  fixture_->node.publish([](node::Snapshot& next) {
    next.training.step = 8;
    next.training.last_step->step = 8;
    next.alerts.clear();
    next.snoozed_until.reset();
  });
  QVERIFY(until([&] { return remote->snapshot()->training.step == 8; }));
  view = remote->snapshot();
  QVERIFY(view->alerts.empty());
  QVERIFY(!view->snoozed_until);
  QCOMPARE(view->program.network, std::string("solo"));  // what did not change is still there
}

void TestControlService::numbers_without_a_name_are_kept() {
  fixture_->node.publish([](node::Snapshot& next) { next.state = static_cast<node::RunState>(77); });
  const auto remote = fixture_->connect();
  QCOMPARE(static_cast<int>(remote->snapshot()->state), 77);
  QCOMPARE(to_string(remote->snapshot()->state), std::string_view("unknown"));
}

void TestControlService::unknown_fields_are_kept_by_a_change() {
  // A newer core's first message: layers = 6 in a model that also has a field 900.
  wire::Snapshot whole;
  whole.set_full(true);
  const std::string newer("\x08\x06\xa0\x38\x2a", 5);
  QVERIFY(whole.mutable_model()->ParseFromString(newer));
  wire::Snapshot change;
  change.mutable_training()->set_step(9);
  control::detail::merge(std::move(change), &whole);
  QCOMPARE(whole.model().SerializeAsString(), newer);
  QCOMPARE(control::detail::decode(whole).model.layers, 6u);
  QCOMPARE(control::detail::decode(whole).training.step, std::uint64_t{9});
}

void TestControlService::events_arrive_in_order() {
  const auto remote = fixture_->connect();
  Events events(*remote);
  fixture_->node.emit(
      node::StateChanged{node::RunState::Failed, make_error(ErrorCode::Corrupt, "no number")});
  fixture_->node.emit(node::CheckpointWritten{"0000000001-aa"});
  fixture_->node.emit(node::CommandDone{99, std::nullopt, {}});  // somebody else's: not sent
  fixture_->node.emit(node::StepFinished{node::StepView{3}, node::EvaluationView{3, 1.5, 0.7}});
  fixture_->node.emit(node::Ended{});
  QVERIFY(until([&] { return !events.all<node::Ended>().empty(); }));
  const auto states = events.all<node::StateChanged>();
  QCOMPARE(states.size(), std::size_t{1});
  QCOMPARE(states[0].error->code, ErrorCode::Corrupt);
  QCOMPARE(states[0].error->message, std::string("no number"));
  QCOMPARE(events.all<node::CheckpointWritten>()[0].name, std::string("0000000001-aa"));
  QCOMPARE(*events.all<node::StepFinished>()[0].evaluation->bits_per_byte, 0.7);
  QVERIFY(events.all<node::CommandDone>().empty());
}

void TestControlService::commands_reach_the_node_and_their_outcome_comes_back() {
  const auto remote = fixture_->connect();
  const Events events(*remote);
  for (const auto& sent :
       {remote->start_training({"text", 5, 0}), remote->stop_training(), remote->set_contributing(true),
        remote->snooze(std::chrono::seconds(90)), remote->finish(), remote->save_checkpoint(),
        remote->set_setting("cpu_threads", "2"), remote->request_shutdown()}) {
    QVERIFY(sent.ok());
    const auto done = events.done(*sent);
    QVERIFY(done.has_value() && !done->error);
  }
  auto reached = fixture_->node.commands();
  std::vector<std::string> expected{"train text 5 0", "stop training", "contribute on",     "snooze 90",
                                    "finish",         "save",          "set cpu_threads 2", "shutdown"};
  std::sort(reached.begin(), reached.end());  // eight calls at once: the order is theirs
  std::sort(expected.begin(), expected.end());
  QCOMPARE(reached, expected);
  QCOMPARE(fixture_->asked_to_end.load(), 1);
}

// As by a node that ends to start anew.
void TestControlService::a_refused_shutdown_is_told_to_the_program() {
  fixture_->node.refuse(Error{ErrorCode::Cancelled, "the node is shutting down already", ""});
  const auto remote = fixture_->connect();
  const Events events(*remote);
  QCOMPARE(events.done(*remote->save_checkpoint())->error->code, ErrorCode::Cancelled);
  QCOMPARE(fixture_->asked_to_end.load(), 0);
  QCOMPARE(events.done(*remote->request_shutdown())->error->code, ErrorCode::Cancelled);
  QCOMPARE(fixture_->asked_to_end.load(), 1);
}

void TestControlService::refusal_is_told_with_its_code() {
  fixture_->node.refuse(Error{ErrorCode::Busy, "training is under way already", "starting"});
  const auto remote = fixture_->connect();
  const Events events(*remote);
  const auto done = events.done(*remote->start_training({}));
  QCOMPARE(done->error->code, ErrorCode::Busy);
  QCOMPARE(done->error->describe(), std::string("starting: training is under way already"));
  // An accepted command can fail later.
  fixture_->node.refuse({});
  fixture_->node.hold_commands();
  const auto save = remote->save_checkpoint();
  QVERIFY(until([&] { return fixture_->node.commands().size() == 1; }));
  fixture_->node.finish_commands(make_error(ErrorCode::Exhausted, "the disk is full"));
  QCOMPARE(events.done(*save)->error->code, ErrorCode::Exhausted);
}

void TestControlService::snapshot_is_never_older_than_the_outcome() {
  const auto remote = fixture_->connect();
  const Events events(*remote);
  for (int i = 0; i < 20; ++i) {
    const bool on = i % 2 == 1;
    QVERIFY(events.done(*remote->set_contributing(on)).has_value());
    QCOMPARE(remote->snapshot()->contributing, on);
  }
}

void TestControlService::command_of_a_core_that_ends_is_not_left_open() {
  const auto remote = fixture_->connect();
  const Events events(*remote);
  fixture_->node.hold_commands();
  const auto finish = remote->finish();
  QVERIFY(until([&] { return fixture_->node.commands().size() == 1; }));
  fixture_->server.reset();
  const auto done = events.done(*finish);
  QVERIFY(done.has_value());
  QCOMPARE(done->error->code, ErrorCode::Unavailable);
  QVERIFY(until([&] { return remote->link().state == control::LinkState::Lost; }));
  QCOMPARE(remote->finish().error().code, ErrorCode::Unavailable);
  QVERIFY(remote->link().error->message.size() > 0);
  QCOMPARE(remote->snapshot()->program.version, std::string("fake"));  // the last one stays readable
}

void TestControlService::series_and_pages() {
  for (std::uint64_t i = 1; i <= 30; ++i) {
    fixture_->node.logs.push_back(
        {i + 100, WallTime(std::chrono::milliseconds(i)), {LogLevel::Info, "data", "text"}});
    node::CheckpointEntry entry;
    entry.name = "c" + std::to_string(i);
    entry.step = i;
    fixture_->node.checkpoints.push_back(entry);
  }
  node::SettingEntry setting;
  setting.name = "cpu_threads";
  setting.group = "Limits";
  setting.locked = setting.at_restart = true;
  fixture_->node.settings = {setting};
  const auto remote = fixture_->connect();

  std::promise<Expected<node::Series>> series;
  QVERIFY(remote->query_series({"loss", 0, 0, 4096}, [&](auto answer) { series.set_value(answer); }).ok());
  const auto loss = series.get_future().get();
  QCOMPARE(loss->buckets.size(), std::size_t{4096});
  QCOMPARE(loss->buckets[9].mean, 10.0);
  std::promise<Expected<node::Series>> unknown;
  fixture_->node.fail_queries(make_error(ErrorCode::NotFound, "there is no history"));
  QVERIFY(remote->query_series({"loss", 0, 0, 4}, [&](auto answer) { unknown.set_value(answer); }).ok());
  QCOMPARE(unknown.get_future().get().error().code, ErrorCode::NotFound);
  fixture_->node.fail_queries({});

  std::string after;
  std::vector<std::string> names;
  for (bool more = true; more;) {
    std::promise<Expected<node::CheckpointPage>> page;
    QVERIFY(remote->query_checkpoints({after, 7}, [&](auto answer) { page.set_value(answer); }).ok());
    const auto checkpoints = page.get_future().get();
    for (const auto& entry : checkpoints->entries) names.push_back(entry.name);
    after = names.back();
    more = checkpoints->more;
  }
  QCOMPARE(names.size(), std::size_t{30});

  std::promise<Expected<node::LogPage>> logs;
  QVERIFY(remote->query_logs({50, 10, LogLevel::Info}, [&](auto answer) { logs.set_value(answer); }).ok());
  const auto page = logs.get_future().get();
  QCOMPARE(page->entries.front().sequence, std::uint64_t{101});
  QCOMPARE(page->next, std::uint64_t{110});
  QVERIFY(page->more);
  QCOMPARE(page->dropped, std::uint64_t{50});  // 51 … 100 are not kept any more

  std::promise<Expected<std::vector<node::SettingEntry>>> settings;
  QVERIFY(remote->query_settings([&](auto answer) { settings.set_value(answer); }).ok());
  const auto table = settings.get_future().get();
  QCOMPARE(table->front().name, std::string("cpu_threads"));
  QVERIFY(table->front().locked && table->front().at_restart);
  QCOMPARE(table->front().group, std::string("Limits"));
}

// One of the clocks is set while the core runs.
void TestControlService::a_core_whose_clock_is_wrong_is_reached() {
  using std::chrono::days;
  for (const days ahead : {days(3), days(-3)}) {
    fixture_->server.reset();
    ManualClock clock;
    clock.jump_wall(fixture_->clock.wall_now() + ahead - clock.wall_now());
    control::ServerOptions options;
    options.data_directory = fixture_->data();
    options.runtime_directory = fixture_->runtime();
    auto server = control::start_server(
        fixture_->node, {*fixture_->files, fixture_->entropy, clock, fixture_->logger}, options);
    QVERIFY(server.ok());
    QVERIFY(fixture_->connect() != nullptr);
  }
}

void TestControlService::reconnects_to_a_new_core() {
  const auto remote = fixture_->connect();
  std::atomic<int> changes{0};
  const auto watch = remote->watch_link([&] { ++changes; });
  for (int i = 0; i < 10; ++i) fixture_->node.publish({});
  fixture_->server.reset();
  QVERIFY(until([&] { return remote->link().state == control::LinkState::Lost; }));
  testing::FakeNode second;  // its versions count from 1 again
  second.publish([](node::Snapshot& next) { next.program.network = "second"; });
  control::ServerOptions options;
  options.data_directory = fixture_->data();
  options.runtime_directory = fixture_->runtime();
  const auto server = control::start_server(
      second, {*fixture_->files, fixture_->entropy, fixture_->clock, fixture_->logger}, options);
  QVERIFY(server.ok());
  QVERIFY(until([&] { return remote->link().state == control::LinkState::Connected; }));
  QCOMPARE(remote->snapshot()->program.network, std::string("second"));
  QVERIFY(changes >= 2);
  const Events events(*remote);
  QVERIFY(!events.done(*remote->finish())->error);
  QCOMPARE(second.commands(), std::vector<std::string>{"finish"});
}

void TestControlService::control_file_is_private_and_goes_away() {
  const QString path =
      QString::fromStdString(control::control_file_path(fixture_->runtime(), fixture_->data()));
  const auto others = QFile::ReadGroup | QFile::WriteGroup | QFile::ReadOther | QFile::WriteOther;
  QVERIFY(QFile::exists(path));
  QVERIFY(!(QFile::permissions(path) & others));
  QVERIFY(!(QFile::permissions(QString::fromStdString(fixture_->runtime())) & others));
  fixture_->server.reset();
  QVERIFY(!QFile::exists(path));
}

// Systems remove old files and folders in /tmp.
void TestControlService::a_removed_control_file_is_written_again() {
  fixture_->server.reset();
  ManualClock clock;
  control::ServerOptions options;
  options.data_directory = fixture_->data();
  options.runtime_directory = fixture_->runtime();
  const auto server = control::start_server(
      fixture_->node, {*fixture_->files, fixture_->entropy, clock, fixture_->logger}, options);
  QVERIFY(server.ok());
  const std::string cookie = fixture_->file().cookie;
  const QString path =
      QString::fromStdString(control::control_file_path(fixture_->runtime(), fixture_->data()));
  QVERIFY(QDir(QString::fromStdString(fixture_->runtime())).removeRecursively());
  (*server)->keep_file();
  QVERIFY(!QFile::exists(path));  // it looks once an hour
  clock.advance(std::chrono::hours(1));
  (*server)->keep_file();
  QCOMPARE(fixture_->file().cookie, cookie);
  QVERIFY(QFile::remove(path));
  clock.advance(std::chrono::hours(1));
  (*server)->keep_file();
  QVERIFY(QFile::exists(path));
}

NS_TEST(TestControlService)
#include "test_service.moc"
