// A stage trains: the loss falls, results repeat bit for bit, limits and mistakes are answered with a Status.
#include <QtTest>

#include "tests/support/test_main.h"
#include "tests/unit/model/model_test.h"

using namespace neuroshard;
using namespace neuroshard::model_test;

namespace {

Status train_step(Stage& stage, const MicroBatch& batch, std::uint64_t step, double* loss,
                  double learning_rate = 3e-3) {
  ForwardMetrics metrics;
  if (const Status status = stage.forward(1, batch, nullptr, &metrics); !status.ok()) return status;
  if (const Status status = stage.backward(1, nullptr, nullptr); !status.ok()) return status;
  *loss = metrics.loss_sum / static_cast<double>(metrics.target_tokens);
  StepOptions options;
  options.learning_rate = learning_rate;
  options.tokens = metrics.tokens;
  options.step = step;
  StepMetrics result;
  return stage.step(options, &result);
}

}  // namespace

class TestTraining : public QObject {
  Q_OBJECT
 private:
  Module* module_ = nullptr;

 private Q_SLOTS:
  void initTestCase() {
    const Expected<LoadedModule> loaded = load();
    QVERIFY2(loaded.ok(), loaded.ok() ? "" : loaded.error().message.c_str());
    module_ = loaded->module;
    const ModuleInfo info = loaded->info;
    QVERIFY(std::string(info.gemm).find("oneDNN") == 0);
    QVERIFY(std::string(info.isa).size() > 0);
    QCOMPARE(std::string(info.precision), std::string("fp32"));
    QCOMPARE(info.threads, 2u);
    qInfo("%s, %s, %s, LibTorch %s", info.device_name, info.gemm, info.isa, info.torch_version);
  }

  void the_first_loss_is_that_of_a_guess_and_it_falls() {
    for (const std::uint32_t experts : {1u, 4u}) {
      const ModelShape shape = small_shape(experts);
      const StagePtr stage = stage_of(*module_, whole_model(shape));
      QVERIFY(stage != nullptr);
      const Batch batch(shape, 2, 16, 7);
      double first = 0;
      NS_VERIFY_OK(train_step(*stage, batch.view, 1, &first));
      QVERIFY2(std::abs(first - std::log(61.0)) < 0.1, qPrintable(QString::number(first)));
      double last = 0;
      for (std::uint64_t step = 2; step <= 40; ++step)
        NS_VERIFY_OK(train_step(*stage, batch.view, step, &last));
      QVERIFY2(last < 0.5 * first, qPrintable(QString::number(last)));
    }
  }
};

NS_TEST(TestTraining)
#include "test_training.moc"
