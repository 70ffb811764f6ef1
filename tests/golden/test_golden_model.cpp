// The C++ model against golden values from an independent PyTorch program (model_oracle.py): every block
// forward and backward to 1e-5, router losses, AdamW, clipping per slot, ten training losses to 1e-4; dense
// and mixture.
#include <QtTest>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/test_main.h"
#include "tests/unit/model/model_test.h"

using namespace neuroshard;
using namespace neuroshard::model_test;
using nlohmann::json;

namespace {

constexpr double block_tolerance = 1e-5;
constexpr double loss_tolerance = 1e-4;

// The oracle's number streams.
std::vector<float> stream(std::uint32_t seed, std::size_t count, double amplitude) {
  std::vector<float> values;
  std::uint32_t x = seed;
  for (std::size_t i = 0; i < count; ++i) {
    x = 1664525u * x + 1013904223u;
    values.push_back(static_cast<float>((x / 4294967296.0 - 0.5) * 2 * amplitude));
  }
  return values;
}

std::vector<std::int32_t> token_stream(std::uint32_t seed, std::size_t count, std::uint32_t vocab) {
  std::vector<std::int32_t> tokens;
  for (const float value : stream(seed, count, 0.5)) {
    const auto token = static_cast<std::int32_t>(std::floor((double{value} + 0.5) * vocab));
    tokens.push_back(std::min(token, static_cast<std::int32_t>(vocab) - 1));
  }
  return tokens;
}

json load_case(const std::string& name) {
  std::ifstream file(std::string(qgetenv("NS_SOURCE_DIR").constData()) + "/tests/golden/model/" + name +
                     ".json");
  return json::parse(file, nullptr, false);
}

std::vector<float> floats(const json& values) {
  return values.get<std::vector<float>>();
}

ModelShape shape_of(const json& golden) {
  const json& fields = golden["shape"];
  ModelShape shape;
  shape.layers = fields["layers"];
  shape.hidden = fields["hidden"];
  shape.head_dim = fields["head_dim"];
  shape.heads = fields["heads"];
  shape.kv_heads = fields["kv_heads"];
  shape.ffn = fields["ffn"];
  shape.experts = fields["experts"];
  shape.experts_per_token = fields["k"];
  shape.vocab = fields["vocab"];
  shape.sequence = 16;
  return shape;
}

RouterOptions router_of(const json& golden) {
  RouterOptions router;
  const json& options = golden["options"];
  router.balance_coefficient = options["balance"];
  router.z_coefficient = options["z"];
  if (options.contains("capacity_factor")) router.capacity_factor = options["capacity_factor"];
  if (options.contains("bias")) router.bias_gamma = 1e-3f;
  return router;
}

// Weights as the oracle makes them.
void fill(Stage& stage, const ModelShape& shape, const std::vector<std::string>& zero = {}) {
  const std::vector<SlotId> order = model_slots(shape);
  for (std::uint32_t i = 0; i < stage.slot_count(); ++i) {
    const SlotBuffers slot = stage.slot(i);
    const auto index =
        static_cast<std::uint32_t>(std::find(order.begin(), order.end(), slot.id) - order.begin());
    const std::vector<float> values = stream(1000 + index, slot.count, 1.0);
    for (const ParameterInfo& parameter : slot_parameters(shape, slot.id)) {
      const bool norm = parameter.dims.size() == 1;
      const bool cleared = std::any_of(zero.begin(), zero.end(), [&](const std::string& end) {
        return parameter.name.size() > end.size() &&
               parameter.name.compare(parameter.name.size() - end.size(), end.size(), end) == 0;
      });
      for (std::uint64_t j = parameter.offset; j < parameter.offset + parameter.count; ++j) {
        const double value = norm ? 1 + 0.2 * double{values[j]} : 0.3 * double{values[j]};
        slot.parameters[j] = cleared ? 0.0f : static_cast<float>(value);
      }
    }
  }
  stage.parameters_changed();
}

StagePtr make(Module& module, const StageSpec& spec, const std::vector<std::string>& zero = {}) {
  Expected<StagePtr> stage = make_stage(module, spec);
  if (!stage.ok()) return nullptr;
  fill(**stage, spec.shape, zero);
  return std::move(stage).value();
}

// Distance of one buffer of every slot named in `expected`; infinite if one is missing.
double slots_distance(Stage& stage, const json& expected, float* SlotBuffers::*buffer,
                      std::uint64_t stride = 1) {
  double worst = expected.size() == stage.slot_count() ? 0 : HUGE_VAL;
  for (std::uint32_t i = 0; i < stage.slot_count(); ++i) {
    const SlotBuffers slot = stage.slot(i);
    std::vector<float> values;
    for (std::uint64_t j = 0; j < slot.count; j += stride) values.push_back((slot.*buffer)[j]);
    const std::string name = to_string(slot.id);
    worst = std::max(worst, expected.contains(name) ? distance(values, floats(expected[name])) : HUGE_VAL);
  }
  return worst;
}

bool near(double value, double expected, double tolerance) {
  return std::abs(value - expected) <= tolerance * std::max(1.0, std::abs(expected));
}

}  // namespace

#define VERIFY_NEAR(value, expected, tolerance) \
  QVERIFY2(near(value, expected, tolerance),    \
           qPrintable(QString("%1 instead of %2").arg(value).arg(double(expected))))
#define VERIFY_SMALL(value, tolerance) QVERIFY2((value) <= (tolerance), qPrintable(QString::number(value)))

class TestGoldenModel : public QObject {
  Q_OBJECT
 private:
  Module* module_ = nullptr;

 private Q_SLOTS:
  void initTestCase() {
    const Expected<LoadedModule> loaded = load();
    QVERIFY2(loaded.ok(), loaded.ok() ? "" : loaded.error().message.c_str());
    module_ = loaded->module;
  }

  void layer_data() {
    QTest::addColumn<QString>("name");
    for (const char* name : {"layer_moe", "layer_moe_without_sharing", "layer_dense", "attention_only",
                             "mixture_only", "layer_capacity", "layer_bias", "layer_long"}) {
      QTest::newRow(name) << name;
    }
  }

  void layer() {
    QFETCH(QString, name);
    const json golden = load_case(name.toStdString());
    QVERIFY2(golden.is_object(), "the golden file is missing");
    StageSpec spec;
    spec.shape = shape_of(golden);
    spec.router = router_of(golden);
    spec.layer_count = 1;
    const StagePtr stage = make(*module_, spec, golden["zero"].get<std::vector<std::string>>());
    QVERIFY(stage != nullptr);
    if (golden["options"].contains("bias")) stage->set_router_bias(floats(golden["options"]["bias"]).data());

    MicroBatch batch;
    batch.batch = golden["batch"];
    batch.sequence = golden["sequence"];
    const std::size_t count = std::size_t{batch.batch} * batch.sequence * spec.shape.hidden;
    const std::vector<float> input = stream(1, count, 1.0);
    const std::vector<float> upstream = stream(2, count, 1.0);
    batch.input = input.data();
    std::vector<float> output(count);
    std::vector<float> gradient_input(count);
    ForwardMetrics metrics;
    NS_VERIFY_OK(stage->forward(5, batch, output.data(), &metrics));
    VERIFY_SMALL(distance(output, floats(golden["output"])), block_tolerance);
    const double tokens = double(batch.batch) * batch.sequence;
    VERIFY_NEAR(metrics.balance_sum / tokens, golden["balance"].get<double>(), block_tolerance);
    VERIFY_NEAR(metrics.z_sum / tokens, golden["z"].get<double>(), block_tolerance);
    NS_VERIFY_OK(stage->backward(5, upstream.data(), gradient_input.data()));
    VERIFY_SMALL(distance(gradient_input, floats(golden["gradient_input"])), block_tolerance);
    VERIFY_SMALL(slots_distance(*stage, golden["gradients"], &SlotBuffers::gradient), block_tolerance);
    // And in two halves.
    stage->zero_gradients();
    std::fill(gradient_input.begin(), gradient_input.end(), 0.0f);
    NS_VERIFY_OK(stage->forward(6, batch, output.data(), &metrics));
    NS_VERIFY_OK(stage->backward_input(6, upstream.data(), gradient_input.data()));
    VERIFY_SMALL(distance(gradient_input, floats(golden["gradient_input"])), block_tolerance);
    NS_VERIFY_OK(stage->backward_weights(6));
    VERIFY_SMALL(slots_distance(*stage, golden["gradients"], &SlotBuffers::gradient), block_tolerance);
    std::vector<std::uint64_t> load(spec.shape.experts);
    stage->router_load(load.data(), true);
    auto expected = golden["counts"].get<std::vector<std::uint64_t>>();
    for (std::uint64_t& count : expected) count *= 2;  // of both forward passes
    QVERIFY(load == expected);
  }

  void embedding_and_head() {
    const json golden = load_case("ends");
    QVERIFY2(golden.is_object(), "the golden file is missing");
    const ModelShape shape = shape_of(golden);
    MicroBatch batch;
    batch.batch = golden["batch"];
    batch.sequence = golden["sequence"];
    const std::size_t count = std::size_t{batch.batch} * batch.sequence * shape.hidden;
    const auto tokens = golden["tokens"].get<std::vector<std::int32_t>>();
    const auto targets = golden["targets"].get<std::vector<std::int32_t>>();
    const std::vector<float> upstream = stream(2, count, 1.0);
    const std::vector<float> input = stream(1, count, 1.0);
    std::vector<float> buffer(count);
    ForwardMetrics metrics;

    StageSpec spec;
    spec.shape = shape;
    spec.embed = true;
    const StagePtr embed = make(*module_, spec);
    QVERIFY(embed != nullptr);
    batch.tokens = tokens.data();
    NS_VERIFY_OK(embed->forward(1, batch, buffer.data(), &metrics));
    QCOMPARE(distance(buffer, floats(golden["embedded"])) < 1e-7, true);
    NS_VERIFY_OK(embed->backward(1, upstream.data(), nullptr));
    VERIFY_SMALL(slots_distance(*embed, {{"embed", golden["gradients"]["embed"]}}, &SlotBuffers::gradient),
                 block_tolerance);

    spec.embed = false;
    spec.head = true;
    const StagePtr head = make(*module_, spec);
    QVERIFY(head != nullptr);
    batch.input = input.data();
    batch.targets = targets.data();
    NS_VERIFY_OK(head->forward(1, batch, nullptr, &metrics));
    QCOMPARE(metrics.target_tokens, std::uint64_t{12});  // two of fourteen have no target
    VERIFY_NEAR(metrics.loss_sum, golden["loss"].get<double>(), block_tolerance);
    NS_VERIFY_OK(head->backward(1, nullptr, buffer.data()));
    VERIFY_SMALL(distance(buffer, floats(golden["gradient_input"])), block_tolerance);
    VERIFY_SMALL(slots_distance(*head, {{"head", golden["gradients"]["head"]}}, &SlotBuffers::gradient),
                 block_tolerance);
  }

  void adamw_with_clipping_per_slot() {
    const json golden = load_case("adamw");
    QVERIFY2(golden.is_object(), "the golden file is missing");
    const StageSpec spec = whole_model(shape_of(golden));
    const StagePtr stage = make(*module_, spec);
    QVERIFY(stage != nullptr);
    for (std::uint32_t step = 1; step <= 3; ++step) {
      for (std::uint32_t i = 0; i < stage->slot_count(); ++i) {
        const SlotBuffers slot = stage->slot(i);
        const std::vector<float> values = stream(7000 + 100 * step + i, slot.count, 0.4 * (1 + i % 3));
        std::copy(values.begin(), values.end(), slot.gradient);
      }
      StepOptions options;
      options.learning_rate = 1e-2;
      options.tokens = 10;
      options.step = step;
      options.clip = golden["clip"];
      StepMetrics metrics;
      NS_VERIFY_OK(stage->step(options, &metrics));
      VERIFY_NEAR(metrics.gradient_norm, golden["norms"][step - 1].get<double>(), 1e-6);
      QCOMPARE(metrics.clipped_slots, golden["clipped"][step - 1].get<std::uint32_t>());
      QVERIFY(metrics.clipped_slots > 0 && metrics.clipped_slots < stage->slot_count());
    }
    VERIFY_SMALL(slots_distance(*stage, golden["parameters"], &SlotBuffers::parameters), 1e-6);
    VERIFY_SMALL(slots_distance(*stage, golden["moment1"], &SlotBuffers::moment1), 1e-6);
    VERIFY_SMALL(slots_distance(*stage, golden["moment2"], &SlotBuffers::moment2), 1e-7);
    for (const float value : gradients(*stage)) QCOMPARE(value, 0.0f);
  }

  void ten_training_losses_data() {
    QTest::addColumn<QString>("name");
    QTest::newRow("mixture") << "training_moe";
    QTest::newRow("dense") << "training_dense";
  }

  void ten_training_losses() {
    QFETCH(QString, name);
    const json golden = load_case(name.toStdString());
    QVERIFY2(golden.is_object(), "the golden file is missing");
    StageSpec spec = whole_model(shape_of(golden));
    spec.router = router_of(golden);
    const StagePtr stage = make(*module_, spec);
    QVERIFY(stage != nullptr);
    MicroBatch batch;
    batch.batch = golden["batch"];
    batch.sequence = golden["sequence"];
    const std::size_t count = std::size_t{batch.batch} * batch.sequence;
    for (std::uint32_t step = 1; step <= 10; ++step) {
      StepOptions options;
      options.learning_rate = 3e-3 * step / 10;
      options.step = step;
      options.clip = golden["clip"];
      double loss = 0;
      for (std::uint32_t micro = 0; micro < 2; ++micro) {
        const std::vector<std::int32_t> tokens =
            token_stream(100 + 10 * step + micro, count, spec.shape.vocab);
        const std::vector<std::int32_t> targets =
            token_stream(500 + 10 * step + micro, count, spec.shape.vocab);
        batch.tokens = tokens.data();
        batch.targets = targets.data();
        ForwardMetrics metrics;
        NS_VERIFY_OK(stage->forward(micro, batch, nullptr, &metrics));
        NS_VERIFY_OK(stage->backward(micro, nullptr, nullptr));
        loss += metrics.loss_sum;
        options.tokens += metrics.tokens;
      }
      VERIFY_NEAR(loss / static_cast<double>(options.tokens), golden["losses"][step - 1].get<double>(),
                  loss_tolerance);
      StepMetrics metrics;
      NS_VERIFY_OK(stage->step(options, &metrics));
      VERIFY_NEAR(metrics.gradient_norm, golden["norms"][step - 1].get<double>(), loss_tolerance);
      QCOMPARE(metrics.clipped_slots, golden["clipped"][step - 1].get<std::uint32_t>());
    }
    VERIFY_SMALL(slots_distance(*stage, golden["every_seventh_parameter"], &SlotBuffers::parameters, 7),
                 loss_tolerance);
  }

  void an_even_router_has_a_balance_loss_of_exactly_one() {
    ModelShape shape = small_shape(4);
    StageSpec spec = whole_model(shape);
    const StagePtr stage = make(*module_, spec, {"gate.weight"});  // all experts equally likely
    const Batch batch(shape, 2, 16, 3);
    ForwardMetrics metrics;
    NS_VERIFY_OK(stage->evaluate(batch.view, nullptr, &metrics));
    QCOMPARE(metrics.balance_sum / static_cast<double>(metrics.tokens), 1.0);
  }
};

NS_TEST(TestGoldenModel)
#include "test_golden_model.moc"
