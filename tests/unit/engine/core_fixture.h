// An engine over the toy model, reached in the process or through the control service.
#pragma once

#include <QtTest>
#include <future>
#include <mutex>

#include "core/control/service.h"
#include "core/engine/engine.h"
#include "tests/support/until.h"
#include "tests/unit/engine/toy_module.h"
#include "tests/unit/engine/training_fixture.h"

namespace neuroshard::testing {

// The rows of a test that runs both ways.
inline void engine_and_remote() {
  QTest::addColumn<bool>("remote");
  QTest::newRow("engine") << false;
  QTest::newRow("remote") << true;
}

// An engine over the toy model, and the path on which the tests reach it.
class Core {
 public:
  explicit Core(bool remote, std::function<void(const config::Settings&)> on_settings = nullptr,
                const TinyNetwork& network = {})
      : remote_(remote), on_settings_(std::move(on_settings)), fixture_(network) {
    start();
  }
  ~Core() { stop(); }

  node::Node& node() { return client_ ? static_cast<node::Node&>(*client_) : *engine_; }
  TrainingFixture& fixture() { return fixture_; }
  ToyModule& module() { return module_; }
  void restart() {
    stop();
    start();
  }

  // The command's outcome; how often it told its progress.
  node::CommandDone done(const Expected<node::CommandId>& id) {
    if (!id.ok()) return {0, id.error(), {}};
    node::CommandDone found{0, make_error(ErrorCode::Timeout, "no outcome"), {}};
    until([&] {
      std::lock_guard lock(mutex_);
      for (const node::Event& event : events_)
        if (const auto* done = std::get_if<node::CommandDone>(&event); done && done->id == *id) found = *done;
      return found.id == *id;
    });
    return found;
  }
  template <class Kind>
  std::vector<Kind> all() {
    std::lock_guard lock(mutex_);
    std::vector<Kind> found;
    for (const node::Event& event : events_)
      if (const auto* kind = std::get_if<Kind>(&event)) found.push_back(*kind);
    return found;
  }
  template <class T>
  Expected<T> ask(const std::function<Expected<void>(node::Node&, node::Reply<T>)>& question) {
    auto promise = std::make_shared<std::promise<Expected<T>>>();
    const auto asked =
        question(node(), [promise](Expected<T> value) { promise->set_value(std::move(value)); });
    if (!asked.ok()) return asked.error();
    return promise->get_future().get();
  }
  std::vector<node::CheckpointEntry> checkpoints() {
    const auto page = ask<node::CheckpointPage>([](node::Node& n, node::Reply<node::CheckpointPage> reply) {
      return n.query_checkpoints({}, std::move(reply));
    });
    return page.ok() ? page->entries : std::vector<node::CheckpointEntry>();
  }
  bool idle() {
    return until([&] { return node().snapshot()->state == node::RunState::Idle; });
  }
  // Trains so many steps and is idle again; checkpoints after every fifth and the last.
  bool train(std::uint64_t steps) {
    const std::uint64_t before = node().snapshot()->training.step;
    const auto started = node().start_training({fixture_.path("text.txt"), steps, 0});
    return started.ok() && until([&] { return node().snapshot()->training.step >= before + steps; }) &&
           idle();
  }
  std::string folder(const std::string& checkpoint) { return fixture_.path("d/checkpoints/" + checkpoint); }

 private:
  void start() {
    auto directory = fixture_.open("d");
    NS_CHECK(directory.ok());
    engine::EngineOptions options;
    options.version = "test";
    options.on_settings = on_settings_;
    options.make_session = [this](config::DataDirectory& d, engine::TrainingServices services) {
      services.load_module = [this](const std::string&, const compute::ModuleOptions& given, Logger&) {
        module_.controls.threads = given.threads;
        return Expected<compute::LoadedModule>(compute::LoadedModule{&module_, {}});
      };
      return engine::TrainingSession::create(d, services);
    };
    engine_ = engine::Engine::start(
        std::move(*directory), {fixture_.files(), fixture_.clock(), fixture_.logger()}, std::move(options));
    if (remote_) {
      control::ServerOptions server;
      server.data_directory = fixture_.path("d");
      server.runtime_directory = fixture_.path("runtime");
      auto started = control::start_server(
          *engine_, {fixture_.files(), entropy_, fixture_.clock(), fixture_.logger()}, server);
      NS_CHECK(started.ok());
      server_ = std::move(*started);
      control::ConnectOptions connect;
      connect.data_directory = server.data_directory;
      connect.runtime_directory = server.runtime_directory;
      client_ = control::connect(connect);
      NS_CHECK(client_->wait_connected(std::chrono::seconds(20), {}).ok());
    }
    subscription_ = node().subscribe([this](const node::Event& event) {
      std::lock_guard lock(mutex_);
      events_.push_back(event);
    });
  }
  void stop() {
    subscription_.reset();
    client_.reset();
    server_.reset();
    engine_.reset();
    events_.clear();
  }

  const bool remote_;
  const std::function<void(const config::Settings&)> on_settings_;
  TrainingFixture fixture_;
  crypto::SystemEntropy entropy_;
  ToyModule module_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<control::Server> server_;
  std::unique_ptr<control::RemoteNode> client_;
  std::mutex mutex_;
  std::vector<node::Event> events_;
  std::unique_ptr<node::Subscription> subscription_;
};

}  // namespace neuroshard::testing
