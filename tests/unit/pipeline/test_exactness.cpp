// A pipeline trains what one process trains: the same gradients, the same losses, each micro-batch once.
#include <QtTest>

#include "tests/support/pipeline_lab.h"
#include "tests/support/test_main.h"
#include "tests/support/time.h"

using namespace neuroshard;
using namespace neuroshard::model_test;
using namespace neuroshard::test;
using pipeline::WireFormat;

namespace {

constexpr std::uint32_t sequences = 2;

ModelShape four_layers(std::uint32_t experts) {
  ModelShape shape = small_shape(experts);
  shape.layers = 4;
  return shape;
}

pipeline::StageSchedule::Limits limits_of(const ModelShape& shape, std::uint64_t micro_batches_a_step) {
  pipeline::StageSchedule::Limits limits;
  limits.batch_tokens = micro_batches_a_step * sequences * shape.sequence;
  return limits;
}

// The same micro-batches in one process, steps of `a_step` of them. Losses by micro-batch.
struct OneProcess {
  StagePtr stage;
  std::vector<double> losses;

  OneProcess(Module& module, const ModelShape& shape) : stage(stage_of(module, whole_model(shape))) {}
  Status train(const ModelShape& shape, std::uint64_t seed, std::uint64_t count, std::uint64_t a_step) {
    for (std::uint64_t i = 0; i < count; ++i) {
      const Batch batch = LabDriver::batch(shape, seed, i, sequences);
      ForwardMetrics metrics;
      Status status = stage->forward(i + 1, batch.view, nullptr, &metrics);
      if (status.ok()) status = stage->backward(i + 1, nullptr, nullptr);
      losses.push_back(metrics.loss_sum);
      if (status.ok() && (i + 1) % a_step == 0) {
        StepOptions options;
        options.learning_rate = 1e-3;
        options.tokens = a_step * sequences * shape.sequence;
        options.step = (i + 1) / a_step;
        StepMetrics ignored;
        status = stage->step(options, &ignored);
      }
      if (!status.ok()) return status;
    }
    return Status();
  }
};

std::vector<float> all(const std::vector<PipelineLab::Node*>& stages, std::vector<float> (*part)(Stage&)) {
  std::vector<float> values;
  for (const PipelineLab::Node* node : stages) {
    const std::vector<float> own = part(*node->stage);
    values.insert(values.end(), own.begin(), own.end());
  }
  return values;
}

double mean_loss(const LabDriver& driver, const ModelShape& shape, std::size_t last) {
  double sum = 0;
  std::size_t count = 0;
  for (auto one = driver.done.rbegin(); one != driver.done.rend() && count < last; ++one, ++count)
    sum += one->second.loss / (sequences * shape.sequence);
  return sum / static_cast<double>(count);
}

}  // namespace

class TestPipelineExactness : public QObject {
  Q_OBJECT
 private:
  Module* module_ = nullptr;

 private Q_SLOTS:
  void initTestCase() {
    const Expected<LoadedModule> loaded = load();
    QVERIFY2(loaded.ok(), loaded.ok() ? "" : loaded.error().message.c_str());
    module_ = loaded->module;
  }

  void gradients_are_those_of_one_process_data() {
    QTest::addColumn<QVector<int>>("cuts");
    QTest::addColumn<int>("experts");
    QTest::newRow("three stages") << QVector<int>{0, 1, 3, 4} << 4;
    QTest::newRow("five stages, embedding apart") << QVector<int>{0, 0, 1, 2, 3, 4} << 4;
    QTest::newRow("three stages, dense") << QVector<int>{0, 2, 3, 4} << 1;
    QTest::newRow("one stage") << QVector<int>{0, 4} << 4;
  }
  void gradients_are_those_of_one_process() {
    QFETCH(QVector<int>, cuts);
    QFETCH(int, experts);
    const ModelShape shape = four_layers(static_cast<std::uint32_t>(experts));
    OneProcess alone(*module_, shape);
    NS_VERIFY_OK(alone.train(shape, 7, 6, 1000));

    PipelineLab lab(*module_, shape, millisecond);
    const auto stages = lab.add_stages({cuts.begin(), cuts.end()}, limits_of(shape, 1000));
    LabDriver driver(lab, lab.add_node(), lab.route(stages, sequences, 4), shape, 7, 6);
    driver.start();
    QVERIFY(lab.run_until([&] { return driver.finished(); }));
    lab.run_for(second);  // the weights' gradients
    const double difference = distance(all(stages, gradients), gradients(*alone.stage));
    QVERIFY2(difference == 0, qPrintable(QString::number(difference)));
    for (const auto& [index, sums] : driver.done) {
      QVERIFY(std::abs(sums.loss - alone.losses[index]) < 1e-5 * alone.losses[index]);
      QCOMPARE(sums.target_tokens, sums.tokens);
    }
  }

  // Ten steps of three micro-batches, more of them under way than a step takes.
  void losses_are_those_of_one_process() {
    const ModelShape shape = four_layers(4);
    OneProcess alone(*module_, shape);
    NS_VERIFY_OK(alone.train(shape, 3, 30, 3));
    PipelineLab lab(*module_, shape, 5 * millisecond);
    const auto stages = lab.add_stages({0, 2, 4}, limits_of(shape, 3));
    LabDriver driver(lab, lab.add_node(), lab.route(stages, sequences, 8), shape, 3, 30);
    driver.start();
    QVERIFY(lab.run_until([&] { return driver.finished(); }));
    lab.run_for(second);
    for (const auto& [index, sums] : driver.done) {
      const double relative = std::abs(sums.loss / alone.losses[index] - 1);
      QVERIFY2(relative < 1e-4, qPrintable(QString("%1: %2").arg(index).arg(relative)));
    }
    for (const PipelineLab::Node* stage : stages) {
      const std::uint64_t a_step = 3 * sequences * shape.sequence;
      QCOMPARE(stage->steps, std::vector<std::uint64_t>(10, a_step));
    }
    QVERIFY(distance(all(stages, parameters), parameters(*alone.stage)) < 1e-4);
  }

  void coarser_wires_learn_as_well_data() {
    QTest::addColumn<int>("wire");
    QTest::newRow("bf16") << static_cast<int>(WireFormat::Bf16);
    QTest::newRow("int8") << static_cast<int>(WireFormat::Int8);
  }
  // Four micro-batches, again and again, are learnt by heart on any wire.
  void coarser_wires_learn_as_well() {
    QFETCH(int, wire);
    const ModelShape shape = four_layers(4);
    const auto train = [&](WireFormat format) {
      PipelineLab lab(*module_, shape);
      lab.learning_rate = 3e-3;
      const auto stages = lab.add_stages({0, 1, 2, 4}, limits_of(shape, 2));
      LabDriver driver(lab, lab.add_node(), lab.route(stages, sequences, 6, format), shape, 5, 120);
      driver.different = 4;
      driver.start();
      return lab.run_until([&] { return driver.finished(); }) ? mean_loss(driver, shape, 20) : 0;
    };
    const double exact = train(WireFormat::Fp32), coarse = train(static_cast<WireFormat>(wire));
    QVERIFY(exact > 0);
    QVERIFY2(coarse < 1.02 * exact, qPrintable(QString("%1 %2").arg(coarse).arg(exact)));
  }

  // Two drivers share the stages: every micro-batch of both counts once, in batches of the full size.
  void two_drivers_share_the_stages() {
    const ModelShape shape = four_layers(1);
    PipelineLab lab(*module_, shape, 3 * millisecond);
    const auto stages = lab.add_stages({0, 1, 2, 4}, limits_of(shape, 4));
    LabDriver one(lab, lab.add_node(), lab.route(stages, sequences, 5), shape, 1, 18);
    LabDriver other(lab, lab.add_node(), lab.route(stages, sequences, 3), shape, 2, 22);
    one.start();
    other.start();
    QVERIFY(lab.run_until([&] { return one.finished() && other.finished(); }));
    lab.run_for(second);
    for (const PipelineLab::Node* stage : stages)
      QCOMPARE(stage->steps, std::vector<std::uint64_t>(10, 4 * sequences * shape.sequence));
  }

  // Both sides of each hop commit to the same bytes.
  void both_sides_commit_to_the_same() {
    const ModelShape shape = four_layers(1);
    PipelineLab lab(*module_, shape);
    const auto stages = lab.add_stages({0, 1, 2, 4}, limits_of(shape, 4));
    PipelineLab::Node& home = lab.add_node();
    LabDriver driver(lab, home, lab.route(stages, sequences, 5), shape, 1, 8);
    driver.start();
    QVERIFY(lab.run_until([&] { return driver.finished(); }));
    driver.driver().close();
    lab.run_for(second);
    std::vector<PipelineLab::Node*> along = {&home};
    along.insert(along.end(), stages.begin(), stages.end());
    for (std::size_t i = 0; i + 1 < along.size(); ++i) {
      const Hash256 root = along[i]->exchanges.root_with(along[i + 1]->id);
      QVERIFY(root != Hash256{});
      QVERIFY(root == along[i + 1]->exchanges.root_with(along[i]->id));
    }
    QCOMPARE(stages[1]->exchanges.size(), std::size_t{32});  // 8 micro-batches, both ways, both sides
    for (const PipelineLab::Node* stage : stages) QCOMPARE(stage->worker->sessions(), std::size_t{0});
  }
};

NS_TEST(TestPipelineExactness)
#include "test_exactness.moc"
