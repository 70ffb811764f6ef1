// The KV cache: cached logits equal uncached ones, however the sequence is cut into pieces or stages.
#include <QtTest>

#include "core/compute/sampling.h"
#include "tests/support/test_main.h"
#include "tests/unit/model/session_test.h"

using namespace neuroshard;
using namespace neuroshard::model_test;

namespace {
constexpr double tolerance = 1e-5;
}

class TestGeneration : public QObject {
  Q_OBJECT
 private:
  Module* module_ = nullptr;

  static StageSpec generator(const ModelShape& shape) {
    StageSpec spec = whole_model(shape);
    spec.trainable = false;
    return spec;
  }

 private Q_SLOTS:
  void initTestCase() {
    const Expected<LoadedModule> loaded = load();
    QVERIFY2(loaded.ok(), loaded.ok() ? "" : loaded.error().message.c_str());
    module_ = loaded->module;
  }

  void cached_logits_equal_uncached_ones_data() {
    QTest::addColumn<int>("experts");
    QTest::addColumn<int>("length");
    QTest::newRow("mixture") << 4 << 12;
    QTest::newRow("dense") << 1 << 12;
    QTest::newRow("beyond the training length, over several blocks") << 4 << 150;
  }

  void cached_logits_equal_uncached_ones() {
    QFETCH(int, experts);
    QFETCH(int, length);
    const ModelShape shape = small_shape(static_cast<std::uint32_t>(experts));
    const StagePtr stage = stage_of(*module_, generator(shape), 10);
    QVERIFY(stage != nullptr);
    const auto n = static_cast<std::uint32_t>(length);
    const Batch batch(shape, 1, n, 9);
    std::vector<float> uncached(std::size_t{n} * shape.vocab);
    NS_VERIFY_OK(stage->logits(batch.view, uncached.data()));

    NS_VERIFY_OK(stage->open_session(1, n));
    std::vector<float> logits(shape.vocab);
    for (std::uint32_t position = 0; position < n; ++position) {
      NS_VERIFY_OK(
          stage->extend_session(1, 1, batch.tokens.data() + position, nullptr, nullptr, logits.data()));
      const auto row = uncached.begin() + static_cast<std::ptrdiff_t>(position * shape.vocab);
      const double difference = distance(logits, std::vector<float>(row, row + shape.vocab));
      QVERIFY2(difference < tolerance, qPrintable(QString("position %1: %2").arg(position).arg(difference)));
    }
    const Status full = stage->extend_session(1, 1, batch.tokens.data(), nullptr, nullptr, logits.data());
    QVERIFY(to_error(full).code == ErrorCode::Exhausted);

    NS_VERIFY_OK(stage->open_session(2, n));  // the prompt in uneven pieces
    std::uint32_t done = 0;
    for (const std::uint32_t piece : {5u, 1u, 3u, n - 9}) {
      NS_VERIFY_OK(
          stage->extend_session(2, piece, batch.tokens.data() + done, nullptr, nullptr, logits.data()));
      done += piece;
    }
    const std::vector<float> last(uncached.end() - shape.vocab, uncached.end());
    QVERIFY(distance(logits, last) < tolerance);
    QVERIFY(*std::max_element(last.begin(), last.end()) > 0.01f);
  }

  void sessions_do_not_disturb_each_other() {
    const ModelShape shape = small_shape(4);
    const StagePtr stage = stage_of(*module_, generator(shape), 10);
    const Batch a(shape, 1, 8, 1);
    const Batch b(shape, 1, 8, 2);
    std::vector<float> alone(shape.vocab);
    std::vector<float> mixed(shape.vocab);
    NS_VERIFY_OK(stage->open_session(1, 8));
    NS_VERIFY_OK(stage->extend_session(1, 8, a.tokens.data(), nullptr, nullptr, alone.data()));
    NS_VERIFY_OK(stage->open_session(2, 8));
    NS_VERIFY_OK(stage->open_session(3, 8));
    for (std::uint32_t i = 0; i < 8; ++i) {
      NS_VERIFY_OK(stage->extend_session(3, 1, b.tokens.data() + i, nullptr, nullptr, mixed.data()));
      NS_VERIFY_OK(stage->extend_session(2, 1, a.tokens.data() + i, nullptr, nullptr, mixed.data()));
    }
    QVERIFY(distance(mixed, alone) < tolerance);
    stage->close_session(2);
    QVERIFY(!stage->extend_session(2, 1, a.tokens.data(), nullptr, nullptr, mixed.data()).ok());
    QVERIFY(!stage->open_session(1, 8).ok());  // taken
  }

  void stages_generate_as_the_whole_model() {
    const ModelShape shape = small_shape(4);
    const StagePtr whole = stage_of(*module_, generator(shape), 10);
    StageSpec first = generator(shape);
    first.layer_count = 1;
    first.head = false;
    StageSpec second = generator(shape);
    second.first_layer = 1;
    second.layer_count = 1;
    second.embed = false;
    const StagePtr front = stage_of(*module_, first, 10);
    const StagePtr back = stage_of(*module_, second, 10);
    const Batch batch(shape, 1, 10, 4);
    std::vector<float> expected(shape.vocab);
    std::vector<float> logits(shape.vocab);
    std::vector<float> hidden(std::size_t{10} * shape.hidden);
    for (Stage* stage : {whole.get(), front.get(), back.get()}) NS_VERIFY_OK(stage->open_session(1, 10));
    NS_VERIFY_OK(whole->extend_session(1, 10, batch.tokens.data(), nullptr, nullptr, expected.data()));
    for (std::uint32_t at = 0; at < 10; at += 5) {
      NS_VERIFY_OK(front->extend_session(1, 5, batch.tokens.data() + at, nullptr, hidden.data(), nullptr));
      NS_VERIFY_OK(back->extend_session(1, 5, nullptr, hidden.data(), nullptr, logits.data()));
    }
    QVERIFY(distance(logits, expected) < tolerance);
  }

  void sessions_in_one_call_are_as_alone_data() {
    QTest::addColumn<int>("experts");
    QTest::addColumn<int>("threads");
    QTest::newRow("mixture") << 4 << 2;
    QTest::newRow("dense, one thread") << 1 << 1;
    QTest::newRow("dense") << 1 << 2;
  }

  void sessions_in_one_call_are_as_alone() {
    QFETCH(int, experts);
    QFETCH(int, threads);
    ModelShape shape = small_shape(static_cast<std::uint32_t>(experts));
    shape.hidden = 104;  // fills no vector, and is large enough for several threads
    shape.heads = 13;
    shape.kv_heads = 1;
    shape.ffn = 300;
    NS_VERIFY_OK(module_->set_threads(static_cast<std::uint32_t>(threads)));
    const StagePtr stage = stage_of(*module_, generator(shape), 10);
    QVERIFY(stage != nullptr);
    const QString difference = difference_to_alone(*stage, shape);
    NS_VERIFY_OK(module_->set_threads(2));
    QVERIFY2(difference.isEmpty(), qPrintable(difference));
  }

  // The oracle reads one token at a time and takes the log-softmax of its logits.
  void scores_of_a_prompt_are_those_of_its_logits() {
    ModelShape shape = small_shape(4);
    shape.sequence = 90;
    const StagePtr stage = stage_of(*module_, generator(shape), 10);
    constexpr std::uint32_t n = 80;
    constexpr std::uint32_t top = 3;
    constexpr std::uint32_t vocabulary = 50;
    const Batch batch(shape, 1, n, 6);
    std::vector<std::int32_t> targets(batch.tokens.begin() + 1, batch.tokens.end());
    targets.push_back(-1);
    targets[7] = -1;
    std::vector<double> logprobs(n, 99), top_logprobs(std::size_t{n} * top, 99);
    std::vector<std::int32_t> top_tokens(std::size_t{n} * top, -99);
    std::vector<float> last(shape.vocab), hidden(std::size_t{n} * shape.hidden);
    NS_VERIFY_OK(stage->open_session(1, n));
    for (const std::uint32_t piece : {0u, 50u}) {
      compute::SessionPart part;
      part.session = 1;
      part.n = piece == 0 ? 50 : n - 50;
      part.tokens = batch.tokens.data() + piece;
      part.logits = piece == 0 ? nullptr : last.data();
      part.hidden = hidden.data() + piece * shape.hidden;
      part.scores = {targets.data() + piece,          logprobs.data() + piece,          top, vocabulary,
                     top_tokens.data() + piece * top, top_logprobs.data() + piece * top};
      NS_VERIFY_OK(stage->extend_sessions(1, &part));
    }
    NS_VERIFY_OK(stage->open_session(2, n));
    std::vector<float> logits(shape.vocab);
    const SlotBuffers head = stage->slot(stage->slot_count() - 1);
    const float* const weight = head.parameters + (head.count - std::size_t{shape.vocab} * shape.hidden);
    for (std::uint32_t at = 0; at < n; ++at) {
      NS_VERIFY_OK(stage->extend_session(2, 1, batch.tokens.data() + at, nullptr, nullptr, logits.data()));
      for (const std::uint32_t v : {0u, 17u, shape.vocab - 1}) {
        double sum = 0;
        for (std::uint32_t h = 0; h < shape.hidden; ++h)
          sum += double{hidden[at * shape.hidden + h]} * weight[v * shape.hidden + h];
        QVERIFY(std::abs(sum - logits[v]) < tolerance * 10);
      }
      if (targets[at] < 0) {
        QCOMPARE(logprobs[at], 99.0);
        QCOMPARE(top_tokens[at * top], -99);
        continue;
      }
      const compute::Logprobs expected =
          compute::log_probabilities({logits.data(), logits.size()}, targets[at], top, vocabulary);
      QVERIFY(std::abs(logprobs[at] - expected.chosen) < tolerance);
      for (std::uint32_t i = 0; i < top; ++i) {
        QCOMPARE(top_tokens[at * top + i], expected.top[i].token);
        QVERIFY(std::abs(top_logprobs[at * top + i] - expected.top[i].logprob) < tolerance);
      }
    }
    QVERIFY(distance(last, logits) < tolerance);
  }

  void a_call_that_fails_grows_no_session() {
    const ModelShape shape = small_shape(4);
    const StagePtr stage = stage_of(*module_, generator(shape), 10);
    NS_VERIFY_OK(stage->open_session(1, 2));
    NS_VERIFY_OK(stage->open_session(2, 1));
    const std::int32_t token = 5;
    std::vector<float> logits(shape.vocab), again(shape.vocab);
    std::vector<compute::SessionPart> parts(2);
    for (std::size_t i = 0; i < 2; ++i) {
      parts[i].session = i + 1;
      parts[i].n = 1;
      parts[i].tokens = &token;
    }
    NS_VERIFY_OK(stage->extend_sessions(2, parts.data()));
    QVERIFY(to_error(stage->extend_sessions(2, parts.data())).code == ErrorCode::Exhausted);  // 2 is full
    NS_VERIFY_OK(stage->extend_session(1, 1, &token, nullptr, nullptr, logits.data()));       // 1 is not
    parts[1].session = 1;
    NS_VERIFY_OK(stage->open_session(3, 1));
    QVERIFY(!stage->extend_sessions(2, parts.data()).ok());  // twice the same
    QVERIFY(!stage->extend_sessions(0, parts.data()).ok());
    parts[0].session = 3;
    parts[0].scores.targets = &token;  // without room for the result
    QVERIFY(!stage->extend_sessions(1, parts.data()).ok());
  }

  void a_stage_for_generation_has_no_training_buffers() {
    const ModelShape shape = small_shape(4);
    const StagePtr stage = stage_of(*module_, generator(shape));
    QVERIFY(stage->slot(0).parameters != nullptr);
    QVERIFY(stage->slot(0).gradient == nullptr && stage->slot(0).moment1 == nullptr);
    const Batch batch(shape, 1, 8, 1);
    ForwardMetrics metrics;
    QVERIFY(!stage->forward(1, batch.view, nullptr, &metrics).ok());
    NS_VERIFY_OK(stage->evaluate(batch.view, nullptr, &metrics));
    QVERIFY(metrics.loss_sum > 0);
  }
};

NS_TEST(TestGeneration)
#include "test_generation.moc"
