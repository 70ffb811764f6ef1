// Steps of some slots: each with its options, the others untouched, all of them or none.
#include <QtTest>

#include "tests/support/test_main.h"
#include "tests/unit/model/model_test.h"

using namespace neuroshard;
using namespace neuroshard::model_test;
using compute::SlotStep;

namespace {

StepOptions options_of(std::uint64_t step) {
  StepOptions options;
  options.learning_rate = 1e-2;
  options.tokens = 32;
  options.step = step;
  options.clip = 0.5;
  return options;
}

// Everything that a step may change in a slot.
std::vector<float> contents(Stage& stage, std::uint32_t index) {
  const SlotBuffers slot = stage.slot(index);
  std::vector<float> all;
  for (const float* values : {slot.parameters, slot.gradient, slot.moment1, slot.moment2})
    all.insert(all.end(), values, values + slot.count);
  return all;
}

std::vector<std::vector<float>> contents(Stage& stage) {
  std::vector<std::vector<float>> all;
  for (std::uint32_t i = 0; i < stage.slot_count(); ++i) all.push_back(contents(stage, i));
  return all;
}

Status pass(Stage& stage, const Batch& batch) {
  ForwardMetrics metrics;
  const Status status = stage.forward(1, batch.view, nullptr, &metrics);
  return status.ok() ? stage.backward(1, nullptr, nullptr) : status;
}

Status step_slots(Stage& stage, const std::vector<SlotStep>& steps, StepMetrics* metrics = nullptr) {
  StepMetrics ignored;
  return stage.step_slots(static_cast<std::uint32_t>(steps.size()), steps.data(),
                          metrics != nullptr ? metrics : &ignored);
}

double evaluate(Stage& stage, const Batch& batch) {
  ForwardMetrics metrics;
  return stage.evaluate(batch.view, nullptr, &metrics).ok() ? metrics.loss_sum : std::nan("");
}

}  // namespace

class TestSlotSteps : public QObject {
  Q_OBJECT
 private:
  Module* module_ = nullptr;

  static void precisions() {
    QTest::addColumn<QString>("precision");
    QTest::newRow("fp32") << "fp32";
    QTest::newRow("bf16") << "bf16";
  }

  bool choose_precision() {
    QFETCH(QString, precision);
    const Expected<LoadedModule> loaded = load(2, 0, "", precision.toStdString());
    if (loaded.ok()) module_ = loaded->module;
    return loaded.ok();
  }

 private Q_SLOTS:
  void all_slots_with_equal_options_step_as_the_stage_data() { precisions(); }
  void all_slots_with_equal_options_step_as_the_stage() {
    if (!choose_precision()) QSKIP("this processor has no bf16 units");
    StageSpec spec = whole_model(small_shape(4));
    spec.router.bias_gamma = 0.05f;
    const StagePtr one = stage_of(*module_, spec, 4);
    const StagePtr two = stage_of(*module_, spec, 4);
    for (std::uint64_t step = 1; step <= 3; ++step) {
      const Batch batch(spec.shape, 2, 16, step);
      NS_VERIFY_OK(pass(*one, batch));
      NS_VERIFY_OK(pass(*two, batch));
      StepMetrics expected, metrics;
      NS_VERIFY_OK(one->step(options_of(step), &expected));
      std::vector<SlotStep> steps;
      for (std::uint32_t i = 0; i < two->slot_count(); ++i) steps.push_back({i, options_of(step)});
      NS_VERIFY_OK(step_slots(*two, steps, &metrics));
      QVERIFY(contents(*two) == contents(*one));
      QCOMPARE(metrics.gradient_norm, expected.gradient_norm);
      QCOMPARE(metrics.clipped_slots, expected.clipped_slots);
      QVERIFY(expected.gradient_norm > 0 && expected.clipped_slots > 0);
      std::vector<float> biases(8), bias(8);
      one->router_bias(biases.data());
      two->router_bias(bias.data());
      QVERIFY(bias == biases);
      QCOMPARE(evaluate(*two, batch), evaluate(*one, batch));  // packed copies follow
    }
  }

  // A slot steps as in a stage where all slots have its options.
  void each_slot_has_its_own_options_data() { precisions(); }
  void each_slot_has_its_own_options() {
    if (!choose_precision()) QSKIP("this processor has no bf16 units");
    const StageSpec spec = whole_model(small_shape(4));
    const StagePtr mixed = stage_of(*module_, spec, 4);
    const Batch batch(spec.shape, 2, 16, 7);
    NS_VERIFY_OK(pass(*mixed, batch));
    const std::vector<std::vector<float>> before = contents(*mixed);
    StepOptions early = options_of(1);
    StepOptions late = options_of(900);
    late.tokens = 64;
    late.learning_rate = 1e-3;
    // The order in which slots are named means nothing.
    NS_VERIFY_OK(step_slots(*mixed, {{5, late}, {0, early}, {2, late}, {1, early}}));
    for (const auto& [options, slots] :
         {std::pair<StepOptions, std::vector<std::uint32_t>>{early, {0, 1}}, {late, {2, 5}}}) {
      const StagePtr alike = stage_of(*module_, spec, 4);
      NS_VERIFY_OK(pass(*alike, batch));
      StepMetrics metrics;
      NS_VERIFY_OK(alike->step(options, &metrics));
      for (const std::uint32_t slot : slots) {
        QVERIFY(contents(*mixed, slot) == contents(*alike, slot));
        QVERIFY(contents(*mixed, slot) != before[slot]);
      }
    }
    for (std::uint32_t slot = 0; slot < mixed->slot_count(); ++slot) {
      const bool stepped = slot <= 2 || slot == 5;
      if (!stepped) QVERIFY(contents(*mixed, slot) == before[slot]);  // its gradient too
    }
  }

  void a_gradient_that_is_not_finite_stops_the_named_slots_and_no_others() {
    QVERIFY(load().ok());
    const StageSpec spec = whole_model(small_shape(4));
    const StagePtr stage = stage_of(*load()->module, spec, 4);
    NS_VERIFY_OK(pass(*stage, Batch(spec.shape, 2, 16, 7)));
    for (const float poison : {HUGE_VALF, std::nanf("")}) {
      stage->slot(3).gradient[1] = poison;
      std::vector<std::uint32_t> others;
      for (std::uint32_t i = 0; i < stage->slot_count(); ++i)
        if (i != 3) others.push_back(i);
      std::vector<std::vector<float>> before;
      for (const std::uint32_t slot : others) before.push_back(contents(*stage, slot));
      const Status status = step_slots(*stage, {{1, options_of(1)}, {3, options_of(1)}});
      QVERIFY(to_error(status).code == ErrorCode::Corrupt);
      for (std::size_t i = 0; i < others.size(); ++i) QVERIFY(contents(*stage, others[i]) == before[i]);
      NS_VERIFY_OK(step_slots(*stage, {{1, options_of(1)}}));  // it is none of this step's slots
    }
  }

  void biases_of_a_layer_move_when_its_layer_slot_steps() {
    QVERIFY(load().ok());
    StageSpec spec = whole_model(small_shape(4));
    spec.router.bias_gamma = 0.05f;
    const StagePtr stage = stage_of(*load()->module, spec, 20);
    NS_VERIFY_OK(pass(*stage, Batch(spec.shape, 2, 16, 3)));
    const auto layer_slot = [&](std::uint32_t layer) {
      std::uint32_t index = 0;
      while (stage->slot(index).id != SlotId{SlotKind::Layer, layer, 0}) ++index;
      return index;
    };
    const auto moved = [&](std::uint32_t layer) {
      std::vector<float> bias(8);
      stage->router_bias(bias.data());
      return std::any_of(bias.begin() + 4 * layer, bias.begin() + 4 * (layer + 1),
                         [](float value) { return value != 0; });
    };
    NS_VERIFY_OK(step_slots(*stage, {{layer_slot(0) + 1, options_of(1)}}));  // an expert of the layer
    QVERIFY(!moved(0) && !moved(1));
    NS_VERIFY_OK(step_slots(*stage, {{layer_slot(1), options_of(1)}}));
    QVERIFY(!moved(0) && moved(1));
    NS_VERIFY_OK(step_slots(*stage, {{layer_slot(0), options_of(1)}}));  // its load was not forgotten
    QVERIFY(moved(0));
  }

  void mistakes_are_answered() {
    QVERIFY(load().ok());
    const StageSpec spec = whole_model(small_shape(4));
    const StagePtr stage = stage_of(*load()->module, spec);
    const std::vector<std::vector<float>> before = contents(*stage);
    StepOptions bad = options_of(1);
    bad.learning_rate = std::nan("");
    const std::vector<std::vector<SlotStep>> mistakes = {{},
                                                         {{stage->slot_count(), options_of(1)}},
                                                         {{1, options_of(1)}, {1, options_of(1)}},
                                                         {{1, options_of(1)}, {2, bad}},
                                                         {{1, options_of(1)}, {2, StepOptions()}}};
    for (const std::vector<SlotStep>& steps : mistakes)
      QVERIFY(to_error(step_slots(*stage, steps)).code == ErrorCode::InvalidArgument);
    const Batch batch(spec.shape, 1, 16, 1);
    ForwardMetrics metrics;
    NS_VERIFY_OK(stage->forward(1, batch.view, nullptr, &metrics));
    NS_VERIFY_OK(stage->backward_input(1, nullptr, nullptr));
    const Status due = step_slots(*stage, {{1, options_of(1)}});
    QVERIFY(to_error(due).code == ErrorCode::InvalidArgument);
    QVERIFY2(QString(due.message).contains("backward_weights"), due.message);
    stage->discard(1);
    QVERIFY(contents(*stage) == before);
  }
};

NS_TEST(TestSlotSteps)
#include "test_slot_steps.moc"
