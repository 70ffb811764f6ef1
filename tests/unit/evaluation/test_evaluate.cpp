// The sliding window over a stage whose loss is known for each token: every token is scored once, with enough before it.
#include <QtTest>
#include <cmath>
#include <numeric>

#include "core/evaluation/evaluate.h"
#include "tests/support/test_main.h"
#include "tests/unit/train/fake_stage.h"

using namespace neuroshard;
using namespace neuroshard::evaluation;

namespace {

std::shared_ptr<const data::Tokenizer> bytes_only() {
  return std::make_shared<const data::Tokenizer>();
}

NGram some_baseline(data::Encoder& encoder) {
  const auto stream = stream_of(encoder, as_bytes("the sun and the moon and the stars"));
  return NGram::learn({stream.data(), stream.size()}, encoder.tokenizer().vocab_size()).value();
}

std::string letters(std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += static_cast<char>('a' + i * 7 % 26);
  return text;
}

}  // namespace

class TestEvaluate : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void every_token_is_scored_once_data() {
    QTest::addColumn<int>("length");
    QTest::addColumn<int>("window");
    QTest::addColumn<int>("stride");
    for (const int length : {1, 7, 8, 9, 63, 64, 65, 200}) {
      for (const int stride : {1, 3, 4, 8})
        QTest::addRow("%d by %d", length, stride) << length << 8 << stride;
      QTest::addRow("%d, each alone", length) << length << 1 << 1;
    }
  }
  void every_token_is_scored_once() {
    QFETCH(const int, length);
    QFETCH(const int, window);
    QFETCH(const int, stride);
    data::Encoder encoder(bytes_only());
    const NGram baseline = some_baseline(encoder);
    const std::string text = letters(static_cast<std::size_t>(length));
    test::FakeStage stage;
    Options options{static_cast<std::uint32_t>(window), static_cast<std::uint32_t>(stride), 0, 1};
    std::uint64_t passes = 0, planned = 0;
    const auto result =
        evaluate(stage, baseline, encoder, as_bytes(text), options,
                 [&](std::uint64_t done, std::uint64_t total) { passes = done, planned = total; });
    QVERIFY2(result.ok(), result.ok() ? "" : result.error().describe().c_str());
    // The stage's loss of a target is the token before it.
    const auto stream = stream_of(encoder, as_bytes(text));
    const double expected = std::accumulate(stream.begin(), stream.end() - 1, 0.0);
    QVERIFY(std::abs(result->model.nats - expected) < 1e-9 * expected + 1e-9);
    QCOMPARE(result->tokens, static_cast<std::uint64_t>(length));
    QCOMPARE(result->bytes, static_cast<std::uint64_t>(length));
    QCOMPARE(passes, planned);
    double nats = 0;
    for (std::size_t i = 1; i < stream.size(); ++i)
      nats -= baseline.log_probability({stream.data(), i}, stream[i]);
    QVERIFY(std::abs(result->baseline.nats - nats) < 1e-9);
    QVERIFY(std::abs(result->bits_per_byte(result->baseline) - nats / std::log(2.0) / length) < 1e-9);
  }

  // A stage that finds every choice equally good takes the first one.
  void cloze_counts_right_answers() {
    data::Encoder encoder(bytes_only());
    const NGram baseline = some_baseline(encoder);
    std::string text;
    const char* const words[] = {" tree", " moon", " lamp", " ship", " bird"};
    for (int i = 0; i < 200; ++i) text += words[(i * 3 + i / 7) % 5];
    test::FakeStage stage;
    const auto result = evaluate(stage, baseline, encoder, as_bytes(text), {64, 32, 50, 3});
    QVERIFY(result.ok());
    QCOMPARE(result->questions, 50u);
    const auto questions = make_cloze(as_bytes(text), 50, 3);
    // Its loss is the sum of the bytes before the last one: the least spelling wins.
    std::uint32_t right = 0;
    for (const ClozeQuestion& question : questions) {
      std::vector<int> sums;
      for (const std::string& choice : question.choices)
        sums.push_back(std::accumulate(choice.begin(), choice.end() - 1, 0));
      right += static_cast<std::uint32_t>(std::min_element(sums.begin(), sums.end()) - sums.begin()) ==
               question.right;
    }
    QCOMPARE(result->model.cloze_right, right);
    QVERIFY(right > 0 && right < 50);
    // A window of one token sees the last one of the passage.
    const auto narrow = evaluate(stage, baseline, encoder, as_bytes(text), {1, 1, 50, 3});
    QVERIFY2(narrow.ok(), narrow.ok() ? "" : narrow.error().describe().c_str());
    QCOMPARE(narrow->questions, 50u);
  }

  void wrong_requests_are_named() {
    data::Encoder encoder(bytes_only());
    const NGram baseline = some_baseline(encoder);
    test::FakeStage stage;
    QCOMPARE(evaluate(stage, baseline, encoder, {}, {8, 4, 0, 1}).error().code, ErrorCode::InvalidArgument);
    for (const Options& options : {Options{8, 0, 0, 1}, Options{8, 9, 0, 1}, Options{1, 2, 0, 1}})
      QCOMPARE(evaluate(stage, baseline, encoder, as_bytes("text"), options).error().code,
               ErrorCode::InvalidArgument);
    CancelSource cancel;
    cancel.cancel();
    QCOMPARE(
        evaluate(stage, baseline, encoder, as_bytes("text"), {8, 4, 0, 1}, {}, cancel.token()).error().code,
        ErrorCode::Cancelled);
    stage.loss_value = std::nan("");
    QCOMPARE(evaluate(stage, baseline, encoder, as_bytes("text"), {8, 4, 0, 1}).error().code,
             ErrorCode::Corrupt);
  }
};

NS_TEST(TestEvaluate)
#include "test_evaluate.moc"
