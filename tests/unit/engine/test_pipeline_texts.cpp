// The compute thread's end of a pipeline of texts: logits, errors, and a wait in which it computes pieces of texts and does
// not train. And the stage beside the training, with the weights of an anchor.
#include <QtTest>

#include "core/engine/anchor_stage.h"
#include "core/engine/pipeline_texts.h"
#include "tests/support/manual_executor.h"
#include "tests/support/test_main.h"
#include "tests/unit/engine/toy_module.h"

using namespace neuroshard;
using namespace neuroshard::engine;

namespace {

constexpr std::uint32_t vocabulary = 5;

compute::StageSpec text_spec() {
  compute::StageSpec spec;
  spec.shape.layers = 1;
  spec.shape.hidden = 8;
  spec.shape.head_dim = 4;
  spec.shape.heads = 2;
  spec.shape.kv_heads = 1;
  spec.shape.ffn = 8;
  spec.shape.experts = spec.shape.experts_per_token = 1;
  spec.shape.vocab = vocabulary;
  spec.shape.sequence = 4;
  spec.layer_count = 1;
  spec.embed = spec.head = true;
  return spec;
}

// A pipeline whose answers the test gives. It runs while the compute thread waits.
struct Bench {
  struct Asked {
    std::uint64_t session = 0;
    std::vector<std::int32_t> tokens, targets;
    PipelineTexts::Answer answer;
  };
  testing::ManualExecutor executor;
  std::shared_ptr<JobQueue> jobs = std::make_shared<JobQueue>();
  PipelineTexts texts;
  std::vector<std::uint64_t> opened, closed;
  std::vector<Asked> asked;
  PipelineTexts::Scores asked_scores;  // of the last session
  std::function<void()> while_it_waits;

  Bench() {
    texts.set_jobs(jobs);
    texts.set_waiting([this] {
      executor.run();
      if (while_it_waits) while_it_waits();
      executor.run();
    });
    listen();
  }
  void listen() {
    PipelineTexts::Listener listener;
    listener.executor = &executor;
    listener.open = [this](std::uint64_t session, std::uint32_t, const PipelineTexts::Scores& scores) {
      opened.push_back(session);
      asked_scores = scores;
    };
    listener.extend = [this](std::uint64_t session, const PipelineTexts::Listener::Piece& piece,
                             PipelineTexts::Answer answer) {
      asked.push_back({session, piece.tokens, piece.targets, std::move(answer)});
    };
    listener.close = [this](std::uint64_t session) { closed.push_back(session); };
    texts.listen(std::move(listener));
  }
  Expected<void> extend(std::vector<compute::SessionPart> parts) {
    return texts.extend_sessions(static_cast<std::uint32_t>(parts.size()), parts.data());
  }
};

struct Window {
  std::vector<std::int32_t> tokens;
  std::vector<float> logits = std::vector<float>(vocabulary);
  compute::SessionPart part(std::uint64_t session) {
    compute::SessionPart part;
    part.session = session;
    part.n = static_cast<std::uint32_t>(tokens.size());
    part.tokens = tokens.data();
    part.logits = logits.data();
    return part;
  }
};

rounds::Anchor anchor_of(float value, std::uint64_t count) {
  const std::vector<float> weights(static_cast<std::size_t>(count), value);
  return rounds::state_in_memory(weights, weights);
}

}  // namespace

class TestPipelineTextsOfEngine : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void each_window_gets_its_logits() {
    Bench bench;
    QVERIFY(bench.texts.open_session(7, 4, {}).ok() && bench.texts.open_session(8, 4, {}).ok());
    Window first{{1, 2, 3}}, second{{4}};
    std::string ran;
    QVERIFY(bench.jobs->training().post([&] { ran += "training "; }) &&
            bench.jobs->texts().post([&] { ran += "text "; }));
    bench.while_it_waits = [&] {
      if (bench.asked.size() != 2 || !bench.asked[0].answer) return;
      // In another order than they were asked.
      bench.asked[1].answer(pipeline::TextDriver::Answer{{0, 1, 2, 3, 4}, {}});
      bench.asked[0].answer(pipeline::TextDriver::Answer{{5, 6, 7, 8, 9}, {}});
      bench.while_it_waits = nullptr;
    };
    QVERIFY(bench.extend({first.part(7), second.part(8)}).ok());
    QCOMPARE(bench.opened, (std::vector<std::uint64_t>{7, 8}));
    QCOMPARE(bench.asked[0].tokens, first.tokens);
    QCOMPARE(bench.asked[1].session, std::uint64_t{8});
    QCOMPARE(first.logits, (std::vector<float>{5, 6, 7, 8, 9}));
    QCOMPARE(second.logits, (std::vector<float>{0, 1, 2, 3, 4}));
    // Weights must not change while a text is written.
    while (bench.jobs->run_text({})) {
    }
    QCOMPARE(ran, std::string("text "));
    bench.texts.close_session(7);
    bench.executor.run();
    QCOMPARE(bench.closed, (std::vector<std::uint64_t>{7}));
  }

  // Positions without a target keep their values. A session with scores has targets for each of its pieces.
  void a_scored_prompt_gets_its_scores() {
    Bench bench;
    const pipeline::TextScores asked{1, vocabulary};
    QVERIFY(bench.texts.open_session(7, 8, asked).ok());
    Window window{{1, 2, 3}};
    const std::vector<std::int32_t> targets{2, -1, 4};
    std::vector<double> logprobs(3, 9), top_logprobs(3, 9);
    std::vector<std::int32_t> top_tokens(3, 9);
    compute::SessionPart part = window.part(7);
    part.logits = nullptr;
    part.scores = {targets.data(), logprobs.data(), 1, vocabulary, top_tokens.data(), top_logprobs.data()};
    bench.while_it_waits = [&] {
      if (bench.asked.empty() || !bench.asked.back().answer) return;
      pipeline::TextDriver::Answer answer{std::vector<float>(vocabulary, 1), {}};
      answer.scores = pipeline::PositionScores(bench.asked.back().tokens.size(), asked);
      answer.scores.logprobs.assign(answer.scores.logprobs.size(), -0.5);
      std::exchange(bench.asked.back().answer, nullptr)(std::move(answer));
    };
    QVERIFY(bench.extend({part}).ok());
    QVERIFY(bench.asked_scores == asked);
    QCOMPARE(bench.asked[0].targets, targets);
    QCOMPARE(logprobs, (std::vector<double>{-0.5, 9, -0.5}));
    QCOMPARE(top_tokens, (std::vector<std::int32_t>{-1, 9, -1}));
    QCOMPARE(top_logprobs, (std::vector<double>{0, 9, 0}));
    Window next{{4, 0}};
    QVERIFY(bench.extend({next.part(7)}).ok());
    QCOMPARE(bench.asked[1].targets, (std::vector<std::int32_t>{-1, -1}));
    QCOMPARE(next.logits, std::vector<float>(vocabulary, 1));
  }

  void a_piece_without_logits_is_not_waited_for() {
    Bench bench;
    Window piece{{1, 2}};
    compute::SessionPart part = piece.part(7);
    part.logits = nullptr;
    QVERIFY(bench.extend({part}).ok());
    bench.executor.run();
    QCOMPARE(bench.asked.size(), std::size_t{1});
    QVERIFY(!bench.asked[0].answer);
  }

  void the_wait_ends_with_an_error_data() {
    QTest::addColumn<int>("code");
    QTest::addColumn<QString>("text");
    QTest::newRow("interrupt") << int(ErrorCode::Cancelled) << "urgent";
    QTest::newRow("round") << int(ErrorCode::Cancelled) << "new round";
    QTest::newRow("lost") << int(ErrorCode::Unavailable) << "part 2";
    QTest::newRow("gone") << int(ErrorCode::Unavailable) << "not connected";
  }
  void the_wait_ends_with_an_error() {
    QFETCH(int, code);
    QFETCH(QString, text);
    const QByteArray row = QTest::currentDataTag();
    Bench bench;
    CancelSource interrupt;
    bench.texts.set_interrupt(interrupt.token());
    bench.while_it_waits = [&] {
      if (row == "interrupt") interrupt.cancel();
      if (row == "gone") bench.texts.listen({});
      if (row == "round") bench.asked.at(0).answer(make_error(ErrorCode::Cancelled, "a new round has begun"));
      if (row == "lost")
        bench.asked.at(0).answer(make_error(ErrorCode::Unavailable, "part 2 does not answer"));
      bench.while_it_waits = nullptr;
    };
    Window window{{1}};
    const auto extended = bench.extend({window.part(7)});
    QVERIFY(!extended.ok());
    QCOMPARE(int(extended.error().code), code);
    QVERIFY2(QString::fromStdString(extended.error().message).contains(text),
             extended.error().message.c_str());
    // An answer that comes too late does no harm.
    if (row == "interrupt")
      bench.asked.at(0).answer(pipeline::TextDriver::Answer{std::vector<float>(vocabulary), {}});
  }

  void it_says_what_it_can_not_do() {
    Bench bench;
    Window window{{1}};
    std::vector<float> hidden(8);
    compute::SessionPart part = window.part(7);
    part.hidden = hidden.data();
    const auto embedded = bench.extend({part});
    QVERIFY(!embedded.ok() && embedded.error().code == ErrorCode::Unsupported);
    QVERIFY(QString::fromStdString(embedded.error().message).contains("embeddings"));
    bench.texts.listen({});
    QVERIFY(!bench.texts.open_session(9, 4, {}).ok());
    QVERIFY(!bench.extend({window.part(7)}).ok());
  }

  void an_anchor_s_weights_are_loaded_when_a_text_needs_them() {
    testing::ToyModule module;
    int made = 0;
    bool memory = true;
    AnchorStage anchor([&]() -> Expected<compute::StagePtr> {
      if (!memory) return make_error(ErrorCode::Exhausted, "no memory");
      ++made;
      compute::StageSpec spec = text_spec();
      spec.trainable = false;
      return compute::make_stage(module, spec);
    });
    QCOMPARE(anchor.stage().error().code, ErrorCode::NotFound);
    const std::uint64_t count = compute::model_parameter_count(text_spec().shape);
    anchor.use(anchor_of(1, count));
    QCOMPARE(made, 0);
    compute::Stage* stage = anchor.stage().value();
    QCOMPARE(stage->slot(0).parameters[0], 1.0f);
    QCOMPARE(stage->slot(stage->slot_count() - 1).parameters[0], 1.0f);
    anchor.use(anchor_of(2, count));
    QCOMPARE(anchor.stage().value(), stage);
    QCOMPARE(stage->slot(0).parameters[0], 2.0f);
    QCOMPARE(made, 1);
    anchor.release();
    memory = false;
    QCOMPARE(anchor.stage().error().code, ErrorCode::Exhausted);
    memory = true;
    QCOMPARE(anchor.stage().value()->slot(0).parameters[0], 2.0f);
    QCOMPARE(made, 2);
    anchor.use(anchor_of(3, count - 1));
    QCOMPARE(anchor.stage().error().code, ErrorCode::Corrupt);
  }
};

NS_TEST(TestPipelineTextsOfEngine)
#include "test_pipeline_texts.moc"
