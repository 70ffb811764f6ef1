// The training session with the real compute module on a tiny NeuroLLM: it learns simple text, a kill and a
// resume give the same losses bit for bit, and the memory limit holds.
#include <QtTest>
#include <cmath>

#include "core/data/encoder.h"
#include "core/engine/text_batch.h"
#include "core/platform/process/process_memory.h"
#include "tests/support/test_main.h"
#include "tests/unit/engine/training_fixture.h"

using neuroshard::CancelToken;
using neuroshard::ErrorCode;
using neuroshard::Expected;
using neuroshard::config::DataDirectory;
using neuroshard::config::Setting;
using neuroshard::engine::PrepareOptions;
using neuroshard::engine::SessionInfo;
using neuroshard::engine::SessionMode;
using neuroshard::engine::StepReport;
using neuroshard::engine::TrainingServices;
using neuroshard::engine::TrainingSession;
using neuroshard::testing::TinyNetwork;
using neuroshard::testing::TrainingFixture;

namespace {

TinyNetwork network(std::uint64_t experts, std::uint64_t gamma) {
  TinyNetwork tiny;
  tiny.layers = 2;
  tiny.hidden = 32;
  tiny.head_dim = 8;
  tiny.experts = experts;
  tiny.router_bias_gamma_nano = gamma;
  return tiny;
}

struct ModelRun {
  std::unique_ptr<neuroshard::config::DataDirectory> directory;
  std::unique_ptr<TrainingSession> session;
  Expected<SessionInfo> info = neuroshard::make_error(ErrorCode::Internal, "not prepared");

  ModelRun(TrainingFixture& fixture, const std::string& name, bool text,
           SessionMode mode = SessionMode::Train) {
    auto opened = fixture.open(name);
    NS_CHECK(opened.ok());
    directory = std::move(*opened);
    auto created = TrainingSession::create(
        *directory, TrainingServices{fixture.files(), fixture.clock(), fixture.logger()});
    NS_CHECK(created.ok());
    session = std::move(*created);
    PrepareOptions options;
    options.mode = mode;
    if (text) options.text = fixture.path("text.txt");
    info = session->prepare(options);
  }
  ~ModelRun() { session.reset(); }

  std::vector<double> steps(int count) {
    std::vector<double> losses;
    for (int i = 0; i < count; ++i) {
      const auto report = session->step(CancelToken());
      NS_CHECK(report.ok());
      losses.push_back(report->loss);
    }
    return losses;
  }
};

}  // namespace

class TestTrainingModel : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void learns_simple_text();
  void kill_and_resume_repeats_bit_for_bit_data();
  void kill_and_resume_repeats_bit_for_bit();
  void same_bits_on_two_nodes();
  void text_longer_than_the_trained_window();
  void stop_sequences_end_the_text_before_them();
  void texts_are_the_same_in_any_company();
  void a_text_goes_on_when_its_window_is_lost();
  void log_probabilities_are_those_of_the_whole_window();
  void rounds_work_on_any_part_of_the_weights();
};

void TestTrainingModel::learns_simple_text() {
  TrainingFixture fixture(network(4, 0));
  ModelRun run(fixture, "d", true);
  QVERIFY2(run.info.ok(), run.info.ok() ? "" : run.info.error().describe().c_str());
  QVERIFY(std::string(run.info->compute.gemm) != "");
  double first = 0, last = 0;
  for (int i = 1; i <= 60; ++i) {
    const auto report = run.session->step(CancelToken());
    QVERIFY2(report.ok(), report.ok() ? "" : report.error().describe().c_str());
    QVERIFY(report->balance >= 0.99);
    std::uint64_t routed = 0;
    for (const std::uint64_t count : report->router_load) routed += count;
    QCOMPARE(routed, std::uint64_t{2 * 2 * 128});  // layers · experts per token · tokens
    if (i == 1) first = report->loss;
    last = report->loss;
    if (report->validation) QVERIFY(report->validation->loss > 0 && report->validation->bits_per_byte > 0);
  }
  QVERIFY(std::abs(first - std::log(300.0)) < 0.2);
  QVERIFY2(last < 0.6 * first, qPrintable(QString::number(last)));
}

void TestTrainingModel::kill_and_resume_repeats_bit_for_bit_data() {
  QTest::addColumn<int>("experts");
  QTest::addColumn<qulonglong>("gamma");
  QTest::addColumn<QList<int>>("kills");
  QTest::newRow("mixture") << 4 << 0ull << QList<int>{13};
  QTest::newRow("mixture, bias balancing") << 4 << 1'000'000ull << QList<int>{7, 12};
  QTest::newRow("dense") << 1 << 0ull << QList<int>{3, 16};
}

void TestTrainingModel::kill_and_resume_repeats_bit_for_bit() {
  QFETCH(int, experts);
  QFETCH(qulonglong, gamma);
  QFETCH(QList<int>, kills);
  TrainingFixture fixture(network(static_cast<std::uint64_t>(experts), gamma));
  fixture.settings[neuroshard::config::Setting::MaxMicroBatch] = "3";  // sums of unequal micro-batches
  { ModelRun import(fixture, "fresh", true); }
  fixture.copy("fresh", "uninterrupted");
  fixture.copy("fresh", "killed");
  constexpr int total = 20;
  std::vector<double> expected;
  {
    ModelRun run(fixture, "uninterrupted", false);
    expected = run.steps(total);
  }
  std::vector<double> losses(total);
  for (const int until : kills + QList<int>{total}) {
    ModelRun run(fixture, "killed", false);
    QVERIFY(run.info.ok());
    while (run.session->steps_done() < static_cast<std::uint64_t>(until)) {
      const auto report = run.session->step(CancelToken());
      QVERIFY(report.ok());
      losses[report->step - 1] = report->loss;
    }
  }
  QCOMPARE(losses, expected);
}

void TestTrainingModel::same_bits_on_two_nodes() {
  TrainingFixture fixture(network(2, 0));
  const auto weights = [](ModelRun& run) {
    std::vector<float> all;
    for (std::uint32_t i = 0; i < run.session->stage().slot_count(); ++i) {
      const auto slot = run.session->stage().slot(i);
      all.insert(all.end(), slot.parameters, slot.parameters + slot.count);
    }
    return all;
  };
  // Different node keys, one network: the same model before the first step.
  ModelRun a(fixture, "a", true);
  const std::vector<float> first = weights(a);
  a.session.reset();
  ModelRun b(fixture, "b", true);
  QVERIFY(a.directory->node_key().public_key() != b.directory->node_key().public_key());
  QCOMPARE(weights(b), first);
}

// The oracle computes every token from the whole window without a cache, by the rule of generator.h.
void TestTrainingModel::text_longer_than_the_trained_window() {
  TrainingFixture fixture(network(4, 0));
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
void TestTrainingModel::stop_sequences_end_the_text_before_them() {
  TrainingFixture fixture(network(4, 0));
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
void TestTrainingModel::texts_are_the_same_in_any_company() {
  using neuroshard::engine::GenerateOptions;
  using neuroshard::engine::TextBatch;
  using neuroshard::engine::TextWriter;
  TrainingFixture fixture(network(4, 0));
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

namespace {

// A model whose windows are lost now and then, as when a round ends in a network with parts.
class Forgetful final : public neuroshard::engine::TrainingSession, public neuroshard::engine::TextModel {
 public:
  explicit Forgetful(neuroshard::engine::TrainingSession& inner) : inner_(inner) {}
  int lost = 0;

  Expected<void> open_session(std::uint64_t session, std::uint32_t capacity) override {
    return inner_.text_model().open_session(session, capacity);
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

void TestTrainingModel::a_text_goes_on_when_its_window_is_lost() {
  TrainingFixture fixture(network(4, 0));
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
void TestTrainingModel::log_probabilities_are_those_of_the_whole_window() {
  TrainingFixture fixture(network(4, 0));
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

// Fragments are cut wherever their length falls, in the middle of a slot or over several.
void TestTrainingModel::rounds_work_on_any_part_of_the_weights() {
  TrainingFixture fixture(network(4, 0));
  ModelRun run(fixture, "d", true);
  QVERIFY(run.info.ok());
  neuroshard::engine::RoundModel* const model = run.session->round_model();
  QVERIFY(model != nullptr);
  std::vector<float> whole(static_cast<std::size_t>(model->parameters()));
  QVERIFY(model->read_weights(0, whole).ok());
  const std::size_t P = whole.size();
  for (const auto& [first, count] :
       {std::pair{std::size_t{0}, P}, std::pair{std::size_t{5}, P - 9}, std::pair{P / 3, P / 2},
        std::pair{P - 1, std::size_t{1}}, std::pair{P / 2, std::size_t{7}}}) {
    std::vector<float> part(count);
    QVERIFY(model->read_weights(first, part).ok());
    QVERIFY(std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(first)));
    for (std::size_t i = 0; i < count; ++i) whole[first + i] = part[i] = part[i] + 1;
    QVERIFY(model->write_weights(first, part).ok());
    std::vector<float> now(P);
    QVERIFY(model->read_weights(0, now).ok());
    QVERIFY(now == whole);
  }
}

NS_TEST(TestTrainingModel)
#include "test_training_model.moc"
