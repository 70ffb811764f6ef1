// The backward pass in two halves gives the gradients of the whole one, bit for bit; and what is kept between them.
#include <QtTest>

#include "core/compute/memory_estimate.h"
#include "tests/support/test_main.h"
#include "tests/unit/model/model_test.h"

using namespace neuroshard;
using namespace neuroshard::model_test;
using compute::estimate_deferred_bytes;
using compute::Precision;

namespace {

ErrorCode code(const Status& status) {
  return status.ok() ? ErrorCode::Cancelled : to_error(status).code;
}

// Micro-batches through one stage of a pipeline: random inputs and upstream gradients where it has no ends.
class Passes {
 public:
  Passes(Stage& stage, const StageSpec& spec) : stage_(stage), spec_(spec) {}

  Status forward(std::uint64_t id) {
    Work& work = work_.try_emplace(id, spec_, id).first->second;
    ForwardMetrics metrics;
    return stage_.forward(id, work.batch.view, spec_.head ? nullptr : work.output.data(), &metrics);
  }
  Status backward(std::uint64_t id) { return stage_.backward(id, upstream(id), result(id)); }
  Status backward_input(std::uint64_t id) { return stage_.backward_input(id, upstream(id), result(id)); }
  // All input gradients, in the order of the ids.
  std::vector<float> results() const {
    std::vector<float> all;
    for (const auto& [id, work] : work_) all.insert(all.end(), work.gradient.begin(), work.gradient.end());
    return all;
  }

 private:
  struct Work {
    Work(const StageSpec& spec, std::uint64_t id)
        : batch(spec.shape, 1 + id % 2, spec.shape.sequence, 30 + id) {
      Rng rng(60 + id);
      const std::size_t count = batch.tokens.size() * spec.shape.hidden;
      for (std::vector<float>* values : {&input, &upstream})
        for (std::size_t i = 0; i < count; ++i) values->push_back(rng.normal());
      output.resize(count);
      gradient.resize(count);
      batch.view.input = input.data();
    }
    Batch batch;
    std::vector<float> input, output, upstream, gradient;
  };
  const float* upstream(std::uint64_t id) { return spec_.head ? nullptr : work_.at(id).upstream.data(); }
  float* result(std::uint64_t id) { return spec_.embed ? nullptr : work_.at(id).gradient.data(); }

  Stage& stage_;
  StageSpec spec_;
  std::map<std::uint64_t, Work> work_;
};

Status step(Stage& stage, std::uint64_t number) {
  StepOptions options;
  options.learning_rate = 1e-2;
  options.tokens = 48;
  options.step = number;
  StepMetrics metrics;
  return stage.step(options, &metrics);
}

}  // namespace

class TestHalves : public QObject {
  Q_OBJECT
 private:
  Module* module_ = nullptr;

  StagePtr make(const StageSpec& spec) { return stage_of(*module_, spec, 4.0f); }

  // The gradients of a single micro-batch by the one-call backward pass.
  std::vector<float> gradient_of(const StageSpec& spec, std::uint64_t id) {
    const StagePtr stage = make(spec);
    Passes passes(*stage, spec);
    if (!passes.forward(id).ok() || !passes.backward(id).ok()) return {};
    return gradients(*stage);
  }

 private Q_SLOTS:
  void init() {
    const Expected<LoadedModule> loaded = load();
    QVERIFY2(loaded.ok(), loaded.ok() ? "" : loaded.error().message.c_str());
    module_ = loaded->module;
  }

  void stages_data() {
    QTest::addColumn<QString>("precision");
    QTest::addColumn<quint32>("experts");
    QTest::addColumn<bool>("embed");
    QTest::addColumn<bool>("head");
    for (const char* precision : {"fp32", "bf16"}) {
      for (const quint32 experts : {1u, 4u}) {
        const char* kind = experts == 1 ? "dense" : "mixture";
        QTest::addRow("%s %s, all", precision, kind) << precision << experts << true << true;
        QTest::addRow("%s %s, first", precision, kind) << precision << experts << true << false;
        QTest::addRow("%s %s, middle", precision, kind) << precision << experts << false << false;
        QTest::addRow("%s %s, last", precision, kind) << precision << experts << false << true;
      }
    }
  }

  StageSpec fetch_spec() {
    QFETCH(quint32, experts);
    QFETCH(bool, embed);
    QFETCH(bool, head);
    ModelShape shape = small_shape(experts);
    shape.hidden = 72;  // none of the sizes is a multiple of a tile's
    shape.heads = 6;
    shape.head_dim = 12;
    shape.ffn = 100;
    shape.sequence = 37;
    StageSpec spec = whole_model(shape);
    spec.embed = embed;
    spec.head = head;
    return spec;
  }

  bool choose_precision() {
    QFETCH(QString, precision);
    const Expected<LoadedModule> loaded = load(2, 0, "", precision.toStdString());
    if (loaded.ok()) module_ = loaded->module;
    return loaded.ok();
  }

  void both_halves_equal_the_whole_data() { stages_data(); }
  void both_halves_equal_the_whole() {
    if (!choose_precision()) QSKIP("this processor has no bf16 units");
    StageSpec spec = fetch_spec();
    if (spec.embed) {  // balanced by biases, and some tokens are dropped
      spec.router.bias_gamma = 0.05f;
      spec.router.capacity_factor = 0.8f;
    }
    const StagePtr one = make(spec);
    const StagePtr two = make(spec);
    QVERIFY(one != nullptr && two != nullptr);
    Passes whole(*one, spec);
    Passes halves(*two, spec);
    const std::uint64_t a = 2, b = 3, c = 5;
    for (const std::uint64_t id : {a, b, c}) NS_VERIFY_OK(whole.forward(id));
    for (const std::uint64_t id : {a, b, c}) NS_VERIFY_OK(whole.backward(id));
    // As a pipeline would: weights of the first while the second comes back.
    NS_VERIFY_OK(halves.forward(a));
    NS_VERIFY_OK(halves.forward(b));
    const std::vector<float> before = gradients(*two);
    NS_VERIFY_OK(halves.backward_input(a));
    NS_VERIFY_OK(halves.forward(c));
    NS_VERIFY_OK(halves.backward_input(b));
    QVERIFY(gradients(*two) == before);  // the first half leaves them alone
    NS_VERIFY_OK(two->backward_weights(a));
    NS_VERIFY_OK(halves.backward_input(c));
    NS_VERIFY_OK(two->backward_weights(b));
    NS_VERIFY_OK(two->backward_weights(c));
    QVERIFY(halves.results() == whole.results());
    QVERIFY(gradients(*two) == gradients(*one));
    NS_VERIFY_OK(step(*one, 1));
    NS_VERIFY_OK(step(*two, 1));
    QVERIFY(parameters(*two) == parameters(*one));
    std::vector<float> expected(std::size_t{spec.layer_count} * spec.shape.experts), bias(expected.size());
    one->router_bias(expected.data());
    two->router_bias(bias.data());
    QVERIFY(bias == expected);
  }

  // So large a vocabulary that the logits are made in several parts.
  void a_large_head_in_halves_equals_the_whole_data() {
    QTest::addColumn<QString>("precision");
    QTest::newRow("fp32") << "fp32";
    QTest::newRow("bf16") << "bf16";
  }
  void a_large_head_in_halves_equals_the_whole() {
    if (!choose_precision()) QSKIP("this processor has no bf16 units");
    StageSpec spec = whole_model(small_shape(1));
    spec.shape.vocab = 70000;
    spec.shape.sequence = 75;
    spec.layer_count = 0;
    spec.embed = false;
    const StagePtr one = make(spec);
    const StagePtr two = make(spec);
    Passes whole(*one, spec);
    Passes halves(*two, spec);
    NS_VERIFY_OK(whole.forward(1));
    NS_VERIFY_OK(whole.backward(1));
    NS_VERIFY_OK(halves.forward(1));
    NS_VERIFY_OK(halves.backward_input(1));
    NS_VERIFY_OK(two->backward_weights(1));
    QVERIFY(halves.results() == whole.results());
    QVERIFY(gradients(*two) == gradients(*one));
  }

  void what_is_kept_between_the_halves_is_as_estimated_data() { stages_data(); }
  void what_is_kept_between_the_halves_is_as_estimated() {
    if (!choose_precision()) QSKIP("this processor has no bf16 units");
    QFETCH(QString, precision);
    const StageSpec spec = fetch_spec();
    const StagePtr stage = make(spec);
    Passes passes(*stage, spec);
    const std::uint64_t before = module_->memory(true).live_bytes;
    const Precision arithmetic = precision == "bf16" ? Precision::Bf16 : Precision::Fp32;
    const std::uint32_t sequence = spec.shape.sequence;
    std::vector<std::uint64_t> peaks, bounds;
    for (const std::uint64_t id : {2u, 3u}) {
      const std::uint64_t sequences = id - 1;
      NS_VERIFY_OK(passes.forward(id));
      NS_VERIFY_OK(passes.backward_input(id));
      const compute::MemoryUse use = module_->memory(true);
      const auto kept = static_cast<double>(use.live_bytes - before);
      const std::uint64_t estimated = estimate_deferred_bytes(spec, arithmetic, sequences * sequence);
      QVERIFY2(std::abs(static_cast<double>(estimated) / kept - 1) < 0.03,
               qPrintable(QString("%1 for %2").arg(estimated).arg(kept)));
      peaks.push_back(use.peak_bytes - before);
      bounds.push_back(estimated + sequences * compute::estimate_activation_bytes_per_sample(
                                                   spec.shape, arithmetic, sequence));
      NS_VERIFY_OK(stage->backward_weights(id));
      QCOMPARE(module_->memory(false).live_bytes, before);
    }
    // One more sequence takes no more than its activations and what is kept of it.
    QVERIFY2(peaks[1] - peaks[0] <= bounds[1] - bounds[0],
             qPrintable(QString("%1 for %2").arg(bounds[1] - bounds[0]).arg(peaks[1] - peaks[0])));
  }

  // As much as a schedule allows: all micro-batches are passed forward, then some wait for their weights' gradients.
  void a_stage_holds_of_several_micro_batches_what_is_estimated_data() { stages_data(); }
  void a_stage_holds_of_several_micro_batches_what_is_estimated() {
    if (!choose_precision()) QSKIP("this processor has no bf16 units");
    QFETCH(QString, precision);
    const Precision arithmetic = precision == "bf16" ? Precision::Bf16 : Precision::Fp32;
    StageSpec spec = fetch_spec();
    spec.shape.sequence = 256;
    spec.shape.vocab = 256;
    const StagePtr stage = make(spec);
    Passes passes(*stage, spec);
    const std::uint64_t before = module_->memory(true).live_bytes;
    constexpr std::uint64_t held = 4, deferred = 3;
    for (std::uint64_t i = 1; i <= held; ++i) {
      NS_VERIFY_OK(passes.forward(2 * i));
      if (spec.head) NS_VERIFY_OK(passes.backward_input(2 * i));
    }
    for (std::uint64_t i = 1; !spec.head && i <= deferred; ++i) NS_VERIFY_OK(passes.backward_input(2 * i));
    const compute::PipelineEstimate each =
        compute::estimate_pipeline_bytes(spec, arithmetic, spec.shape.sequence);
    const std::uint64_t waiting = spec.head ? held : deferred;
    StageSpec layers = spec;
    layers.head = false;  // its logits are kept here, and all of them are less than a chunk
    const auto estimated = static_cast<double>(
        waiting * std::max(each.kept, each.deferred) + (held - waiting) * each.kept + each.passing +
        compute::estimate_workspace_bytes(layers, arithmetic, spec.shape.sequence, 2));
    const auto measured = static_cast<double>(module_->memory(false).peak_bytes - before);
    QVERIFY2(std::abs(estimated / measured - 1) < 0.15,
             qPrintable(QString("%1 for %2").arg(estimated).arg(measured)));
  }

  void a_micro_batch_that_is_discarded_between_the_halves_leaves_no_trace() {
    for (const std::uint32_t experts : {1u, 4u}) {
      StageSpec spec = whole_model(small_shape(experts));
      spec.router.bias_gamma = 0.05f;
      const StagePtr stage = make(spec);
      Passes passes(*stage, spec);
      const std::uint64_t before = module_->memory(true).live_bytes;
      NS_VERIFY_OK(passes.forward(1));
      NS_VERIFY_OK(passes.forward(2));
      NS_VERIFY_OK(passes.backward_input(1));
      stage->discard(1);
      NS_VERIFY_OK(passes.backward_input(2));
      NS_VERIFY_OK(stage->backward_weights(2));
      QCOMPARE(module_->memory(false).live_bytes, before);
      const std::vector<float> expected = gradient_of(spec, 2);
      QVERIFY(!expected.empty() && gradients(*stage) == expected);
      QVERIFY(code(stage->backward_weights(1)) == ErrorCode::NotFound);
      NS_VERIFY_OK(passes.forward(1));  // the id is free again
    }
  }

  void zeroing_gradients_between_the_halves_keeps_what_is_due() {
    const StageSpec spec = whole_model(small_shape(4));
    const StagePtr stage = make(spec);
    Passes passes(*stage, spec);
    for (const std::uint64_t id : {1u, 2u}) NS_VERIFY_OK(passes.forward(id));
    NS_VERIFY_OK(passes.backward(1));
    NS_VERIFY_OK(passes.backward_input(2));
    stage->zero_gradients();
    NS_VERIFY_OK(stage->backward_weights(2));
    const std::vector<float> expected = gradient_of(spec, 2);
    QVERIFY(!expected.empty() && gradients(*stage) == expected);
  }

  void a_step_between_the_halves_is_refused() {
    const StageSpec spec = whole_model(small_shape(4));
    const StagePtr stage = make(spec);
    Passes passes(*stage, spec);
    NS_VERIFY_OK(passes.forward(1));
    NS_VERIFY_OK(passes.forward(2));
    NS_VERIFY_OK(passes.backward(1));
    NS_VERIFY_OK(passes.backward_input(2));
    const std::vector<float> weights = parameters(*stage);
    const std::vector<float> sums = gradients(*stage);
    const Status refused = step(*stage, 1);
    QVERIFY(code(refused) == ErrorCode::InvalidArgument);
    QVERIFY2(QString(refused.message).contains("backward_weights"), refused.message);
    QVERIFY(parameters(*stage) == weights && gradients(*stage) == sums);
    NS_VERIFY_OK(stage->backward_weights(2));
    NS_VERIFY_OK(step(*stage, 1));
  }

  void the_halves_run_once_each_and_in_order() {
    StageSpec spec = whole_model(small_shape(4));
    spec.embed = spec.head = false;
    const StagePtr stage = make(spec);
    Passes passes(*stage, spec);
    QVERIFY(code(stage->backward_weights(1)) == ErrorCode::NotFound);
    NS_VERIFY_OK(passes.forward(1));
    const Status early = stage->backward_weights(1);
    QVERIFY(code(early) == ErrorCode::NotFound);
    QVERIFY2(QString(early.message).contains("backward_input"), early.message);
    std::vector<float> room(std::size_t{2} * spec.shape.sequence * spec.shape.hidden);
    QVERIFY(code(stage->backward_input(1, nullptr, room.data())) == ErrorCode::InvalidArgument);
    QVERIFY(code(stage->backward_input(1, room.data(), nullptr)) == ErrorCode::InvalidArgument);
    NS_VERIFY_OK(passes.backward_input(1));  // the refusals kept the micro-batch
    QVERIFY(code(passes.forward(1)) == ErrorCode::InvalidArgument);
    QVERIFY(code(passes.backward_input(1)) == ErrorCode::NotFound);
    const Status whole = passes.backward(1);
    QVERIFY(code(whole) == ErrorCode::NotFound);
    QVERIFY2(QString(whole.message).contains("are due"), whole.message);
    NS_VERIFY_OK(stage->backward_weights(1));
    QVERIFY(code(stage->backward_weights(1)) == ErrorCode::NotFound);
  }

  void a_first_half_without_memory_leaves_the_gradients_alone() {
    const StageSpec spec = whole_model(small_shape(4));
    const StagePtr stage = make(spec);
    Passes passes(*stage, spec);
    NS_VERIFY_OK(passes.forward(1));
    NS_VERIFY_OK(passes.backward(1));
    const std::vector<float> sums = gradients(*stage);
    const std::uint64_t before = module_->memory(true).live_bytes;
    NS_VERIFY_OK(passes.forward(2));
    module_->set_memory_limit(module_->memory(false).live_bytes + 20000);
    const Status failed = passes.backward_input(2);
    module_->set_memory_limit(0);
    QVERIFY(code(failed) == ErrorCode::Exhausted);
    QVERIFY(gradients(*stage) == sums);
    QCOMPARE(module_->memory(false).live_bytes, before);  // the micro-batch is dropped
    NS_VERIFY_OK(step(*stage, 1));
  }
};

NS_TEST(TestHalves)
#include "test_halves.moc"
