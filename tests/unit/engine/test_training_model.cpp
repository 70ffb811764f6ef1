// The training session with the real compute module on a tiny NeuroLLM: it learns simple text, a kill and a
// resume give the same losses bit for bit, and the memory limit holds.
#include <QtTest>

#include "core/platform/process_memory.h"
#include "tests/unit/engine/training_fixture.h"

using neuroshard::CancelToken;
using neuroshard::ErrorCode;
using neuroshard::Expected;
using neuroshard::engine::DataDirectory;
using neuroshard::engine::PrepareOptions;
using neuroshard::engine::SessionInfo;
using neuroshard::engine::SessionMode;
using neuroshard::engine::Setting;
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

struct Run {
  std::unique_ptr<DataDirectory> directory;
  std::unique_ptr<TrainingSession> session;
  Expected<SessionInfo> info = neuroshard::make_error(ErrorCode::Internal, "not prepared");

  Run(TrainingFixture& fixture, const std::string& name, bool text, SessionMode mode = SessionMode::Train) {
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
  ~Run() { session.reset(); }

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
};

void TestTrainingModel::learns_simple_text() {
  TrainingFixture fixture(network(4, 0));
  Run run(fixture, "d", true);
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
  fixture.settings[Setting::MaxMicroBatch] = "3";  // sums of unequal micro-batches
  { Run import(fixture, "fresh", true); }
  fixture.copy("fresh", "uninterrupted");
  fixture.copy("fresh", "killed");
  constexpr int total = 20;
  std::vector<double> expected;
  {
    Run run(fixture, "uninterrupted", false);
    expected = run.steps(total);
  }
  std::vector<double> losses(total);
  for (const int until : kills + QList<int>{total}) {
    Run run(fixture, "killed", false);
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
  const auto weights = [](Run& run) {
    std::vector<float> all;
    for (std::uint32_t i = 0; i < run.session->stage().slot_count(); ++i) {
      const auto slot = run.session->stage().slot(i);
      all.insert(all.end(), slot.parameters, slot.parameters + slot.count);
    }
    return all;
  };
  // Different node keys, one network: the same model before the first step.
  Run a(fixture, "a", true);
  const std::vector<float> first = weights(a);
  a.session.reset();
  Run b(fixture, "b", true);
  QVERIFY(a.directory->node_key().public_key() != b.directory->node_key().public_key());
  QCOMPARE(weights(b), first);
}

QTEST_GUILESS_MAIN(TestTrainingModel)
#include "test_training_model.moc"
