// The held-out loss of a model in parts: measured beside the training, all of it with the weights of one round.
#include <QtTest>

#include "core/engine/part_evaluation.h"
#include "tests/support/manual_executor.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::engine;

namespace {

// A pipeline whose answers the test gives.
struct Bench {
  testing::ManualExecutor executor;
  PipelineTexts texts;
  std::vector<PipelineTexts::Losses> asked;
  PartEvaluation evaluation{texts};

  Bench() {
    texts.set_round(4);
    PipelineTexts::Listener listener;
    listener.executor = &executor;
    listener.evaluate = [this](PipelineTexts::Losses losses) { asked.push_back(std::move(losses)); };
    texts.listen(std::move(listener));
  }
  void begin() {
    evaluation.begin({3, {{2, {1, 2, 3, 4, 5, 6}, {2, 3, -1, 5, 6, -1}}, {1, {7, 8, 9}, {8, 9, -1}}}, 12});
    executor.run();
  }
  // Of the oldest question.
  void answer(Expected<pipeline::Sums> with) {
    const PipelineTexts::Losses one = std::move(asked.front());
    asked.erase(asked.begin());
    one.done(std::move(with));
    executor.run();
  }
  void end_round() { answer(make_error(ErrorCode::Cancelled, "a new round has begun")); }
};

pipeline::Sums sums(double loss) {
  return {9, 6, loss, 0, 0};
}

}  // namespace

class TestPartEvaluation : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void the_mean_over_all_targets() {
    Bench bench;
    QVERIFY(bench.evaluation.is_due());
    bench.begin();
    QVERIFY(!bench.evaluation.is_due() && !bench.evaluation.take());
    QCOMPARE(bench.asked.size(), std::size_t{1});
    QCOMPARE(bench.asked[0].length, 3u);
    QCOMPARE(bench.asked[0].pieces.size(), std::size_t{2});
    bench.answer(sums(18));
    const auto measured = bench.evaluation.take();
    QVERIFY(measured && measured->ok());
    QCOMPARE((*measured)->loss, 3.0);
    QCOMPARE((*measured)->target_tokens, std::uint64_t{6});
    QCOMPARE((*measured)->bits_per_byte, 18 / std::log(2.0) / 12);
    QVERIFY(!bench.evaluation.take());
    // Not again before the weights are others.
    QVERIFY(!bench.evaluation.is_due());
    bench.texts.set_round(5);
    QVERIFY(bench.evaluation.is_due());
  }

  void a_new_round_begins_it_anew() {
    Bench bench;
    bench.begin();
    bench.texts.set_round(5);
    bench.end_round();
    QVERIFY(!bench.evaluation.take());
    bench.answer(sums(12));
    const auto measured = bench.evaluation.take();
    QVERIFY(measured && measured->ok());
    QCOMPARE((*measured)->loss, 2.0);
    QVERIFY(!bench.evaluation.is_due());
  }

  void rounds_that_are_too_short() {
    Bench bench;
    bench.begin();
    for (std::uint32_t i = 0; i <= PartEvaluation::most_restarts; ++i) {
      QVERIFY(!bench.evaluation.take());
      bench.end_round();
    }
    const auto result = bench.evaluation.take();
    QVERIFY(result && !result->ok());
    QCOMPARE(result->error().code, ErrorCode::Cancelled);
    QVERIFY(bench.asked.empty() && bench.evaluation.is_due());
  }

  void a_part_that_does_not_answer() {
    Bench bench;
    bench.begin();
    bench.answer(make_error(ErrorCode::Unavailable, "part 2 does not answer"));
    const auto result = bench.evaluation.take();
    QVERIFY(result && !result->ok());
    QVERIFY(result->error().message.find("part 2") != std::string::npos);
    QVERIFY(bench.evaluation.is_due());
  }

  // Its question has no answer any more.
  void the_pipeline_is_gone() {
    Bench bench;
    bench.begin();
    bench.texts.listen({});
    const auto result = bench.evaluation.take();
    QVERIFY(result && !result->ok());
    QCOMPARE(result->error().code, ErrorCode::Unavailable);
    bench.begin();
    const auto again = bench.evaluation.take();
    QVERIFY(again && !again->ok());
  }

  void an_answer_after_its_end_does_no_harm() {
    Bench bench;
    {
      PartEvaluation other(bench.texts);
      other.begin({1, {{1, {1}, {2}}}, 1});
      bench.executor.run();
    }
    bench.end_round();
    QVERIFY(bench.asked.empty());
  }
};

NS_TEST(TestPartEvaluation)
#include "test_part_evaluation.moc"
