// Experts held by another stage give the outputs and gradients of local ones.
#include <QtTest>

#include <set>

#include "tests/support/test_main.h"
#include "tests/unit/model/model_test.h"

using namespace neuroshard;
using namespace neuroshard::model_test;

namespace {

constexpr double tolerance = 1e-5;

// Asks a second stage in this process, as the expert exchange will ask another machine.
class HolderInProcess final : public ExpertProvider {
 public:
  explicit HolderInProcess(Stage& holder) : holder_(holder) {}
  ~HolderInProcess() = default;
  Status forward(std::uint64_t call, std::uint32_t layer, std::uint32_t expert, std::uint64_t tokens,
                 const float* input, float* output) override {
    if (call != call_without_backward && !calls.insert(call).second) ++repeated;
    ++forwards;
    if (fail) return failure();
    return holder_.expert_forward(call, layer, expert, tokens, input, output, call != call_without_backward);
  }
  Status backward(std::uint64_t call, std::uint32_t, std::uint32_t, std::uint64_t,
                  const float* gradient_output, float* gradient_input) override {
    return holder_.expert_backward(call, gradient_output, gradient_input);
  }

  std::set<std::uint64_t> calls;
  int repeated = 0;
  int forwards = 0;
  bool fail = false;

 private:
  static Status failure() {
    Status status;
    status.code = 1 + static_cast<std::int32_t>(ErrorCode::Unavailable);
    std::snprintf(status.message, sizeof status.message, "nobody holds this expert");
    return status;
  }
  Stage& holder_;
};

std::vector<float> gradient_of(Stage& stage, SlotId id) {
  for (std::uint32_t i = 0; i < stage.slot_count(); ++i) {
    const SlotBuffers slot = stage.slot(i);
    if (slot.id == id) return {slot.gradient, slot.gradient + slot.count};
  }
  return {};
}

}  // namespace

class TestExperts : public QObject {
  Q_OBJECT
 private:
  Module* module_ = nullptr;

 private Q_SLOTS:
  void initTestCase() {
    const Expected<LoadedModule> loaded = load();
    QVERIFY2(loaded.ok(), loaded.ok() ? "" : loaded.error().message.c_str());
    module_ = loaded->module;
  }

  void remote_experts_equal_local_ones_data() {
    QTest::addColumn<int>("experts");
    QTest::newRow("mixture") << 4;
    QTest::newRow("the whole FFN of a dense model") << 1;
  }

  void remote_experts_equal_local_ones() {
    QFETCH(int, experts);
    const ModelShape shape = small_shape(static_cast<std::uint32_t>(experts));
    const StagePtr local = stage_of(*module_, whole_model(shape), 5);
    const StagePtr holder = stage_of(*module_, whole_model(shape), 5);
    HolderInProcess provider(*holder);
    std::vector<std::uint8_t> held(shape.layers * shape.experts, 1);
    held[0] = 0;                // expert 0.0
    held[held.size() - 1] = 0;  // the last expert of the last layer
    StageSpec spec = whole_model(shape);
    spec.expert_held = held.data();
    spec.experts = &provider;
    const StagePtr remote = stage_of(*module_, spec, 5);
    QVERIFY(local != nullptr && holder != nullptr && remote != nullptr);
    QCOMPARE(remote->slot_count() + 2, local->slot_count());

    for (std::uint64_t id = 0; id < 2; ++id) {
      const Batch batch(shape, 2, 16, 20 + id);
      ForwardMetrics expected;
      ForwardMetrics metrics;
      NS_VERIFY_OK(local->forward(id, batch.view, nullptr, &expected));
      NS_VERIFY_OK(remote->forward(id, batch.view, nullptr, &metrics));
      QVERIFY(std::abs(metrics.loss_sum - expected.loss_sum) < tolerance * expected.loss_sum);
      NS_VERIFY_OK(local->backward(id, nullptr, nullptr));
      NS_VERIFY_OK(remote->backward(id, nullptr, nullptr));
    }
    QCOMPARE(provider.repeated, 0);
    QVERIFY(provider.forwards > 0);
    for (std::uint32_t i = 0; i < remote->slot_count(); ++i) {
      const SlotBuffers slot = remote->slot(i);
      const std::vector<float> own(slot.gradient, slot.gradient + slot.count);
      const double difference = distance(own, gradient_of(*local, slot.id));
      QVERIFY2(difference < tolerance, to_string(slot.id).c_str());
    }
    for (const SlotId id :
         {SlotId{SlotKind::Expert, 0, 0}, SlotId{SlotKind::Expert, shape.layers - 1, shape.experts - 1}}) {
      const std::vector<float> expected = gradient_of(*local, id);
      QVERIFY(distance(gradient_of(*holder, id), expected) < tolerance);
      QVERIFY(*std::max_element(expected.begin(), expected.end()) > 0);  // the comparison means something
    }
  }

  // The holder adds to its gradients in the first half.
  void remote_experts_serve_a_backward_pass_in_halves() {
    const ModelShape shape = small_shape(4);
    const std::vector<std::uint8_t> held = {1, 0, 1, 1, 0, 0, 1, 1};
    std::vector<std::vector<float>> own, holders;
    for (const bool halves : {false, true}) {
      const StagePtr holder = stage_of(*module_, whole_model(shape), 5);
      HolderInProcess provider(*holder);
      StageSpec spec = whole_model(shape);
      spec.expert_held = held.data();
      spec.experts = &provider;
      const StagePtr stage = stage_of(*module_, spec, 5);
      QVERIFY(holder != nullptr && stage != nullptr);
      const Batch batch(shape, 2, 16, 20);
      ForwardMetrics metrics;
      NS_VERIFY_OK(stage->forward(1, batch.view, nullptr, &metrics));
      if (halves) {
        NS_VERIFY_OK(stage->backward_input(1, nullptr, nullptr));
        holders.push_back(gradients(*holder));
        NS_VERIFY_OK(stage->backward_weights(1));
      } else {
        NS_VERIFY_OK(stage->backward(1, nullptr, nullptr));
      }
      own.push_back(gradients(*stage));
      holders.push_back(gradients(*holder));
    }
    QVERIFY(own[0] == own[1]);
    QVERIFY(holders[0] == holders[1] && holders[0] == holders[2]);
    QVERIFY(*std::max_element(holders[0].begin(), holders[0].end()) > 0);
  }

  void evaluation_asks_the_holder_to_keep_nothing() {
    const ModelShape shape = small_shape(4);
    const StagePtr holder = stage_of(*module_, whole_model(shape));
    HolderInProcess provider(*holder);
    const std::vector<std::uint8_t> held(shape.layers * shape.experts, 0);
    StageSpec spec = whole_model(shape);
    spec.expert_held = held.data();
    spec.experts = &provider;
    const StagePtr remote = stage_of(*module_, spec);
    const Batch batch(shape, 1, 16, 3);
    ForwardMetrics metrics;
    NS_VERIFY_OK(remote->evaluate(batch.view, nullptr, &metrics));
    QVERIFY(provider.forwards > 0 && provider.calls.empty());
  }

  void a_provider_that_fails_fails_the_call_and_nothing_else() {
    const ModelShape shape = small_shape(4);
    const StagePtr holder = stage_of(*module_, whole_model(shape));
    HolderInProcess provider(*holder);
    const std::vector<std::uint8_t> held(shape.layers * shape.experts, 0);
    StageSpec spec = whole_model(shape);
    spec.expert_held = held.data();
    spec.experts = &provider;
    const StagePtr remote = stage_of(*module_, spec);
    const Batch batch(shape, 1, 16, 3);
    ForwardMetrics metrics;
    provider.fail = true;
    const Status status = remote->forward(1, batch.view, nullptr, &metrics);
    QVERIFY(to_error(status).code == ErrorCode::Unavailable);
    QCOMPARE(QString(status.message), QString("nobody holds this expert"));
    provider.fail = false;
    NS_VERIFY_OK(remote->forward(1, batch.view, nullptr, &metrics));
    NS_VERIFY_OK(remote->backward(1, nullptr, nullptr));
  }

  void experts_without_a_provider_are_refused() {
    const ModelShape shape = small_shape(4);
    std::vector<std::uint8_t> held(shape.layers * shape.experts, 1);
    held[3] = 0;
    StageSpec spec = whole_model(shape);
    spec.expert_held = held.data();
    const Expected<StagePtr> stage = make_stage(*module_, spec);
    QVERIFY(!stage.ok() && stage.error().message.find("provider") != std::string::npos);
  }

  void a_capacity_above_all_tokens_drops_nothing() {
    const ModelShape shape = small_shape(4);
    const Batch batch(shape, 2, 16, 3);
    const auto trained = [&](float capacity_factor) {
      StageSpec spec = whole_model(shape);
      spec.router.capacity_factor = capacity_factor;
      const StagePtr stage = stage_of(*module_, spec, 5);
      ForwardMetrics metrics;
      if (!stage->forward(1, batch.view, nullptr, &metrics).ok() ||
          !stage->backward(1, nullptr, nullptr).ok()) {
        return std::vector<float>();
      }
      return gradients(*stage);
    };
    const std::vector<float> dropless = trained(0);
    QVERIFY(!dropless.empty() && trained(0.5f) != dropless);
    for (const float factor : {100.0f, 1e30f, HUGE_VALF}) QVERIFY(trained(factor) == dropless);
  }

  void balancing_biases_move_towards_an_even_load() {
    const ModelShape shape = small_shape(4);
    StageSpec spec = whole_model(shape);
    spec.router.bias_gamma = 0.05f;
    const StagePtr stage = stage_of(*module_, spec, 20);
    const Batch batch(shape, 2, 16, 3);
    std::vector<std::uint64_t> first(8);
    std::vector<std::uint64_t> last(8);
    for (std::uint64_t step = 1; step <= 60; ++step) {
      ForwardMetrics metrics;
      NS_VERIFY_OK(stage->forward(1, batch.view, nullptr, &metrics));
      NS_VERIFY_OK(stage->backward(1, nullptr, nullptr));
      StepOptions options;  // learning rate 0: only the biases change
      options.tokens = metrics.tokens;
      options.step = step;
      StepMetrics result;
      NS_VERIFY_OK(stage->step(options, &result));
      stage->router_load(step == 1 ? first.data() : last.data(), true);
    }
    const auto spread = [](const std::vector<std::uint64_t>& load) {
      return *std::max_element(load.begin(), load.begin() + 4) -
             *std::min_element(load.begin(), load.begin() + 4);
    };
    QVERIFY2(spread(last) < spread(first),
             qPrintable(QString("%1 → %2").arg(spread(first)).arg(spread(last))));
    std::vector<float> bias(8);
    stage->router_bias(bias.data());
    QVERIFY(std::any_of(bias.begin(), bias.end(), [](float value) { return value != 0.0f; }));
  }
};

NS_TEST(TestExperts)
#include "test_experts.moc"
