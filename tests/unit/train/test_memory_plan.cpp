// The memory plan's promises: it stays under the limit, takes the largest micro-batch it may, and
// says how much is missing when nothing fits.
#include <QtTest>
#include <limits>

#include "core/train/memory_plan.h"
#include "tests/support/test_main.h"

using neuroshard::ErrorCode;
namespace train = neuroshard::train;

namespace {
constexpr std::uint64_t mib = 1u << 20;

train::MemoryNeeds needs() {
  train::MemoryNeeds n;
  n.baseline = 300 * mib;
  n.parameters = 40 * mib;
  n.gradients = 40 * mib;
  n.moments = 80 * mib;
  n.snapshot_whole = 120 * mib;
  n.snapshot_slot = 10 * mib;
  n.data = 20 * mib;
  n.margin = 30 * mib;
  n.workspace = 10 * mib;
  n.activation_per_sample = 20 * mib;
  return n;
}
}  // namespace

class TestMemoryPlan : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void micro_batch_follows_the_formula();
  void plan_by_limit_data();
  void plan_by_limit();
  void too_small_says_what_is_missing();
  void absurd_estimates_do_not_wrap();
  void zero_is_refused();
  void what_waits_for_gradients_of_weights_is_more();
};

void TestMemoryPlan::micro_batch_follows_the_formula() {
  QCOMPARE(train::choose_micro_batch(0, 20, 8), 1u);
  QCOMPARE(train::choose_micro_batch(133, 20, 8), 1u);  // 0.3·133 / 20 = 1.995
  QCOMPARE(train::choose_micro_batch(134, 20, 8), 2u);
  QCOMPARE(train::choose_micro_batch(1000000, 20, 8), 8u);
  QCOMPARE(train::choose_micro_batch(1000000, 20, 3), 3u);
  QCOMPARE(train::choose_micro_batch(std::numeric_limits<std::uint64_t>::max(), 1, 8), 8u);
}

void TestMemoryPlan::plan_by_limit_data() {
  QTest::addColumn<quint64>("limit_mib");
  QTest::addColumn<bool>("whole_snapshot");
  QTest::addColumn<quint64>("fixed_mib");
  QTest::addColumn<quint32>("micro_batch");
  // The fixed parts are 640 MiB with the whole snapshot, 530 MiB slot by slot; one sequence needs 20 MiB
  // more.
  QTest::newRow("barely, slot by slot") << quint64{550} << false << quint64{530} << 1u;
  QTest::newRow("slot by slot, almost enough") << quint64{659} << false << quint64{530} << 1u;
  QTest::newRow("whole snapshot just fits") << quint64{660} << true << quint64{640} << 1u;
  QTest::newRow("two") << quint64{774} << true << quint64{640} << 2u;
  QTest::newRow("eight") << quint64{1174} << true << quint64{640} << 8u;
  QTest::newRow("never more than eight") << quint64{100000} << true << quint64{640} << 8u;
}

void TestMemoryPlan::plan_by_limit() {
  QFETCH(quint64, limit_mib);
  QFETCH(bool, whole_snapshot);
  QFETCH(quint64, fixed_mib);
  QFETCH(quint32, micro_batch);
  const auto plan = train::plan_memory(needs(), limit_mib * mib);
  QVERIFY(plan.ok());
  QCOMPARE(plan->whole_snapshot, whole_snapshot);
  QCOMPARE(plan->fixed, std::uint64_t{fixed_mib * mib});
  QCOMPARE(plan->micro_batch, std::uint32_t{micro_batch});
  QVERIFY(plan->fixed + plan->micro_batch * needs().activation_per_sample <= plan->limit);
  QCOMPARE(plan->expected, plan->fixed - needs().margin + plan->micro_batch * needs().activation_per_sample);
}

void TestMemoryPlan::too_small_says_what_is_missing() {
  const auto plan = train::plan_memory(needs(), 500 * mib);
  QVERIFY(!plan.ok());
  QCOMPARE(plan.error().code, ErrorCode::Exhausted);
  const std::string& message = plan.error().message;
  QVERIFY2(message.find("500 MiB: 50 MiB are missing") != std::string::npos, message.c_str());
  QVERIFY2(message.find("at least 550 MiB") != std::string::npos, message.c_str());
  // And what it says is enough is enough.
  QVERIFY(train::plan_memory(needs(), 550 * mib).ok());
  QVERIFY(!train::plan_memory(needs(), 550 * mib - 1).ok());
}

void TestMemoryPlan::absurd_estimates_do_not_wrap() {
  train::MemoryNeeds n = needs();
  n.parameters = std::numeric_limits<std::uint64_t>::max() - 5;
  QCOMPARE(train::plan_memory(n, 1000 * mib).error().code, ErrorCode::Exhausted);
}

void TestMemoryPlan::zero_is_refused() {
  QCOMPARE(train::plan_memory(needs(), 0).error().code, ErrorCode::InvalidArgument);
  QCOMPARE(train::plan_memory(needs(), 1000 * mib, 0).error().code, ErrorCode::InvalidArgument);
}

// Micro-batches of a pipeline: 20 MiB each, and 15 MiB more for three of them.
void TestMemoryPlan::what_waits_for_gradients_of_weights_is_more() {
  train::MemoryNeeds n = needs();
  n.most_deferred = 3;
  n.deferred_per_sample = 15 * mib;
  QCOMPARE(train::activation_bytes(n, 1), 35 * mib);
  QCOMPARE(train::activation_bytes(n, 5), (5 * 20 + 3 * 15) * mib);
  // The fixed parts are 640 MiB, and 530 MiB slot by slot.
  QVERIFY(!train::plan_memory(n, 565 * mib - 1).ok());
  QCOMPARE(train::plan_memory(n, 565 * mib)->micro_batch, 1u);
  // 0.3 of what is left: 145 MiB for five.
  const auto five = train::plan_memory(n, 640 * mib + 145 * mib * 10 / 3 + 1);
  QCOMPARE(five->micro_batch, 5u);
  QCOMPARE(five->expected, five->fixed - n.margin + 145 * mib);
  QCOMPARE(train::plan_memory(n, 640 * mib + 144 * mib * 10 / 3)->micro_batch, 4u);
}

NS_TEST(TestMemoryPlan)
#include "test_memory_plan.moc"
