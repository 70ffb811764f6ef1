// The training session with the real compute module on a tiny NeuroLLM: it learns simple text, and a kill and a
// resume give the same losses bit for bit.
#include <QtTest>
#include <cmath>

#include "tests/support/test_main.h"
#include "tests/unit/engine/model_run.h"

using neuroshard::CancelToken;
using neuroshard::testing::ModelRun;
using neuroshard::testing::tiny_network;
using neuroshard::testing::TrainingFixture;

class TestTrainingModel : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void learns_simple_text();
  void kill_and_resume_repeats_bit_for_bit_data();
  void kill_and_resume_repeats_bit_for_bit();
  void same_bits_on_two_nodes();
  void rounds_work_on_any_part_of_the_weights();
};

void TestTrainingModel::learns_simple_text() {
  TrainingFixture fixture(tiny_network(4, 0));
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
  TrainingFixture fixture(tiny_network(static_cast<std::uint64_t>(experts), gamma));
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
  TrainingFixture fixture(tiny_network(2, 0));
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

// Fragments are cut wherever their length falls, in the middle of a slot or over several.
void TestTrainingModel::rounds_work_on_any_part_of_the_weights() {
  TrainingFixture fixture(tiny_network(4, 0));
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
    model->weights_written();
    std::vector<float> now(P);
    QVERIFY(model->read_weights(0, now).ok());
    QVERIFY(now == whole);
  }
}

NS_TEST(TestTrainingModel)
#include "test_training_model.moc"
