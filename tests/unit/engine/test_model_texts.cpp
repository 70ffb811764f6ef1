// Texts that a trained tiny NeuroLLM writes: the same as without a cache, in any company, and after its window is lost.
#include <QtTest>
#include <cmath>

#include "core/data/encoder.h"
#include "core/engine/text_batch.h"
#include "tests/support/test_main.h"
#include "tests/unit/engine/model_run.h"

using neuroshard::CancelToken;
using neuroshard::ErrorCode;
using neuroshard::Expected;
using neuroshard::testing::ModelRun;
using neuroshard::testing::tiny_network;
using neuroshard::testing::TrainingFixture;
namespace compute = neuroshard::compute;
namespace data = neuroshard::data;

namespace {

// A model whose windows are lost now and then, as when a round ends in a network with parts.
class Forgetful final : public neuroshard::engine::TrainingSession, public neuroshard::engine::TextModel {
 public:
  explicit Forgetful(neuroshard::engine::TrainingSession& inner) : inner_(inner) {}
  int lost = 0;

  Expected<void> open_session(std::uint64_t session, std::uint32_t capacity, const Scores& scores) override {
    return inner_.text_model().open_session(session, capacity, scores);
  }
  Expected<void> extend_sessions(std::uint32_t count, const compute::SessionPart* parts) override {
    if (++calls_ % 7 != 0) return inner_.text_model().extend_sessions(count, parts);
    ++lost;
    return make_error(ErrorCode::Cancelled, "a new round has begun");
  }
  void close_session(std::uint64_t session) override { inner_.text_model().close_session(session); }

  Expected<neuroshard::engine::SessionInfo> prepare(
      const neuroshard::engine::PrepareOptions& options) override {
    return inner_.prepare(options);
  }
  Expected<neuroshard::engine::StepReport> step(const CancelToken& cancel) override {
    return inner_.step(cancel);
  }
  Expected<neuroshard::engine::Validation> evaluate(bool complete, const CancelToken& cancel) override {
    return inner_.evaluate(complete, cancel);
  }
  Expected<std::string> save() override { return inner_.save(); }
  Expected<void> finish() override { return inner_.finish(); }
  std::uint64_t steps_done() const override { return inner_.steps_done(); }
  const neuroshard::engine::SessionInfo& info() const override { return inner_.info(); }
  compute::Stage& stage() override { return inner_.stage(); }
  TextModel& text_model() override { return *this; }
  const data::Tokenizer& tokenizer() const override { return inner_.tokenizer(); }
  neuroshard::engine::TrainingHistory& history() override { return inner_.history(); }

 private:
  neuroshard::engine::TrainingSession& inner_;
  int calls_ = 0;
};

}  // namespace

class TestModelTexts : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void text_longer_than_the_trained_window();
  void stop_sequences_end_the_text_before_them();
  void texts_are_the_same_in_any_company();
  void a_text_goes_on_when_its_window_is_lost();
  void log_probabilities_are_those_of_the_whole_window();
};

// The oracle computes every token from the whole window without a cache, by the rule of generator.h.
void TestModelTexts::text_longer_than_the_trained_window() {
  TrainingFixture fixture(tiny_network(4, 0));
  ModelRun run(fixture, "d", true);
  QVERIFY(run.info.ok());
  run.steps(30);
  const std::size_t sequence = run.info->shape.sequence;
  neuroshard::engine::GenerateOptions options;
  options.prompt = "the";
  options.max_tokens = static_cast<std::uint32_t>(2 * sequence + 5);
  options.sampling.temperature = 0;
  const auto generated = neuroshard::engine::generate(*run.session, fixture.clock(), options);
  QVERIFY2(generated.ok(), generated.ok() ? "" : generated.error().describe().c_str());

  const auto& tokenizer = run.session->tokenizer();
  std::vector<neuroshard::data::TokenId> ids;
  neuroshard::data::Encoder(std::shared_ptr<const neuroshard::data::Tokenizer>(&tokenizer, [](auto*) {
  })).encode(neuroshard::as_bytes(options.prompt), &ids);
  std::vector<std::int32_t> window(ids.begin(), ids.end());
  std::string expected;
  const std::uint32_t vocabulary = run.info->shape.vocab;
  for (std::uint32_t i = 0; i < generated->tokens; ++i) {
    if (window.size() > sequence) window.erase(window.begin(), window.end() - (sequence - sequence / 4));
    neuroshard::compute::MicroBatch batch;
    batch.batch = 1;
    batch.sequence = static_cast<std::uint32_t>(window.size());
    batch.tokens = window.data();
    std::vector<float> logits(window.size() * vocabulary);
    QVERIFY(run.session->stage().logits(batch, logits.data()).ok());
    const float* const last = logits.data() + (window.size() - 1) * vocabulary;
    std::int32_t best = static_cast<std::int32_t>(neuroshard::data::eos_token);
    for (std::uint32_t id = neuroshard::data::first_byte_token; id < tokenizer.vocab_size(); ++id) {
      if (last[id] > last[best]) best = static_cast<std::int32_t>(id);
    }
    window.push_back(best);
    if (best == static_cast<std::int32_t>(neuroshard::data::eos_token)) break;
    expected += neuroshard::as_text(tokenizer.token_bytes(static_cast<neuroshard::data::TokenId>(best)));
  }
  QVERIFY(generated->ended || generated->tokens == options.max_tokens);
  QCOMPARE(generated->text, expected);
}

// One letter a token: a sequence of three lies across tokens, wherever it begins.
void TestModelTexts::stop_sequences_end_the_text_before_them() {
  TrainingFixture fixture(tiny_network(4, 0));
  ModelRun run(fixture, "d", true);
  QVERIFY(run.info.ok());
  run.steps(30);
  neuroshard::engine::GenerateOptions options;
  options.prompt = "the";
  options.max_tokens = 40;
  options.seed = 3;
  options.logprobs = 2;
  std::string shown;
  std::vector<neuroshard::engine::WrittenToken> tokens;
  options.on_piece = [&](const neuroshard::engine::WrittenPiece& piece) {
    shown += piece.text;
    tokens.insert(tokens.end(), piece.tokens.begin(), piece.tokens.end());
  };
  const auto whole = neuroshard::engine::generate(*run.session, fixture.clock(), options);
  QVERIFY(whole.ok() && whole->text.size() > 12);
  QCOMPARE(shown, whole->text);
  QCOMPARE(tokens.size(), std::size_t{whole->tokens});
  for (std::size_t at = 1; at < 9; ++at) {
    const std::string stop = whole->text.substr(at, 3);
    const std::size_t first = whole->text.find(stop);
    shown.clear();
    tokens.clear();
    options.stop = {"never in a text \x01", stop};
    const auto cut = neuroshard::engine::generate(*run.session, fixture.clock(), options);
    QVERIFY(cut.ok() && cut->at_stop && !cut->ended);
    QCOMPARE(cut->text, whole->text.substr(0, first));
    QCOMPARE(shown, cut->text);  // nothing of the sequence was shown
    QVERIFY(cut->tokens < whole->tokens && tokens.size() <= cut->tokens);
  }
  options.stop = {"never in a text \x01"};
  shown.clear();
  QCOMPARE(neuroshard::engine::generate(*run.session, fixture.clock(), options)->text, whole->text);
  QCOMPARE(shown, whole->text);  // what may begin a sequence is shown at the end
  options.stop = {""};
  QVERIFY(!neuroshard::engine::generate(*run.session, fixture.clock(), options).ok());
}

// Texts of different lengths that join one after the other, some of them longer than the window.
void TestModelTexts::texts_are_the_same_in_any_company() {
  using neuroshard::engine::GenerateOptions;
  using neuroshard::engine::TextBatch;
  using neuroshard::engine::TextWriter;
  TrainingFixture fixture(tiny_network(4, 0));
  ModelRun run(fixture, "d", true);
  QVERIFY(run.info.ok());
  run.steps(30);
  const std::vector<std::string> prompts{"the", "a cat that ran", "", "one two three four five six seven",
                                         "x"};
  std::vector<std::shared_ptr<TextWriter>> texts;
  std::vector<std::string> alone;
  for (std::size_t i = 0; i < 10; ++i) {
    GenerateOptions options;
    options.prompt = prompts[i % prompts.size()];
    options.seed = i + 1;
    options.max_tokens = static_cast<std::uint32_t>(5 + i * run.info->shape.sequence / 4);
    const auto text = neuroshard::engine::generate(*run.session, fixture.clock(), options);
    QVERIFY(text.ok());
    alone.push_back(text->text);
    texts.push_back(std::make_shared<TextWriter>(options));
  }
  TextBatch batch(fixture.clock());
  TextBatch::Hooks hooks;
  std::size_t joined = 0, asked = 0, done = 0;
  hooks.arrivals = [&] {
    std::vector<std::shared_ptr<TextWriter>> now;
    if (asked++ % 3 == 0 && joined < texts.size()) now.push_back(texts[joined++]);
    return now;
  };
  hooks.on_done = [&](const auto&, const Expected<void>& outcome) { done += outcome.ok() ? 1 : 0; };
  hooks.turn_over = [&] { return asked % 5 == 0; };
  while (done < texts.size()) batch.write(*run.session, 1, hooks);  // the windows stay between the turns
  for (std::size_t i = 0; i < texts.size(); ++i) QCOMPARE(texts[i]->result().text, alone[i]);
}

void TestModelTexts::a_text_goes_on_when_its_window_is_lost() {
  TrainingFixture fixture(tiny_network(4, 0));
  ModelRun run(fixture, "d", true);
  QVERIFY(run.info.ok());
  run.steps(30);
  neuroshard::engine::GenerateOptions options;
  options.prompt = "a cat that ran";
  options.seed = 3;
  options.max_tokens = 20;
  const auto expected = neuroshard::engine::generate(*run.session, fixture.clock(), options);
  QVERIFY(expected.ok());
  Forgetful forgetful(*run.session);
  const auto text = neuroshard::engine::generate(forgetful, fixture.clock(), options);
  QVERIFY2(text.ok(), text.ok() ? "" : text.error().message.c_str());
  QVERIFY(forgetful.lost >= 2);
  QCOMPARE(text->text, expected->text);
}

// The oracle computes the log-softmax of every position from the whole window without a cache.
void TestModelTexts::log_probabilities_are_those_of_the_whole_window() {
  TrainingFixture fixture(tiny_network(4, 0));
  // In bf16 a token alone and the same one in its window differ in the third digit.
  fixture.settings[neuroshard::config::Setting::Precision] = "fp32";
  ModelRun run(fixture, "d", true);
  QVERIFY(run.info.ok());
  run.steps(30);
  neuroshard::engine::GenerateOptions options;
  options.prompt_tokens = {110, 111, 42, 126, 114, 111};
  options.max_tokens = 2;
  options.logprobs = 3;
  options.echo = true;
  options.sampling.temperature = 5;  // and a penalty: neither changes what is reported
  options.sampling.repetition_penalty = 3;
  std::vector<neuroshard::engine::WrittenToken> tokens;
  std::vector<bool> of_prompt;
  options.on_piece = [&](const neuroshard::engine::WrittenPiece& piece) {
    for (const auto& token : piece.tokens) {
      tokens.push_back(token);
      of_prompt.push_back(piece.of_prompt);
    }
  };
  const auto generated = neuroshard::engine::generate(*run.session, fixture.clock(), options);
  QVERIFY2(generated.ok(), generated.ok() ? "" : generated.error().describe().c_str());
  QCOMPARE(tokens.size(), options.prompt_tokens.size() + generated->tokens);
  QVERIFY(!tokens[0].logprobs);
  std::vector<std::int32_t> window;
  for (const auto& token : tokens) window.push_back(token.token);
  neuroshard::compute::MicroBatch batch;
  batch.batch = 1;
  batch.sequence = static_cast<std::uint32_t>(window.size());
  batch.tokens = window.data();
  const std::uint32_t vocabulary = run.info->shape.vocab;
  std::vector<float> logits(window.size() * vocabulary);
  QVERIFY(run.session->stage().logits(batch, logits.data()).ok());
  for (std::size_t i = 1; i < window.size(); ++i) {
    QCOMPARE(of_prompt[i], i < options.prompt_tokens.size());
    const float* const row = logits.data() + (i - 1) * vocabulary;
    double sum = 0;
    for (std::uint32_t id = 0; id < vocabulary; ++id) sum += std::exp(double{row[id]});
    const double expected = double{row[window[i]]} - std::log(sum);
    QVERIFY(tokens[i].logprobs.has_value());
    QVERIFY2(std::abs(tokens[i].logprobs->chosen - expected) < 1e-4, qPrintable(QString::number(expected)));
    QCOMPARE(tokens[i].logprobs->top.size(), std::size_t{3});
    QVERIFY(tokens[i].logprobs->top[0].logprob >= tokens[i].logprobs->chosen - 1e-9);
  }
  options.prompt_tokens.assign(run.info->shape.sequence + 1, 42);
  QCOMPARE(neuroshard::engine::generate(*run.session, fixture.clock(), options).error().code,
           neuroshard::ErrorCode::Denied);
  options.prompt_tokens = {run.info->vocabulary};
  QCOMPARE(neuroshard::engine::generate(*run.session, fixture.clock(), options).error().code,
           neuroshard::ErrorCode::InvalidArgument);
}

NS_TEST(TestModelTexts)
#include "test_model_texts.moc"
