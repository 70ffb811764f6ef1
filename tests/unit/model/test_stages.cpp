// One model cut into stages gives the losses and gradients of the whole.
#include <QtTest>

#include "tests/support/test_main.h"
#include "tests/unit/model/model_test.h"

using namespace neuroshard;
using namespace neuroshard::model_test;

namespace {

constexpr double tolerance = 1e-5;

// The stages of one model in order; first of each stage's layers, and one past the last.
struct Pipeline {
  std::vector<StagePtr> stages;

  bool make(Module& module, const ModelShape& shape, const std::vector<std::uint32_t>& cuts) {
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      StageSpec spec;
      spec.shape = shape;
      spec.first_layer = cuts[i];
      spec.layer_count = cuts[i + 1] - cuts[i];
      spec.embed = i == 0;
      spec.head = i + 2 == cuts.size();
      stages.push_back(stage_of(module, spec));
      if (stages.back() == nullptr) return false;
    }
    return true;
  }

  // Forward and backward of one micro-batch through all stages.
  Status run(std::uint64_t id, const ModelShape& shape, const Batch& batch, ForwardMetrics* last) {
    MicroBatch view = batch.view;
    std::vector<std::vector<float>> activations;
    const std::size_t count = batch.tokens.size() * shape.hidden;
    for (std::size_t i = 0; i < stages.size(); ++i) {
      activations.emplace_back(count);
      float* output = i + 1 < stages.size() ? activations.back().data() : nullptr;
      if (const Status status = stages[i]->forward(id, view, output, last); !status.ok()) return status;
      view.input = activations.back().data();
    }
    std::vector<float> gradient(count);
    for (std::size_t i = stages.size(); i-- > 0;) {
      float* input = i > 0 ? gradient.data() : nullptr;
      const float* output = i + 1 < stages.size() ? gradient.data() : nullptr;
      if (const Status status = stages[i]->backward(id, output, input); !status.ok()) return status;
    }
    return Status();
  }

  std::vector<float> all(std::vector<float> (*part)(Stage&)) {
    std::vector<float> result;
    for (const StagePtr& stage : stages) {
      const std::vector<float> own = part(*stage);
      result.insert(result.end(), own.begin(), own.end());
    }
    return result;
  }
};

}  // namespace

class TestStages : public QObject {
  Q_OBJECT
 private:
  Module* module_ = nullptr;

 private Q_SLOTS:
  void initTestCase() {
    const Expected<LoadedModule> loaded = load();
    QVERIFY2(loaded.ok(), loaded.ok() ? "" : loaded.error().message.c_str());
    module_ = loaded->module;
  }

  void cutting_changes_nothing_data() {
    QTest::addColumn<QVector<int>>("cuts");
    QTest::addColumn<int>("experts");
    QTest::newRow("two stages") << QVector<int>{0, 2, 4} << 4;
    QTest::newRow("embedding and head apart") << QVector<int>{0, 0, 4, 4} << 4;
    QTest::newRow("layer by layer") << QVector<int>{0, 1, 2, 3, 4} << 4;
    QTest::newRow("dense") << QVector<int>{0, 3, 4} << 1;
  }

  void cutting_changes_nothing() {
    QFETCH(QVector<int>, cuts);
    QFETCH(int, experts);
    ModelShape shape = small_shape(static_cast<std::uint32_t>(experts));
    shape.layers = 4;
    Pipeline whole;
    Pipeline cut;
    QVERIFY(whole.make(*module_, shape, {0, 4}));
    QVERIFY(cut.make(*module_, shape, std::vector<std::uint32_t>(cuts.begin(), cuts.end())));
    QVERIFY(whole.all(parameters) == cut.all(parameters));
    for (std::uint64_t step = 1; step <= 3; ++step) {
      const Batch batch(shape, 2, 16, step);
      const Batch second(shape, 1, 16, 50 + step);
      ForwardMetrics expected;
      ForwardMetrics metrics;
      for (const Batch* part : {&batch, &second}) {
        NS_VERIFY_OK(whole.run(step, shape, *part, &expected));
        NS_VERIFY_OK(cut.run(step, shape, *part, &metrics));
        QVERIFY(std::abs(metrics.loss_sum - expected.loss_sum) < tolerance * expected.loss_sum);
      }
      const double difference = distance(cut.all(gradients), whole.all(gradients));
      QVERIFY2(difference < tolerance, qPrintable(QString::number(difference)));
      StepOptions options;
      options.learning_rate = 1e-3;
      options.tokens = 48;
      options.step = step;
      StepMetrics ignored;
      for (const StagePtr& stage : whole.stages) NS_VERIFY_OK(stage->step(options, &ignored));
      for (const StagePtr& stage : cut.stages)
        NS_VERIFY_OK(stage->step(options, &ignored));  // clipping is per slot
    }
    QVERIFY(distance(cut.all(parameters), whole.all(parameters)) < tolerance);
  }

  void several_micro_batches_may_be_in_flight() {
    const ModelShape shape = small_shape(4);
    const StagePtr one = stage_of(*module_, whole_model(shape));
    const StagePtr two = stage_of(*module_, whole_model(shape));
    const Batch a(shape, 2, 16, 1);
    const Batch b(shape, 1, 9, 2);
    ForwardMetrics metrics;
    NS_VERIFY_OK(one->forward(1, a.view, nullptr, &metrics));
    NS_VERIFY_OK(one->backward(1, nullptr, nullptr));
    NS_VERIFY_OK(one->forward(2, b.view, nullptr, &metrics));
    NS_VERIFY_OK(one->backward(2, nullptr, nullptr));
    NS_VERIFY_OK(two->forward(7, a.view, nullptr, &metrics));
    NS_VERIFY_OK(two->forward(8, b.view, nullptr, &metrics));
    NS_VERIFY_OK(two->forward(9, b.view, nullptr, &metrics));
    two->discard(9);  // never counts
    NS_VERIFY_OK(two->backward(7, nullptr, nullptr));
    NS_VERIFY_OK(two->backward(8, nullptr, nullptr));
    QVERIFY(gradients(*one) == gradients(*two));
    QVERIFY(!two->backward(8, nullptr, nullptr).ok());  // each exactly once
    QVERIFY(!two->backward(9, nullptr, nullptr).ok());
  }
};

NS_TEST(TestStages)
#include "test_stages.moc"
