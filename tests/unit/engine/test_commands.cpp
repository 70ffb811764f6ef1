// A person's commands for a node's model, its text and its settings, next to the training: the same tests run on
// the engine itself and through the control service.
#include <QtTest>
#include <cmath>
#include <future>
#include <numeric>

#include "core/engine/text_batch.h"
#include "tests/support/test_main.h"
#include "tests/unit/engine/core_fixture.h"

using namespace neuroshard;  // NOLINT
using testing::Core;
using testing::until;

namespace {

bool is_utf8(const std::string& text) {
  return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size())).toStdString() == text;
}

}  // namespace

class TestCommands : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void text_beside_training_and_without_data() { testing::engine_and_remote(); }
  void text_beside_training_and_without();
  void texts_at_once();
  void more_texts_than_places_are_refused();
  void embeddings_data() { testing::engine_and_remote(); }
  void embeddings();
  void a_modest_client_beside_a_greedy_one();
  void a_pause_does_not_wait_for_a_text();
  void text_is_cancelled();
  void model_and_data_are_described_data() { testing::engine_and_remote(); }
  void model_and_data_are_described();
  void another_checkpoint_answers_while_nothing_trains();
  void settings_go_back_to_their_default();
  void stored_settings_are_passed_on();
};

void TestCommands::text_beside_training_and_without() {
  QFETCH(const bool, remote);
  Core core(remote);
  std::mutex mutex;
  std::string text;
  const auto collect = [&](const node::TextPiece& piece) {
    std::lock_guard lock(mutex);
    text += piece.text;
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

// The same texts as one after the other, also when the memory holds only a part of their windows.
void TestCommands::texts_at_once() {
  Core core(false);
  QVERIFY(core.train(6));
  const auto request_of = [](std::uint64_t seed) {
    node::GenerateRequest request;
    request.prompt = "the cat ";
    request.max_tokens = static_cast<std::uint32_t>(20 + 7 * seed);
    request.seed = seed;
    return request;
  };
  constexpr std::size_t count = 8;
  std::mutex mutex;
  std::vector<std::string> alone(count), together(count);
  const auto collect = [&](std::string& text) {
    return [&](const node::TextPiece& piece) {
      const std::lock_guard lock(mutex);
      text += piece.text;
    };
  };
  for (std::size_t i = 0; i < count; ++i)
    QVERIFY(!core.done(core.node().generate(request_of(i + 1), collect(alone[i]))).error);
  for (const std::size_t windows : {1000u, 2u}) {
    core.module().controls.most_sessions = windows;
    together.assign(count, {});
    std::vector<Expected<node::CommandId>> sent;
    for (std::size_t i = 0; i < count; ++i)
      sent.push_back(core.node().generate(request_of(i + 1), collect(together[i])));
    for (const auto& id : sent) QVERIFY(!core.done(id).error);
    QCOMPARE(together, alone);
  }
  core.module().controls.most_sessions = 0;
  QCOMPARE(core.done(core.node().generate(request_of(1), {})).error->code, ErrorCode::Exhausted);
}

void TestCommands::more_texts_than_places_are_refused() {
  Core core(false);
  QVERIFY(core.train(6));
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  node::GenerateRequest request;
  request.max_tokens = 5;
  std::vector<Expected<node::CommandId>> sent;
  for (std::size_t i = 0; i < engine::max_batch_texts; ++i)
    sent.push_back(core.node().generate(request, [released](const node::TextPiece&) { released.wait(); }));
  const auto beyond = core.done(core.node().generate(request, {}));
  release.set_value();
  QVERIFY(beyond.error.has_value());
  QCOMPARE(beyond.error->code, ErrorCode::Busy);
  for (const auto& id : sent) QVERIFY(!core.done(id).error);
}

void TestCommands::another_checkpoint_answers_while_nothing_trains() {
  Core core(false);
  QVERIFY(core.train(6));
  const std::string first = core.node().snapshot()->checkpoint.newest;
  QVERIFY(core.train(6));
  QVERIFY(core.node().snapshot()->checkpoint.newest != first);
  node::GenerateRequest request;
  request.prompt = "the cat ";
  request.max_tokens = 5;
  const auto step_of = [&](const std::string& checkpoint) {
    request.checkpoint = checkpoint;
    const auto done = core.done(core.node().generate(request, {}));
    return done.error ? 0 : std::get<node::GenerateResult>(done.result).step;
  };
  QCOMPARE(step_of(first), std::uint64_t{6});
  QCOMPARE(step_of(""), std::uint64_t{12});
  QCOMPARE(step_of(first), std::uint64_t{6});
  // At once, too: each is written by the checkpoint that it names.
  std::vector<Expected<node::CommandId>> sent;
  for (const std::string& checkpoint : {first, std::string(), first}) {
    request.checkpoint = checkpoint;
    sent.push_back(core.node().generate(request, {}));
  }
  std::vector<std::uint64_t> steps;
  for (const auto& id : sent) steps.push_back(std::get<node::GenerateResult>(core.done(id).result).step);
  QCOMPARE(steps, (std::vector<std::uint64_t>{6, 12, 6}));
  request.checkpoint = "there is no such checkpoint";
  QCOMPARE(core.done(core.node().generate(request, {})).error->code, ErrorCode::NotFound);
  QVERIFY(core.node().start_training({}).ok());
  QVERIFY(until([&] { return core.node().snapshot()->training.step > 12; }));
  request.checkpoint = first;
  QCOMPARE(core.done(core.node().generate(request, {})).error->code, ErrorCode::Unavailable);
  QVERIFY(step_of("") > 12);
}

// The toy model's hidden states are its rows of the embedding, so that a text of one token repeated has the embedding of
// the token.
void TestCommands::embeddings() {
  QFETCH(const bool, remote);
  Core core(remote);
  QVERIFY(core.train(6));
  const auto embedding_of = [&](std::vector<std::uint32_t> tokens) {
    node::GenerateRequest request;
    request.prompt_tokens = std::move(tokens);
    request.max_tokens = 0;
    request.embedding = true;
    const auto done = core.done(core.node().generate(request, {}));
    const auto* result = std::get_if<node::GenerateResult>(&done.result);
    if (done.error || result == nullptr || result->tokens != 0 || result->step < 6)
      return std::vector<float>();
    return result->embedding;
  };
  const auto product = [](const std::vector<float>& a, const std::vector<float>& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  };
  const std::vector<float> one = embedding_of({70}), other = embedding_of({71});
  QCOMPARE(one.size(), std::size_t{16});
  QVERIFY(std::abs(product(one, one) - 1) < 1e-6 && product(one, other) < 0.99);
  QVERIFY(product(one, embedding_of({70, 70, 70})) > 1 - 1e-6);
  // Between the two, and further from both than they are from themselves.
  const std::vector<float> both = embedding_of({70, 71, 70, 71});
  QVERIFY(product(both, one) > product(one, other) && product(both, one) < 1 - 1e-6);
  QVERIFY(std::abs(product(both, both) - 1) < 1e-6);
  QVERIFY(embedding_of(std::vector<std::uint32_t>(17, 70)).empty());  // longer than the context
  QVERIFY(embedding_of({}).empty());
  QVERIFY(core.node().start_training({}).ok());
  QVERIFY(until([&] { return core.node().snapshot()->training.step > 6; }));
  QCOMPARE(embedding_of({70, 71}).size(), std::size_t{16});
}

// Each time, the training has its share of the time when the modest client comes, and goes on afterwards.
void TestCommands::a_modest_client_beside_a_greedy_one() {
  Core core(false);
  QVERIFY(core.train(6));
  QVERIFY(core.node().start_training({}).ok());
  QVERIFY(until([&] { return core.node().snapshot()->training.step > 6; }));
  node::GenerateRequest request;
  request.prompt = "the cat ";
  request.max_tokens = node::max_generated_tokens;
  request.client = "greedy";
  request.logit_bias = {{2, -100}};  // never the end of the text
  std::vector<Expected<node::CommandId>> greedy;
  for (int i = 0; i < 3; ++i) greedy.push_back(core.node().generate(request, {}));
  request.max_tokens = 2;
  request.client = "modest";
  for (int i = 0; i < 3; ++i) {
    const std::uint64_t step = core.node().snapshot()->training.step;
    QVERIFY(until([&] { return core.node().snapshot()->training.step > step + 2; }));
    const auto done = core.done(core.node().generate(request, {}));
    QVERIFY2(!done.error, done.error ? done.error->describe().c_str() : "");
    QVERIFY(std::get<node::GenerateResult>(done.result).step > step);
  }
  // A fast machine may have written a greedy text to its end.
  for (const auto& id : greedy) (void)core.node().cancel(*id);
  for (const auto& id : greedy) {
    const auto done = core.done(id);
    QVERIFY(!done.error || done.error->code == ErrorCode::Cancelled);
  }
}

// Each token of the text takes a while, so that the text lasts for longer than the pause needs.
void TestCommands::a_pause_does_not_wait_for_a_text() {
  std::promise<void> hurry;
  const std::shared_future<void> hurried = hurry.get_future().share();
  std::atomic<bool> writes{false};
  Core core(false);
  QVERIFY(core.train(6));
  QVERIFY(core.node().start_training({}).ok());
  QVERIFY(until([&] { return core.node().snapshot()->training.step > 6; }));
  node::GenerateRequest request;
  request.prompt = "the cat ";
  request.max_tokens = node::max_generated_tokens;
  request.logit_bias = {{2, -100}};  // never the end of the text
  const auto text = core.node().generate(request, [&writes, hurried](const node::TextPiece&) {
    writes = true;
    static_cast<void>(hurried.wait_for(std::chrono::milliseconds(2)));
  });
  QVERIFY(text.ok());
  QVERIFY(until([&] { return writes.load(); }));
  const auto text_is_done = [&] {
    const auto all = core.all<node::CommandDone>();
    return std::any_of(all.begin(), all.end(), [&](const auto& done) { return done.id == *text; });
  };
  QVERIFY(core.node().set_contributing(false).ok());
  QVERIFY(until([&] { return core.node().snapshot()->state == node::RunState::Paused; }));
  QVERIFY(!text_is_done());
  const auto view = core.node().snapshot();
  const auto saved = static_cast<std::uint64_t>(std::stoull(view->checkpoint.newest));
  QCOMPARE(saved, view->training.step);  // the name begins with the step
  const auto written = core.all<node::CheckpointWritten>();
  QVERIFY(!written.empty() && written.back().name == view->checkpoint.newest);
  QVERIFY(!core.done(core.node().save_checkpoint()).error);
  QVERIFY(!text_is_done());
  hurry.set_value();
  QVERIFY(core.node().cancel(*text).ok());
  QCOMPARE(core.done(text).error->code, ErrorCode::Cancelled);
}

void TestCommands::text_is_cancelled() {
  Core core(false);
  QVERIFY(core.train(6));
  std::promise<node::CommandId> id;
  std::shared_future<node::CommandId> known = id.get_future().share();
  std::atomic<bool> once{false};
  node::GenerateRequest request;
  request.max_tokens = node::max_generated_tokens;
  const auto sent = core.node().generate(request, [&](const node::TextPiece&) {
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

// To the parts of a node that obey them outside of the training; a refused one is not.
void TestCommands::stored_settings_are_passed_on() {
  std::mutex mutex;
  std::vector<std::uint64_t> limits;
  Core core(false, [&](const config::Settings& settings) {
    const std::lock_guard lock(mutex);
    limits.push_back(settings.number(config::Setting::DiskLimit));
  });
  const auto seen = [&] {
    const std::lock_guard lock(mutex);
    return limits;
  };
  QVERIFY(!core.done(core.node().set_setting("disk_limit", "5GiB")).error);
  QVERIFY(seen() == std::vector<std::uint64_t>{std::uint64_t{5} << 30});
  QVERIFY(!core.node().set_setting("disk_limit", "much").ok());
  QVERIFY(!core.done(core.node().set_setting("disk_limit", "")).error);
  QVERIFY((seen() == std::vector<std::uint64_t>{std::uint64_t{5} << 30, 0}));
  // In the middle of training, too.
  QVERIFY(core.node().start_training({core.fixture().path("text.txt"), 0, 0}).ok());
  QVERIFY(until([&] { return core.node().snapshot()->training.step > 1; }));
  QVERIFY(!core.done(core.node().set_setting("disk_limit", "6GiB")).error);
  QCOMPARE(seen().back(), std::uint64_t{6} << 30);
}

NS_TEST(TestCommands)
#include "test_commands.moc"
