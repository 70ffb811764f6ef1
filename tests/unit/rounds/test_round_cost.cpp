// The bytes of a round on disk and line, held against the files that a real step makes.
#include <QTest>

#include "core/outer/error_feedback.h"
#include "core/rounds/own_part.h"
#include "core/rounds/round_cost.h"
#include "core/rounds/step.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::rounds;

namespace {

// Counts what is written.
class CountingSpool final : public Spool {
 public:
  class Item final : public SpoolItem {
   public:
    Item(std::unique_ptr<SpoolItem> item, std::uint64_t& written)
        : item_(std::move(item)), written_(written) {}
    Expected<void> write_at(std::uint64_t offset, ByteSpan bytes) override {
      written_ += bytes.size();
      return item_->write_at(offset, bytes);
    }
    Expected<ByteSourcePtr> finish(std::uint64_t bytes) override { return item_->finish(bytes); }

   private:
    std::unique_ptr<SpoolItem> item_;
    std::uint64_t& written_;
  };
  Expected<std::unique_ptr<SpoolItem>> create(std::uint64_t bytes) override {
    NS_ASSIGN_OR_RETURN(auto item, memory_.create(bytes));
    return std::unique_ptr<SpoolItem>(std::make_unique<Item>(std::move(item), written));
  }
  std::uint64_t written = 0;

 private:
  MemorySpool memory_;
};

std::vector<float> deltas(std::size_t count, unsigned seed) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<float>((i * 2654435761u + seed * 40503u) % 2003) / 1e5f - 0.01f;
  return values;
}

}  // namespace

class TestRoundCost : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void temporary_files_are_those_of_a_real_round_data() {
    QTest::addColumn<int>("codec");
    QTest::addColumn<int>("contributors");
    QTest::newRow("int8, one") << int(outer::Codec::Int8) << 1;
    QTest::newRow("int8, four") << int(outer::Codec::Int8) << 4;
    QTest::newRow("fp32, seven") << int(outer::Codec::Fp32) << 7;
    QTest::newRow("int4, two groups") << int(outer::Codec::Int4) << 20;
    QTest::newRow("int4, six groups") << int(outer::Codec::Int4) << 50;
    QTest::newRow("topk, four") << int(outer::Codec::TopK) << 4;
  }
  void temporary_files_are_those_of_a_real_round() {
    QFETCH(const int, codec);
    QFETCH(const int, contributors);
    constexpr std::size_t P = 40'000;
    RoundShape shape;
    shape.values = P;
    shape.codec.codec = static_cast<outer::Codec>(codec);
    shape.error_feedback = shape.codec.codec == outer::Codec::TopK;
    shape.contributors = static_cast<std::size_t>(contributors);
    OuterRules rules;
    rules.codec = shape.codec;
    rules.aggregation.sparse = shape.error_feedback;

    CountingSpool spool;
    std::vector<StepInput> inputs;
    for (int i = 0; i < contributors; ++i) {
      const std::vector<float> delta = deltas(P, static_cast<unsigned>(i));
      StepInput input;
      input.id[0] = static_cast<std::uint8_t>(i + 1);
      input.tokens = 1000;
      const auto own = outer::encode(rules.codec, delta);
      QVERIFY(own.ok());
      if (i == 0 && shape.error_feedback) {
        outer::ErrorFeedback feedback(P, 0.95f, spool);
        const auto bytes = in_memory(
            Bytes(as_bytes(Span<const float>(delta)).begin(), as_bytes(Span<const float>(delta)).end()));
        input.payload = feedback.encode(rules.codec, outer::values_of(bytes, 0, P)).value();
      } else {
        // As the fetcher and the trainer do.
        auto item = spool.create(own->size()).value();
        QVERIFY(item->write_at(0, *own).ok());
        input.payload = item->finish(own->size()).value();
      }
      inputs.push_back(std::move(input));
    }
    // The weights at the boundary.
    const auto local = spool.create(P * sizeof(float)).value();
    QVERIFY(local->write_at(0, Bytes(P * sizeof(float))).ok());
    const Anchor before = state_in_memory(std::vector<float>(P, 1.0f), std::vector<float>(P, 0.0f));
    const auto step =
        make_step(rules, anchor_identity(Hash256{1}, rules, 0, 2), *before, inputs, {100'000}, spool);
    QVERIFY2(step.ok(), step.ok() ? "" : step.error().describe().c_str());
    QVERIFY((*step)->report->counted > 0);
    const std::uint64_t said = round_cost(shape).temporary;
    qInfo("MEASURED %llu bytes written, %llu said", static_cast<unsigned long long>(spool.written),
          static_cast<unsigned long long>(said));
    QVERIFY(spool.written <= said);
    QVERIFY(spool.written >= said * 95 / 100);
  }

  void the_line_has_the_payloads_of_the_others() {
    RoundShape shape;
    shape.values = 1'000'000;
    shape.contributors = 5;
    const RoundCost cost = round_cost(shape);
    QCOMPARE(cost.sent, 4 * outer::max_payload_bytes(shape.codec, shape.values));
    QCOMPARE(cost.received, cost.sent);
    shape.contributors = 1;
    QCOMPARE(round_cost(shape).sent, std::uint64_t{0});
  }

  void a_small_model_writes_what_a_restart_needs_and_nothing_else() {
    RoundShape shape;
    shape.values = 100'000;
    const RoundCost cost = round_cost(shape);
    QCOMPARE(written_bytes(cost, cost.resident), cost.kept);
    QCOMPARE(written_bytes(cost, cost.resident - 1), cost.kept + cost.temporary);
  }
};

NS_TEST(TestRoundCost)
#include "test_round_cost.moc"
