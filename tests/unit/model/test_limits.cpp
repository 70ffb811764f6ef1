// Memory: counted, limited, estimated; and the module's refusals.
#include <QtTest>

#include "core/compute/memory_estimate.h"
#include "tests/support/test_main.h"
#include "tests/unit/model/model_test.h"

using namespace neuroshard;
using namespace neuroshard::compute;
using namespace neuroshard::model_test;

class TestLimits : public QObject {
  Q_OBJECT
 private:
  Module* module_ = nullptr;

  static ModelShape medium_shape(std::uint32_t experts) {
    ModelShape shape = small_shape(experts);
    shape.layers = 3;
    shape.hidden = 64;
    shape.head_dim = 16;
    shape.kv_heads = 1;
    shape.ffn = 128;
    shape.vocab = 256;
    shape.sequence = 128;
    return shape;
  }

  // Most that one micro-batch of b sequences needs beyond what was live before.
  std::uint64_t activation_peak(Stage& stage, const ModelShape& shape, std::uint32_t b) {
    const std::uint64_t before = module_->memory(true).live_bytes;
    const Batch batch(shape, b, shape.sequence, 1);
    ForwardMetrics metrics;
    if (!stage.forward(1, batch.view, nullptr, &metrics).ok() || !stage.backward(1, nullptr, nullptr).ok())
      return 0;
    return module_->memory(false).peak_bytes - before;
  }

 private Q_SLOTS:
  void initTestCase() {
    NullLogger logger;
    ModuleOptions options;
    options.threads = 2;
    // Other builds first: the real load below must still work.
    const std::string path =
        QCoreApplication::applicationDirPath().toStdString() + "/../lib/neuroshard/compute_cpu.so";
    const Expected<LoadedModule> other =
        load_module_file(path, options, logger, module_abi_version, "another build");
    QVERIFY(!other.ok());
    QVERIFY(other.error().code == ErrorCode::Unsupported);
    QVERIFY2(other.error().message.find("restart") != std::string::npos, other.error().message.c_str());
    QVERIFY(!load_module_file(path, options, logger, module_abi_version + 1, module_build_id()).ok());

    const Expected<LoadedModule> loaded = load();
    QVERIFY2(loaded.ok(), loaded.ok() ? "" : loaded.error().message.c_str());
    module_ = loaded->module;
    const Expected<LoadedModule> again = load(1);
    QVERIFY(again.ok() && again->module == module_);
    QCOMPARE(again->info.threads, 1u);
    NS_VERIFY_OK(module_->set_threads(2));
  }

  void cleanup() {
    module_->set_memory_limit(0);
    QVERIFY(load(2).ok());  // fp32 again
  }

  void unsupported_devices_and_precisions_are_refused() {
    NullLogger logger;
    ModuleOptions options;
    std::strcpy(options.device, "cuda:0");
    const Expected<LoadedModule> device = load_module("cpu", options, logger);
    QVERIFY(!device.ok() && device.error().code == ErrorCode::Unsupported);
    options = ModuleOptions();
    std::strcpy(options.precision, "fp8");
    QVERIFY(!load_module("cpu", options, logger).ok());
  }

  void everything_is_given_back() {
    const std::uint64_t before = module_->memory(true).live_bytes;
    const ModelShape shape = medium_shape(4);
    {
      const StagePtr stage = stage_of(*module_, whole_model(shape));
      const std::uint64_t buffers = estimate_memory(shape, Precision::Fp32, true).total();
      const std::uint64_t live = module_->memory(false).live_bytes - before;
      QVERIFY(live >= buffers && live < buffers + buffers / 10);
      QVERIFY(activation_peak(*stage, shape, 2) > 0);
      QCOMPARE(module_->memory(false).live_bytes - before, live);  // nothing is kept after the backward pass
    }
    QCOMPARE(module_->memory(false).live_bytes, before);
  }

  void the_estimate_meets_the_measured_peak_data() {
    QTest::addColumn<int>("experts");
    QTest::addColumn<QString>("arithmetic");
    for (const QString& arithmetic : {QString("fp32"), QString("bf16")}) {
      QTest::addRow("mixture %s", qPrintable(arithmetic)) << 8 << arithmetic;
      QTest::addRow("dense %s", qPrintable(arithmetic)) << 1 << arithmetic;
    }
  }

  void the_estimate_meets_the_measured_peak() {
    QFETCH(int, experts);
    QFETCH(QString, arithmetic);
    if (!load(2, 0, "", arithmetic.toStdString()).ok()) QSKIP("this processor has no bf16 units");
    const Precision precision = arithmetic == "bf16" ? Precision::Bf16 : Precision::Fp32;
    const ModelShape shape = medium_shape(static_cast<std::uint32_t>(experts));
    const std::uint64_t before = module_->memory(true).live_bytes;
    const StagePtr stage = stage_of(*module_, whole_model(shape));
    const auto buffers = static_cast<double>(module_->memory(false).live_bytes - before);
    QVERIFY(std::abs(buffers / static_cast<double>(estimate_memory(shape, precision, true).total()) - 1) <
            0.05);
    const std::uint64_t one = activation_peak(*stage, shape, 1);
    const std::uint64_t eight = activation_peak(*stage, shape, 8);
    QVERIFY(one > 0 && eight > one);
    const double measured = static_cast<double>(eight - one) / 7;
    const auto estimated =
        static_cast<double>(estimate_activation_bytes_per_sample(shape, precision, shape.sequence));
    QVERIFY2(std::abs(estimated / measured - 1) < 0.2,
             qPrintable(QString("%1 for %2").arg(estimated).arg(measured)));
    const std::uint64_t all = 8 * estimate_activation_bytes_per_sample(shape, precision, shape.sequence) +
                              estimate_workspace_bytes(shape, precision, shape.sequence, 2);
    QVERIFY(all > eight - eight / 20);  // what the planner reserves is enough
  }

  void a_limit_that_is_too_small_fails_the_call_and_a_smaller_micro_batch_still_works() {
    const ModelShape shape = medium_shape(4);
    const StagePtr stage = stage_of(*module_, whole_model(shape));
    const StagePtr other = stage_of(*module_, whole_model(shape));
    const std::uint64_t one = activation_peak(*stage, shape, 1);
    stage->zero_gradients();
    const std::uint64_t limit = module_->memory(true).live_bytes + one + one / 4;
    module_->set_memory_limit(limit);

    const Batch large(shape, 8, shape.sequence, 1);
    ForwardMetrics metrics;
    Status status = stage->forward(1, large.view, nullptr, &metrics);
    if (status.ok()) status = stage->backward(1, nullptr, nullptr);
    QVERIFY(to_error(status).code == ErrorCode::Exhausted);
    QVERIFY2(QString(status.message).contains("smaller micro-batch"), status.message);
    QVERIFY(module_->memory(false).peak_bytes <= limit);

    stage->discard(1);
    stage->zero_gradients();
    const Batch small(shape, 1, shape.sequence, 2);
    NS_VERIFY_OK(stage->forward(1, small.view, nullptr, &metrics));
    NS_VERIFY_OK(stage->backward(1, nullptr, nullptr));
    module_->set_memory_limit(0);
    NS_VERIFY_OK(other->forward(1, small.view, nullptr, &metrics));
    NS_VERIFY_OK(other->backward(1, nullptr, nullptr));
    QVERIFY(gradients(*stage) == gradients(*other));  // the failure left no trace
  }

  void a_model_beyond_the_limit_is_refused() {
    module_->set_memory_limit(module_->memory(false).live_bytes + (1u << 20));
    const std::uint64_t before = module_->memory(false).live_bytes;
    ModelShape shape = medium_shape(8);
    shape.layers = 12;
    const Expected<StagePtr> stage = make_stage(*module_, whole_model(shape));
    QVERIFY(!stage.ok() && stage.error().code == ErrorCode::Exhausted);
    QCOMPARE(module_->memory(false).live_bytes, before);
  }

  void mistakes_are_answered() {
    const ModelShape shape = small_shape(4);
    const StagePtr stage = stage_of(*module_, whole_model(shape));
    ForwardMetrics metrics;
    const auto code = [](const Status& status) {
      return status.ok() ? ErrorCode::Cancelled : to_error(status).code;
    };
    Batch batch(shape, 1, 8, 1);
    batch.tokens[3] = static_cast<std::int32_t>(shape.vocab);
    QVERIFY(code(stage->forward(1, batch.view, nullptr, &metrics)) == ErrorCode::InvalidArgument);
    batch.tokens[3] = -1;
    QVERIFY(code(stage->evaluate(batch.view, nullptr, &metrics)) == ErrorCode::InvalidArgument);
    batch.tokens[3] = 0;
    batch.targets[0] = -2;
    QVERIFY(code(stage->forward(1, batch.view, nullptr, &metrics)) == ErrorCode::InvalidArgument);
    batch.targets[0] = -1;
    MicroBatch nothing = batch.view;
    nothing.batch = 0;
    QVERIFY(code(stage->forward(1, nothing, nullptr, &metrics)) == ErrorCode::InvalidArgument);
    nothing = batch.view;
    nothing.tokens = nullptr;
    QVERIFY(code(stage->forward(1, nothing, nullptr, &metrics)) == ErrorCode::InvalidArgument);
    NS_VERIFY_OK(stage->forward(1, batch.view, nullptr, &metrics));
    QCOMPARE(metrics.target_tokens, std::uint64_t{7});
    QVERIFY(code(stage->forward(1, batch.view, nullptr, &metrics)) ==
            ErrorCode::InvalidArgument);  // in flight
    QVERIFY(code(stage->backward(2, nullptr, nullptr)) == ErrorCode::NotFound);
    StepOptions options;
    StepMetrics result;
    QVERIFY(code(stage->step(options, &result)) == ErrorCode::InvalidArgument);
    QVERIFY(code(stage->copy_out(99, SlotBuffer::Parameters, nullptr)) == ErrorCode::InvalidArgument);
    StageSpec spec = whole_model(shape);
    spec.layer_count = 3;
    QVERIFY(!make_stage(*module_, spec).ok());
    QVERIFY(code(module_->set_threads(100000)) == ErrorCode::InvalidArgument);
  }

  void a_gradient_that_is_not_finite_changes_nothing() {
    const ModelShape shape = small_shape(4);
    const StagePtr stage = stage_of(*module_, whole_model(shape));
    const std::vector<float> before = parameters(*stage);
    stage->slot(2).gradient[5] = std::nanf("");
    StepOptions options;
    options.learning_rate = 1;
    options.tokens = 1;
    options.step = 1;
    StepMetrics result;
    QVERIFY(to_error(stage->step(options, &result)).code == ErrorCode::Corrupt);
    QVERIFY(parameters(*stage) == before);
    stage->zero_gradients();
    NS_VERIFY_OK(stage->step(options, &result));
  }

  void a_step_with_a_bad_number_changes_nothing() {
    const ModelShape shape = small_shape(4);
    const StagePtr stage = stage_of(*module_, whole_model(shape));
    const std::vector<float> before = parameters(*stage);
    const auto refused = [&](double StepOptions::*field, double value) {
      StepOptions options;
      options.learning_rate = 1e-3;
      options.tokens = 1;
      options.step = 1;
      options.*field = value;
      StepMetrics result;
      const Status status = stage->step(options, &result);
      return !status.ok() && to_error(status).code == ErrorCode::InvalidArgument;
    };
    for (const double value : {std::nan(""), HUGE_VAL, -1.0}) {
      QVERIFY(refused(&StepOptions::learning_rate, value));
      QVERIFY(refused(&StepOptions::weight_decay, value));
      QVERIFY(refused(&StepOptions::clip, value));
      QVERIFY(refused(&StepOptions::beta1, value));
      QVERIFY(refused(&StepOptions::epsilon, value));
    }
    QVERIFY(refused(&StepOptions::beta2, 1.0));
    QVERIFY(parameters(*stage) == before);
  }

  void missing_room_for_results_is_answered() {
    const ModelShape shape = small_shape(4);
    StageSpec spec = whole_model(shape);
    spec.head = false;
    const StagePtr front = stage_of(*module_, spec);
    const Batch batch(shape, 1, 4, 1);
    ForwardMetrics metrics;
    const auto answered = [](const Status& status) {
      return !status.ok() && to_error(status).code == ErrorCode::InvalidArgument;
    };
    QVERIFY(answered(front->forward(1, batch.view, nullptr, &metrics)));
    QVERIFY(answered(front->evaluate(batch.view, nullptr, &metrics)));
    std::vector<float> output(std::size_t{4} * shape.hidden);
    NS_VERIFY_OK(front->forward(1, batch.view, output.data(), &metrics));
    QVERIFY(answered(front->backward(1, nullptr, nullptr)));
    NS_VERIFY_OK(front->backward(1, output.data(), nullptr));  // the refusal kept the micro-batch
    NS_VERIFY_OK(front->open_session(1, 4));
    QVERIFY(answered(front->extend_session(1, 1, batch.tokens.data(), nullptr, nullptr, nullptr)));

    spec.head = true;
    spec.embed = false;
    const StagePtr back = stage_of(*module_, spec);
    MicroBatch middle = batch.view;
    middle.input = output.data();
    NS_VERIFY_OK(back->forward(1, middle, nullptr, &metrics));
    QVERIFY(answered(back->backward(1, nullptr, nullptr)));
  }

  // Squares of activations beyond 1.8e19 overflow; normalised, they must not look like zeros.
  void activations_that_overflow_are_not_hidden() {
    const ModelShape shape = small_shape(4);
    const StagePtr stage = stage_of(*module_, whole_model(shape), 1e12f);
    const Batch batch(shape, 1, 16, 1);
    ForwardMetrics metrics;
    NS_VERIFY_OK(stage->evaluate(batch.view, nullptr, &metrics));
    QVERIFY2(!std::isfinite(metrics.loss_sum), qPrintable(QString::number(metrics.loss_sum / 16)));
  }

  void buffers_are_copied_in_and_out() {
    const ModelShape shape = small_shape(4);
    const StagePtr stage = stage_of(*module_, whole_model(shape));
    const SlotBuffers slot = stage->slot(1);
    std::vector<float> values(slot.count);
    NS_VERIFY_OK(stage->copy_out(1, SlotBuffer::Parameters, values.data()));
    QVERIFY(std::equal(values.begin(), values.end(), slot.parameters));
    values[3] = 42;
    NS_VERIFY_OK(stage->copy_in(1, SlotBuffer::Moment2, values.data()));
    QCOMPARE(slot.moment2[3], 42.0f);
  }
};

NS_TEST(TestLimits)
#include "test_limits.moc"
