// The runtime of a node in safe mode, which needs neither a network nor a compute module: what it reports
// from its start to its end, and how it stops.
#include <QtTest>

#include "core/control/service.h"
#include "core/network_module/network_module.h"
#include "core/runtime/node_runtime.h"
#include "tests/support/test_main.h"
#include "tests/support/until.h"
#include "tests/unit/crypto/counting_entropy.h"
#include "tests/unit/engine/no_sync_file_env.h"

using namespace neuroshard;           // NOLINT
using namespace neuroshard::runtime;  // NOLINT

class TestNodeRuntime : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init();
  void cleanup();
  void ready_is_the_first_event_and_ended_the_last();
  void a_shutdown_through_the_seam_ends_the_run();
  void a_stop_by_another_program_is_not_lost_in_an_end();
  void destruction_without_a_run_is_a_clean_stop();
  void an_error_of_the_network_is_returned();

 private:
  Expected<std::unique_ptr<NodeRuntime>> start(RuntimeOptions options) {
    config::DataDirectoryOptions directory;
    directory.path = folder_->filePath("d").toStdString();
    directory.environment = nullptr;
    auto opened = config::DataDirectory::open(directory, {files_, entropy_, clock_, logger_});
    if (!opened.ok()) return opened.error();
    options.runtime_directory = folder_->filePath("run").toStdString();
    return NodeRuntime::start(std::move(*opened), {files_, entropy_, clock_, logger_, "test"},
                              std::move(options));
  }
  static RuntimeOptions safe_mode() {
    RuntimeOptions options;
    options.safe_mode = true;
    return options;
  }

  std::unique_ptr<QTemporaryDir> folder_;
  testing::NoSyncFileEnv files_;
  test::CountingEntropy entropy_;
  SystemClock clock_;
  NullLogger logger_;
};

void TestNodeRuntime::init() {
  folder_ = std::make_unique<QTemporaryDir>();
}

void TestNodeRuntime::cleanup() {
  folder_.reset();
}

void TestNodeRuntime::ready_is_the_first_event_and_ended_the_last() {
  RuntimeOptions options = safe_mode();
  options.alerts.push_back({"crashed", node::Severity::Warning, "an earlier process crashed", {}});
  const auto running = start(std::move(options));
  QVERIFY2(running.ok(), running.ok() ? "" : running.error().describe().c_str());
  CancelSource stop;
  std::vector<Event> events;
  const auto result = (*running)->run({}, stop.token(), [&](const Event& event) {
    events.push_back(event);
    stop.cancel();
  });
  QVERIFY2(result.ok(), result.ok() ? "" : result.error().describe().c_str());
  QVERIFY(events.size() >= 2);
  const auto* ready = std::get_if<Ready>(&events.front());
  QVERIFY(ready != nullptr);
  QVERIFY(ready->snapshot->safe_mode);
  QCOMPARE(ready->snapshot->program.version, std::string("test"));
  QCOMPARE(ready->snapshot->alerts.size(), std::size_t{1});
  QVERIFY(!ready->peers);
  for (std::size_t i = 1; i < events.size(); ++i) {
    const auto* reported = std::get_if<node::Event>(&events[i]);
    QVERIFY(reported != nullptr);
    QCOMPARE(std::holds_alternative<node::Ended>(*reported), i + 1 == events.size());
  }
}

void TestNodeRuntime::a_shutdown_through_the_seam_ends_the_run() {
  const auto running = start(safe_mode());
  QVERIFY2(running.ok(), running.ok() ? "" : running.error().describe().c_str());
  bool requested = false, ended = false;
  const CancelSource never;
  const auto result = (*running)->run({}, never.token(), [&](const Event& event) {
    if (std::holds_alternative<Ready>(event)) return;
    if (!std::exchange(requested, true)) QVERIFY((*running)->node().request_shutdown().ok());
    ended = std::holds_alternative<node::Ended>(std::get<node::Event>(event));
  });
  QVERIFY2(result.ok(), result.ok() ? "" : result.error().describe().c_str());
  QVERIFY(ended);
}

// The program ends the node to start it anew, and then a person stops it.
void TestNodeRuntime::a_stop_by_another_program_is_not_lost_in_an_end() {
  RuntimeOptions options = safe_mode();
  const CancelToken stopped = options.stopped.token();
  const auto running = start(std::move(options));
  QVERIFY2(running.ok(), running.ok() ? "" : running.error().describe().c_str());
  const auto network = network_module::load_network_module();
  QVERIFY2(network.ok(), network.ok() ? "" : network.error().describe().c_str());
  control::ConnectOptions to;
  to.data_directory = folder_->filePath("d").toStdString();
  to.runtime_directory = folder_->filePath("run").toStdString();
  to.program = to.build = "test";
  const auto person = network->connect(std::move(to));
  QVERIFY(person->wait_connected(std::chrono::seconds(20), {}).ok());

  bool requested = false;
  const CancelSource never;
  const auto result = (*running)->run({}, never.token(), [&](const Event& event) {
    if (std::holds_alternative<Ready>(event) || std::exchange(requested, true)) return;
    QVERIFY((*running)->node().request_shutdown().ok());
    QVERIFY(!stopped.cancelled());
    QVERIFY(person->request_shutdown().ok());
    QVERIFY(testing::until([&] { return stopped.cancelled(); }));
  });
  QVERIFY2(result.ok(), result.ok() ? "" : result.error().describe().c_str());
  QVERIFY(stopped.cancelled());
}

void TestNodeRuntime::destruction_without_a_run_is_a_clean_stop() {
  QVERIFY(start(safe_mode()).ok());
  QVERIFY(start(safe_mode()).ok());  // the data directory is free again
}

void TestNodeRuntime::an_error_of_the_network_is_returned() {
  RuntimeOptions options;
  options.join.port = 0;
  const auto running = start(std::move(options));
  QVERIFY(!running.ok());
  QCOMPARE(running.error().code, ErrorCode::InvalidArgument);  // the network solo has no peers
}

NS_TEST(TestNodeRuntime)
#include "test_node_runtime.moc"
