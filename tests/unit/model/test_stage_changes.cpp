// A stage that changes its layers, ends and experts: what stays, what is new, what its memory does, when it is refused.
#include <unistd.h>

#include <QtTest>
#include <fstream>
#include <map>

#include "tests/support/test_main.h"
#include "tests/unit/model/model_test.h"

using namespace neuroshard;
using namespace neuroshard::model_test;

namespace {

ErrorCode code(const Status& status) {
  return status.ok() ? ErrorCode::Cancelled : to_error(status).code;
}

// Parameters, gradient and moments, one after the other.
std::vector<float> contents(const SlotBuffers& slot) {
  std::vector<float> all;
  for (const float* values : {slot.parameters, slot.gradient, slot.moment1, slot.moment2})
    if (values != nullptr) all.insert(all.end(), values, values + slot.count);
  return all;
}

using Contents = std::map<std::string, std::vector<float>>;
Contents contents(Stage& stage) {
  Contents all;
  for (std::uint32_t i = 0; i < stage.slot_count(); ++i)
    all[to_string(stage.slot(i).id)] = contents(stage.slot(i));
  return all;
}

void copy_contents(const std::vector<float>& all, Stage& stage, std::uint32_t index) {
  const SlotBuffers slot = stage.slot(index);
  const float* from = all.data();
  for (float* target : {slot.parameters, slot.gradient, slot.moment1, slot.moment2}) {
    std::copy_n(from, slot.count, target);
    from += slot.count;
  }
}

std::uint64_t slot_bytes(const ModelShape& shape, SlotId id) {
  return 4 * sizeof(float) * compute::slot_parameter_count(shape, id);
}

StageSpec layers(const ModelShape& shape, std::uint32_t first, std::uint32_t count, bool embed = false,
                 bool head = false) {
  StageSpec spec;
  spec.shape = shape;
  spec.first_layer = first;
  spec.layer_count = count;
  spec.embed = embed;
  spec.head = head;
  return spec;
}

// One micro-batch through the stage, and a step if wanted. Random activations where it has no ends.
Status train(Stage& stage, const StageSpec& spec, std::uint64_t number, bool step) {
  const Batch batch(spec.shape, 2, spec.shape.sequence, number);
  Rng rng(number);
  std::vector<float> values(batch.tokens.size() * spec.shape.hidden), room(values.size());
  for (float& value : values) value = rng.normal();
  MicroBatch view = batch.view;
  view.input = values.data();
  ForwardMetrics metrics;
  Status status = stage.forward(number, view, spec.head ? nullptr : room.data(), &metrics);
  if (status.ok())
    status = stage.backward(number, spec.head ? nullptr : values.data(), spec.embed ? nullptr : room.data());
  if (!status.ok() || !step) return status;
  StepOptions options;
  options.learning_rate = 1e-2;
  options.tokens = metrics.tokens;
  options.step = number;
  StepMetrics ignored;
  return stage.step(options, &ignored);
}

// Initial values for the slots that are zeros, if there are any.
void initialise_new(Stage& stage, const ModelShape& shape) {
  bool any = false;
  for (std::uint32_t i = 0; i < stage.slot_count(); ++i) {
    const SlotBuffers slot = stage.slot(i);
    if (std::any_of(slot.parameters, slot.parameters + slot.count, [](float value) { return value != 0; }))
      continue;
    any = true;
    initialise_slot(shape, slot.id, Hash256{7}, {slot.parameters, slot.count});
  }
  if (any) stage.parameters_changed();
}

// As soon as it is freed. The address sanitizer keeps it for a while.
#ifdef __SANITIZE_ADDRESS__
constexpr bool system_gets_memory = false;
#else
constexpr bool system_gets_memory = true;
#endif

std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

// Never asked.
class NoProvider final : public ExpertProvider {
 public:
  Status forward(std::uint64_t, std::uint32_t, std::uint32_t, std::uint64_t, const float*, float*) override {
    return {};
  }
  Status backward(std::uint64_t, std::uint32_t, std::uint32_t, std::uint64_t, const float*, float*) override {
    return {};
  }
};

}  // namespace

class TestStageChanges : public QObject {
  Q_OBJECT
 private:
  Module* module_ = nullptr;

  static ModelShape four_layers(std::uint32_t experts = 4) {
    ModelShape shape = small_shape(experts);
    shape.layers = 4;
    return shape;
  }

 private Q_SLOTS:
  void init() {
    const Expected<LoadedModule> loaded = load();
    QVERIFY2(loaded.ok(), loaded.ok() ? "" : loaded.error().message.c_str());
    module_ = loaded->module;
  }
  void cleanup() { module_->set_memory_limit(0); }

  void slots_that_stay_keep_every_bit_data() {
    QTest::addColumn<QString>("precision");
    QTest::addColumn<quint32>("experts");
    for (const char* precision : {"fp32", "bf16"}) {
      QTest::addRow("%s mixture", precision) << precision << 4u;
      QTest::addRow("%s dense", precision) << precision << 1u;
    }
  }
  void slots_that_stay_keep_every_bit() {
    QFETCH(QString, precision);
    QFETCH(quint32, experts);
    const Expected<LoadedModule> loaded = load(2, 0, "", precision.toStdString());
    if (!loaded.ok()) QSKIP("this processor has no bf16 units");
    const ModelShape shape = four_layers(experts);
    const std::vector<StageSpec> path = {layers(shape, 0, 2, true), layers(shape, 1, 2),
                                         layers(shape, 1, 3, false, true), layers(shape, 3, 1, false, true),
                                         layers(shape, 0, 4, true, true)};
    const StagePtr stage = stage_of(*module_, path.front(), 4);
    NS_VERIFY_OK(train(*stage, path.front(), 1, true));
    for (std::size_t i = 1; i < path.size(); ++i) {
      NS_VERIFY_OK(train(*stage, path[i - 1], 2 * i, false));  // gradients that are kept
      const Contents before = contents(*stage);
      NS_VERIFY_OK(stage->change(path[i]));
      const Expected<StagePtr> fresh = make_stage(*module_, path[i]);
      QVERIFY(fresh.ok());
      QCOMPARE(stage->slot_count(), (*fresh)->slot_count());
      for (std::uint32_t slot = 0; slot < stage->slot_count(); ++slot) {
        const SlotBuffers own = stage->slot(slot);
        QVERIFY(own.id == (*fresh)->slot(slot).id);
        const auto kept = before.find(to_string(own.id));
        QVERIFY2(contents(own) == (kept != before.end() ? kept->second : contents((*fresh)->slot(slot))),
                 to_string(own.id).c_str());
      }
      // From here on it computes as a stage that was made so.
      initialise_new(*stage, shape);
      for (std::uint32_t slot = 0; slot < stage->slot_count(); ++slot)
        copy_contents(contents(stage->slot(slot)), **fresh, slot);
      (*fresh)->parameters_changed();
      NS_VERIFY_OK(train(*stage, path[i], 2 * i + 1, true));
      NS_VERIFY_OK(train(**fresh, path[i], 2 * i + 1, true));
      QVERIFY(contents(*stage) == contents(**fresh));
    }
  }

  void experts_come_and_go() {
    const ModelShape shape = four_layers();
    NoProvider provider;
    StageSpec spec = layers(shape, 1, 2);
    spec.experts = &provider;
    const std::vector<std::uint8_t> some = {1, 0, 0, 1, 0, 1, 1, 0};
    const std::vector<std::uint8_t> others = {1, 1, 0, 0, 0, 0, 1, 1};
    spec.expert_held = some.data();
    const StagePtr stage = stage_of(*module_, spec, 4);
    const Contents before = contents(*stage);
    QCOMPARE(stage->slot_count(), 6u);
    spec.expert_held = others.data();
    NS_VERIFY_OK(stage->change(spec));
    const Contents after = contents(*stage);
    std::string names;
    for (const auto& [name, values] : after) {
      names += name + ", ";
      if (const auto kept = before.find(name); kept != before.end()) QVERIFY(values == kept->second);
    }
    QCOMPARE(QString::fromStdString(names),
             QString("expert 1.0, expert 1.1, expert 2.2, expert 2.3, layer 1, layer 2, "));
    spec.experts = nullptr;
    QVERIFY(code(stage->change(spec)) == ErrorCode::InvalidArgument);  // nobody to ask for the others
    QVERIFY(contents(*stage) == after);
  }

  void counts_and_biases_stay_with_their_layers() {
    const ModelShape shape = four_layers();
    StageSpec spec = layers(shape, 0, 3);
    spec.router.bias_gamma = 0.05f;
    const StagePtr stage = stage_of(*module_, spec, 20);
    NS_VERIFY_OK(train(*stage, spec, 1, true));
    std::vector<float> bias(12), changed(12);
    std::vector<std::uint64_t> load(12), changed_load(12);
    stage->router_bias(bias.data());
    stage->router_load(load.data(), false);
    spec.first_layer = 1;
    NS_VERIFY_OK(stage->change(spec));
    stage->router_bias(changed.data());
    stage->router_load(changed_load.data(), false);
    QVERIFY(std::equal(bias.begin() + 4, bias.end(), changed.begin()));
    QVERIFY(std::equal(load.begin() + 4, load.end(), changed_load.begin()));
    QVERIFY(std::any_of(changed.begin(), changed.begin() + 8, [](float value) { return value != 0; }));
    for (std::size_t i = 8; i < 12; ++i) QVERIFY(changed[i] == 0 && changed_load[i] == 0);
    // The routers read the biases at their new place.
    initialise_new(*stage, shape);
    NS_VERIFY_OK(train(*stage, spec, 2, false));
    stage->router_load(load.data(), true);
    for (std::size_t e = 0; e < 4; ++e) bias[e] = e == 2 ? 1e6f : 0;
    stage->set_router_bias(bias.data());
    NS_VERIFY_OK(train(*stage, spec, 3, false));
    stage->router_load(load.data(), true);
    QCOMPARE(load[2], std::uint64_t{32});  // every token
  }

  void dropped_slots_free_their_memory_and_new_ones_take_no_more_than_theirs() {
    ModelShape shape = four_layers(1);
    shape.vocab = 30000;  // the ends are large
    const StageSpec front = layers(shape, 0, 2, true);
    const StageSpec middle = layers(shape, 1, 2);
    const std::uint64_t empty = module_->memory(true).live_bytes;
    const StagePtr stage = stage_of(*module_, front);
    const std::uint64_t whole = module_->memory(true).live_bytes - empty;
    const std::uint64_t resident = resident_bytes();
    NS_VERIFY_OK(stage->change(middle));
    const compute::MemoryUse use = module_->memory(true);
    const std::uint64_t layer =
        slot_bytes(shape, {SlotKind::Layer, 0, 0}) + slot_bytes(shape, {SlotKind::Expert, 0, 0});
    const std::uint64_t embedding = slot_bytes(shape, {SlotKind::Embed, 0, 0});
    QVERIFY(embedding > 15'000'000);
    constexpr std::uint64_t headers = 4096;  // of the allocator
    QVERIFY(use.peak_bytes - empty <= whole + layer + headers);
    QVERIFY(use.live_bytes - empty <= whole - embedding + headers);
    if (system_gets_memory) QVERIFY(resident_bytes() < resident - embedding / 2);
    NS_VERIFY_OK(stage->change(front));
    QVERIFY(module_->memory(true).live_bytes - empty <= whole + headers);
  }

  void a_change_without_memory_changes_nothing() {
    const ModelShape shape = four_layers();
    const StageSpec spec = layers(shape, 0, 2, true);
    const StagePtr stage = stage_of(*module_, spec);
    NS_VERIFY_OK(train(*stage, spec, 1, true));
    const Contents before = contents(*stage);
    const std::uint64_t live = module_->memory(true).live_bytes;
    module_->set_memory_limit(live + slot_bytes(shape, {SlotKind::Layer, 0, 0}) + 1000);
    QVERIFY(code(stage->change(layers(shape, 1, 2))) == ErrorCode::Exhausted);
    QCOMPARE(module_->memory(true).live_bytes, live);
    module_->set_memory_limit(0);
    QVERIFY(contents(*stage) == before);
    NS_VERIFY_OK(train(*stage, spec, 2, true));
  }

  void a_stage_in_use_is_refused() {
    const ModelShape shape = four_layers();
    const StagePtr stage = stage_of(*module_, whole_model(shape));
    const Contents before = contents(*stage);
    const StageSpec other = layers(shape, 1, 2);
    const Batch batch(shape, 1, 4, 1);
    ForwardMetrics metrics;
    const auto refused = [&] {
      const Status status = stage->change(other);
      return code(status) == ErrorCode::Busy && QString(status.message).contains("in use") &&
             contents(*stage) == before;
    };
    NS_VERIFY_OK(stage->forward(1, batch.view, nullptr, &metrics));
    QVERIFY(refused());
    NS_VERIFY_OK(stage->backward_input(1, nullptr, nullptr));
    QVERIFY(refused());
    stage->discard(1);
    NS_VERIFY_OK(stage->open_session(1, 8));
    QVERIFY(refused());
    stage->close_session(1);
    std::vector<float> rows(shape.hidden), result(shape.hidden);
    NS_VERIFY_OK(stage->expert_forward(1, 0, 0, 1, rows.data(), result.data(), true));
    QVERIFY(refused());
    NS_VERIFY_OK(stage->expert_backward(1, rows.data(), result.data()));
    NS_VERIFY_OK(stage->change(other));
  }

  void another_model_is_refused() {
    const StageSpec spec = whole_model(four_layers());
    const StagePtr stage = stage_of(*module_, spec);
    const Contents before = contents(*stage);
    const auto refused = [&](auto alter) {
      StageSpec other = spec;
      other.layer_count = 2;
      other.head = false;
      alter(other);
      return code(stage->change(other)) == ErrorCode::InvalidArgument && contents(*stage) == before;
    };
    QVERIFY(refused([](StageSpec& other) { other.shape.ffn += 1; }));
    QVERIFY(refused([](StageSpec& other) { other.shape.rope_theta = 5000; }));
    QVERIFY(refused([](StageSpec& other) { other.router.bias_gamma = 0.1f; }));
    QVERIFY(refused([](StageSpec& other) { other.trainable = false; }));
    QVERIFY(refused([](StageSpec& other) { other.first_layer = 3; }));
    QVERIFY(refused([](StageSpec& other) {
      other.layer_count = 0;
      other.embed = false;
    }));
    QVERIFY(!refused([](StageSpec&) {}));
  }

  void a_stage_for_generation_changes_too() {
    const ModelShape shape = four_layers();
    StageSpec spec = layers(shape, 0, 2, true);
    spec.trainable = false;
    const StagePtr stage = stage_of(*module_, spec);
    const Contents before = contents(*stage);
    spec.first_layer = 1;
    spec.embed = false;
    NS_VERIFY_OK(stage->change(spec));
    QVERIFY(contents(*stage)["layer 1"] == before.at("layer 1"));
    QVERIFY(stage->slot(0).gradient == nullptr);
    NS_VERIFY_OK(stage->open_session(1, 4));
    std::vector<float> rows(shape.hidden, 1), result(shape.hidden);
    NS_VERIFY_OK(stage->extend_session(1, 1, nullptr, rows.data(), result.data(), nullptr));
  }
};

NS_TEST(TestStageChanges)
#include "test_stage_changes.moc"
