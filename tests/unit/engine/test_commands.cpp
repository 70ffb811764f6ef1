// A person's commands for a node's checkpoints, its model and its text, next to the training: the same
// tests run on the engine itself and through the control service.
#include <QtTest>
#include <future>

#include "core/compute/slot.h"
#include "core/control/service.h"
#include "core/engine/engine.h"
#include "tests/support/test_main.h"
#include "tests/unit/engine/toy_module.h"
#include "tests/unit/engine/training_fixture.h"

using namespace neuroshard;  // NOLINT
using config::Setting;
using testing::ToyModule;
using testing::TrainingFixture;

namespace {

bool until(const std::function<bool()>& condition) {
  QElapsedTimer clock;
  clock.start();
  while (!condition()) {
    if (clock.elapsed() > 20'000) return false;
    QThread::yieldCurrentThread();
  }
  return true;
}

bool is_utf8(const std::string& text) {
  return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size())).toStdString() == text;
}

// An engine over the toy model, and whatever the tests talk to it through.
class Core {
 public:
  explicit Core(bool remote) : remote_(remote) { start(); }
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

}  // namespace

class TestCommands : public QObject {
  Q_OBJECT

  static void both() {
    QTest::addColumn<bool>("remote");
    QTest::newRow("engine") << false;
    QTest::newRow("remote") << true;
  }

 private Q_SLOTS:
  void checkpoints_are_verified_compared_and_kept_data() { both(); }
  void checkpoints_are_verified_compared_and_kept();
  void prune_does_what_its_preview_says_data() { both(); }
  void prune_does_what_its_preview_says();
  void checkpoints_travel_data() { both(); }
  void checkpoints_travel();
  void restore_and_undo_data() { both(); }
  void restore_and_undo();
  void restore_of_a_paused_model_data() { both(); }
  void restore_of_a_paused_model();
  void restore_of_a_damaged_one_changes_nothing();
  void text_beside_training_and_without_data() { both(); }
  void text_beside_training_and_without();
  void text_is_cancelled();
  void model_and_data_are_described_data() { both(); }
  void model_and_data_are_described();
  void settings_go_back_to_their_default();
};

void TestCommands::checkpoints_are_verified_compared_and_kept() {
  QFETCH(const bool, remote);
  Core core(remote);
  QVERIFY(core.train(12));
  auto list = core.checkpoints();
  QCOMPARE(list.size(), std::size_t{3});  // after steps 12, 10, 5
  QCOMPARE(list[0].step, std::uint64_t{12});
  QCOMPARE(list[0].parent, list[1].name);
  QCOMPARE(list[0].hash.size(), std::size_t{64});
  QVERIFY(!list[0].intact);
  const auto good = core.done(core.node().verify_checkpoint(list[0].name));
  QVERIFY2(!good.error, good.error ? good.error->describe().c_str() : "");
  QVERIFY(std::get<node::VerifyResult>(good.result).intact);
  QVERIFY(until([&] { return core.checkpoints()[0].intact == true; }));
  QVERIFY(core.checkpoints()[0].verified_at.has_value());
  QVERIFY(!core.all<node::CheckpointsChanged>().empty());

  const auto same = core.done(core.node().compare_checkpoints(list[1].name, list[1].name));
  QCOMPARE(std::get<node::CheckpointComparison>(same.result).distance, 0.0);
  const auto apart = core.done(core.node().compare_checkpoints(list[2].name, list[0].name));
  const auto& comparison = std::get<node::CheckpointComparison>(apart.result);
  QCOMPARE(comparison.slots.size(), std::size_t{5});  // embed, layer 0, two experts, head
  QCOMPARE(comparison.first.step, std::uint64_t{5});
  for (const node::SlotDistance& slot : comparison.slots) {
    // The toy trains embedding and head only.
    const bool learns = slot.slot == "embed" || slot.slot == "head";
    QCOMPARE(slot.distance > 0, learns);
    QCOMPARE(slot.cosine < 1, learns);
    if (learns) QVERIFY(slot.relative > 0 && slot.relative < 2);
  }

  // One changed byte is found, named, and remembered.
  QFile file(QString::fromStdString(core.folder(list[2].name) + "/weights.safetensors"));
  QVERIFY(file.open(QIODevice::ReadWrite) && file.seek(file.size() - 3));
  char byte = 0;
  QVERIFY(file.peek(&byte, 1) == 1);
  byte = static_cast<char>(byte ^ 1);
  QVERIFY(file.write(&byte, 1) == 1);
  file.close();
  const auto bad = core.done(core.node().verify_checkpoint(list[2].name));
  const auto& found = std::get<node::VerifyResult>(bad.result);
  QVERIFY(!found.intact);
  QVERIFY2(found.problem.find("weights.safetensors") != std::string::npos, found.problem.c_str());
  core.restart();
  QVERIFY(core.checkpoints()[2].intact == false);

  QVERIFY(!core.done(core.node().pin_checkpoint(list[1].name, true)).error);
  QVERIFY(core.checkpoints()[1].pinned);
  QCOMPARE(core.done(core.node().delete_checkpoint(list[1].name)).error->code, ErrorCode::Denied);
  QCOMPARE(core.done(core.node().delete_checkpoint(list[0].name)).error->code, ErrorCode::Denied);
  QVERIFY(!core.done(core.node().pin_checkpoint(list[1].name, false)).error);
  QVERIFY(!core.done(core.node().delete_checkpoint(list[1].name)).error);
  QCOMPARE(core.checkpoints().size(), std::size_t{2});
  QCOMPARE(core.done(core.node().verify_checkpoint("no such")).error->code, ErrorCode::NotFound);
}

void TestCommands::prune_does_what_its_preview_says() {
  QFETCH(const bool, remote);
  Core core(remote);
  QVERIFY(core.train(12));
  const auto list = core.checkpoints();
  QCOMPARE(list.size(), std::size_t{3});
  QVERIFY(!core.done(core.node().pin_checkpoint(list[2].name, true)).error);
  const node::PrunePolicy policy{1, 0, 0};
  const auto preview =
      core.ask<node::PrunePreview>([&](node::Node& n, node::Reply<node::PrunePreview> reply) {
        return n.query_prune(policy, std::move(reply));
      });
  QVERIFY(preview.ok());
  QCOMPARE(preview->remove, std::vector<std::string>{list[1].name});
  QCOMPARE(preview->bytes, list[1].bytes);
  QCOMPARE(preview->kept, 2u);
  QCOMPARE(core.checkpoints().size(), std::size_t{3});  // only looked
  QVERIFY(!core.done(core.node().prune_checkpoints(policy)).error);
  const auto left = core.checkpoints();
  QCOMPARE(left.size(), std::size_t{2});
  QCOMPARE(left[1].name, list[2].name);
}

void TestCommands::checkpoints_travel() {
  QFETCH(const bool, remote);
  Core core(remote);
  QVERIFY(core.train(6));
  const auto list = core.checkpoints();
  const std::string folder = core.fixture().path("copy"), file = core.fixture().path("model.safetensors");
  QCOMPARE(core.done(core.node().export_checkpoint(list[0].name, "checkpoint", "here")).error->code,
           ErrorCode::InvalidArgument);
  QCOMPARE(core.done(core.node().export_checkpoint(list[0].name, "zip", folder)).error->code,
           ErrorCode::InvalidArgument);
  QVERIFY(!core.done(core.node().export_checkpoint(list[0].name, "safetensors", file)).error);
  QVERIFY(QFile::exists(QString::fromStdString(file)));
  QVERIFY(!core.done(core.node().export_checkpoint(list[0].name, "checkpoint", folder)).error);
  QCOMPARE(core.done(core.node().export_checkpoint(list[0].name, "checkpoint", folder)).error->code,
           ErrorCode::AlreadyExists);
  const auto imported = core.done(core.node().import_checkpoint(folder));
  QVERIFY2(!imported.error, imported.error ? imported.error->describe().c_str() : "");
  const std::string name = std::get<node::ImportResult>(imported.result).name;
  const auto after = core.checkpoints();
  QCOMPARE(after.size(), list.size() + 1);
  QCOMPARE(after.front().name, list.front().name);  // an import is never the newest by itself
  QVERIFY(std::any_of(after.begin(), after.end(),
                      [&](const auto& entry) { return entry.name == name && entry.pinned; }));
  // Damaged ones stay outside.
  QFile weights(QString::fromStdString(folder + "/weights.safetensors"));
  QVERIFY(weights.open(QIODevice::ReadWrite) && weights.seek(weights.size() - 1));
  QVERIFY(weights.putChar('!'));
  weights.close();
  QCOMPARE(core.done(core.node().import_checkpoint(folder)).error->code, ErrorCode::Corrupt);
  QCOMPARE(core.checkpoints().size(), list.size() + 1);
}

void TestCommands::restore_and_undo() {
  QFETCH(const bool, remote);
  Core core(remote);
  QCOMPARE(core.done(core.node().undo_restore()).error->code, ErrorCode::NotFound);
  QVERIFY(core.train(12));
  const auto list = core.checkpoints();
  const auto restored = core.done(core.node().restore_checkpoint(list[2].name));
  QVERIFY2(!restored.error, restored.error ? restored.error->describe().c_str() : "");
  auto view = core.node().snapshot();
  QCOMPARE(view->undo.checkpoint, list[0].name);
  QCOMPARE(view->undo.step, std::uint64_t{12});
  QCOMPARE(view->training.step, std::uint64_t{5});
  // Training goes on from there; what an undo needs outlives the retention rules.
  QVERIFY(core.train(30));
  view = core.node().snapshot();
  QCOMPARE(view->training.step, std::uint64_t{35});
  QCOMPARE(core.all<node::Prepared>().back().step, std::uint64_t{5});
  QCOMPARE(view->undo.checkpoint, list[0].name);
  core.restart();
  QCOMPARE(core.node().snapshot()->undo.checkpoint, list[0].name);
  QCOMPARE(core.node().snapshot()->checkpoint.newest, core.checkpoints()[0].name);
  QVERIFY(core.node().snapshot()->checkpoint.newest_at == core.checkpoints()[0].at);
  QVERIFY(!core.done(core.node().undo_restore()).error);
  QVERIFY(core.node().snapshot()->undo.checkpoint.empty());
  QVERIFY(core.train(1));
  QCOMPARE(core.all<node::Prepared>().back().step, std::uint64_t{12});
  // Ten minutes and fifty steps later it is too late; either alone is not.
  QVERIFY(!core.done(core.node().restore_checkpoint(core.checkpoints()[1].name)).error);
  QVERIFY(!core.node().snapshot()->undo.checkpoint.empty());
  core.fixture().jump(node::undo_time * 2);
  QVERIFY(core.train(node::undo_steps - 10));
  QVERIFY(!core.node().snapshot()->undo.checkpoint.empty());
  QVERIFY(core.train(20));
  QVERIFY(core.node().snapshot()->undo.checkpoint.empty());
  QVERIFY(!core.done(core.node().restore_checkpoint(core.checkpoints()[1].name)).error);
  QVERIFY(core.train(node::undo_steps + 10));
  QVERIFY(!core.node().snapshot()->undo.checkpoint.empty());
  core.restart();
  QVERIFY(!core.node().snapshot()->undo.checkpoint.empty());
  core.fixture().jump(node::undo_time * 2);
  QVERIFY(core.train(1));
  QVERIFY(core.node().snapshot()->undo.checkpoint.empty());
}

void TestCommands::restore_of_a_paused_model() {
  QFETCH(const bool, remote);
  Core core(remote);
  QVERIFY(core.train(6));
  QVERIFY(core.node().start_training({}).ok());
  QVERIFY(until([&] { return core.node().snapshot()->training.step > 8; }));
  QVERIFY(!core.done(core.node().set_contributing(false)).error);
  QVERIFY(until([&] { return core.node().snapshot()->state == node::RunState::Paused; }));
  const std::uint64_t left_at = core.node().snapshot()->training.step;
  const auto list = core.checkpoints();
  QVERIFY(list.size() >= 2);
  QVERIFY(!core.done(core.node().restore_checkpoint(list[1].name)).error);
  QVERIFY(until([&] { return core.node().snapshot()->state == node::RunState::Paused; }));
  QCOMPARE(core.node().snapshot()->undo.step, left_at);  // every step was kept
  QCOMPARE(core.node().snapshot()->training.step, list[1].step);
  QVERIFY(!core.done(core.node().set_contributing(true)).error);
  QVERIFY(until([&] { return core.all<node::Prepared>().back().step == list[1].step; }));
  QVERIFY(until([&] { return core.node().snapshot()->training.step > list[1].step; }));
}

void TestCommands::restore_of_a_damaged_one_changes_nothing() {
  Core core(false);
  QVERIFY(core.train(6));
  const auto list = core.checkpoints();
  QFile file(QString::fromStdString(core.folder(list[1].name) + "/optimizer.safetensors"));
  QVERIFY(file.open(QIODevice::ReadWrite) && file.seek(file.size() - 1));
  QVERIFY(file.putChar('!'));
  file.close();
  QVERIFY(core.node().start_training({}).ok());
  QVERIFY(until([&] { return core.node().snapshot()->training.step > 6; }));
  QCOMPARE(core.done(core.node().restore_checkpoint(list[1].name)).error->code, ErrorCode::Corrupt);
  const std::uint64_t step = core.node().snapshot()->training.step;
  QVERIFY(until([&] { return core.node().snapshot()->training.step > step + 3; }));
  QVERIFY(core.node().snapshot()->undo.checkpoint.empty());
}

void TestCommands::text_beside_training_and_without() {
  QFETCH(const bool, remote);
  Core core(remote);
  std::mutex mutex;
  std::string text;
  const auto collect = [&](const std::string& piece) {
    std::lock_guard lock(mutex);
    text += piece;
  };
  node::GenerateRequest request;
  request.prompt = "the cat ";
  request.max_tokens = 40;
  request.temperature = 5;  // any token, so that characters are broken and have to be mended
  request.seed = 7;
  QCOMPARE(core.done(core.node().generate(request, collect)).error->code, ErrorCode::NotFound);  // no model
  QVERIFY(core.train(6));
  const auto alone = core.done(core.node().generate(request, collect));
  QVERIFY2(!alone.error, alone.error ? alone.error->describe().c_str() : "");
  const auto& result = std::get<node::GenerateResult>(alone.result);
  QCOMPARE(result.step, std::uint64_t{6});
  QVERIFY(result.prompt_tokens > 0);
  QVERIFY(result.tokens == 40 || result.stopped_by == "end of text");
  QVERIFY(!text.empty());
  QVERIFY(is_utf8(text));

  QVERIFY(core.node().start_training({}).ok());
  QVERIFY(until([&] { return core.node().snapshot()->training.step > 6; }));
  text.clear();
  const auto beside = core.done(core.node().generate(request, collect));
  QVERIFY2(!beside.error, beside.error ? beside.error->describe().c_str() : "");
  QVERIFY(std::get<node::GenerateResult>(beside.result).step > 6);
  QVERIFY(is_utf8(text));
  const std::uint64_t step = core.node().snapshot()->training.step;
  QVERIFY(until([&] { return core.node().snapshot()->training.step > step; }));  // goes on

  request.max_tokens = 0;
  QCOMPARE(core.done(core.node().generate(request, {})).error->code, ErrorCode::InvalidArgument);
  request.max_tokens = 5;
  request.prompt.assign(node::max_prompt_bytes + 1, 'x');
  QCOMPARE(core.done(core.node().generate(request, {})).error->code, ErrorCode::InvalidArgument);
}

void TestCommands::text_is_cancelled() {
  Core core(false);
  QVERIFY(core.train(6));
  std::promise<node::CommandId> id;
  std::shared_future<node::CommandId> known = id.get_future().share();
  std::atomic<bool> once{false};
  node::GenerateRequest request;
  request.max_tokens = node::max_generated_tokens;
  const auto sent = core.node().generate(request, [&](const std::string&) {
    if (once.exchange(true)) return;
    QVERIFY(core.node().cancel(known.get()).ok());
    // The core thread answers in order: the cancellation is known when this comes.
    std::promise<void> answered;
    QVERIFY(core.node().query_slots([&](auto) { answered.set_value(); }).ok());
    answered.get_future().wait();
  });
  QVERIFY(sent.ok());
  id.set_value(*sent);
  QCOMPARE(core.done(sent).error->code, ErrorCode::Cancelled);
  QVERIFY(core.node().cancel(123'456).ok());  // unknown: nothing happens
}

void TestCommands::model_and_data_are_described() {
  QFETCH(const bool, remote);
  Core core(remote);
  using Slots = std::vector<node::SlotEntry>;
  using Experts = std::vector<node::ExpertLoad>;
  using Tokens = std::vector<node::TokenPiece>;
  const auto ask_experts = [&] {
    return core.ask<Experts>(
        [](node::Node& n, node::Reply<Experts> reply) { return n.query_experts(std::move(reply)); });
  };
  const auto ask_data = [&] {
    return core.ask<node::DataView>(
        [](node::Node& n, node::Reply<node::DataView> reply) { return n.query_data(std::move(reply)); });
  };
  QCOMPARE(ask_data()->shard_count, std::uint64_t{0});  // no text yet: nothing is made up
  QCOMPARE(ask_experts()->at(0).tokens, std::uint64_t{0});
  QVERIFY(core.train(12));
  const auto slots = core.ask<Slots>(
      [](node::Node& n, node::Reply<Slots> reply) { return n.query_slots(std::move(reply)); });
  QCOMPARE(slots->size(), std::size_t{5});
  QCOMPARE(slots->at(0).name, std::string("embed"));
  QVERIFY(slots->at(0).mine && slots->at(0).replicas == 1u);  // without rounds nobody else holds this model
  QCOMPARE(slots->at(3).kind, std::string("expert"));
  QCOMPARE(slots->at(3).expert, 1u);
  std::uint64_t parameters = 0;
  for (const node::SlotEntry& slot : *slots) parameters += slot.parameters;
  QCOMPARE(parameters, core.node().snapshot()->model.parameters);

  const auto experts = ask_experts();
  QCOMPARE(experts->size(), std::size_t{2});
  QCOMPARE(experts->at(0).share + experts->at(1).share, 1.0);
  QVERIFY(experts->at(0).tokens > 0);
  QVERIFY(experts->at(0).replicas == 1u);
  QVERIFY(experts->at(0).bias > 0);  // the toy raises the first one's

  const auto data = ask_data();
  QVERIFY(data->train_tokens > 0 && data->vocabulary > 266 && data->merges == data->vocabulary - 266);
  QCOMPARE(data->shards.size(), static_cast<std::size_t>(data->shard_count));
  QVERIFY(data->tokens_seen > 0 && data->epochs > 0);
  QCOMPARE(std::count_if(data->shards.begin(), data->shards.end(), [](const auto& s) { return s.in_use; }),
           1);
  QCOMPARE(data->shards[0].state, std::string("cached"));
  QVERIFY(data->bytes_per_token > 1 && data->bytes_per_token < 10);  // measured on held-out text

  const std::string text = "the red ball \xC3\xA9";
  const auto tokens = core.ask<Tokens>(
      [&](node::Node& n, node::Reply<Tokens> reply) { return n.query_tokens(text, std::move(reply)); });
  std::string joined;
  for (const node::TokenPiece& piece : *tokens) joined += piece.text;
  QCOMPARE(joined, text);
  QVERIFY(tokens->size() < text.size());
  QCOMPARE(core.node().query_tokens(std::string(node::max_token_text + 1, 'x'), [](auto) {}).error().code,
           ErrorCode::InvalidArgument);

  for (const char* name : {"loss", "lr", "grad_norm", "tokens_per_s", "step_seconds"}) {
    const auto series = core.ask<node::Series>([&](node::Node& n, node::Reply<node::Series> reply) {
      return n.query_series({name, 0, 0, 100}, std::move(reply));
    });
    QVERIFY2(series.ok() && series->buckets.size() == 12, name);
    QCOMPARE(series->name, std::string(name));
  }
  const auto& step = core.node().snapshot()->training.last_step;
  QVERIFY(step && step->compute_seconds > 0 && step->data_seconds >= 0);
  QVERIFY(core.node().snapshot()->resources.memory_total_bytes > 0);
  QVERIFY(until([&] { return core.node().snapshot()->resources.directory_bytes > 0; }));
}

void TestCommands::settings_go_back_to_their_default() {
  Core core(false);
  QVERIFY(!core.done(core.node().set_setting("max_micro_batch", "3")).error);
  QVERIFY(!core.done(core.node().set_setting("max_micro_batch", "")).error);
  const auto changes = core.all<node::SettingChanged>();
  QCOMPARE(changes.size(), std::size_t{2});
  QCOMPARE(changes[1].value, std::string("8"));
  using Settings = std::vector<node::SettingEntry>;
  const auto settings = core.ask<Settings>(
      [](node::Node& n, node::Reply<Settings> reply) { return n.query_settings(std::move(reply)); });
  for (const node::SettingEntry& setting : *settings) {
    QVERIFY2(!setting.title.empty() && !setting.group.empty(), setting.name.c_str());
    if (setting.name == "max_micro_batch") QCOMPARE(setting.origin, std::string("built-in"));
  }
}

NS_TEST(TestCommands)
#include "test_commands.moc"
