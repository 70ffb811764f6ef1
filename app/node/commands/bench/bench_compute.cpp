#include "app/node/commands/bench/bench_compute.h"

#include <fmt/format.h>

#include "core/base/rng.h"

namespace neuroshard::app {
namespace {

// The operations of one turn: enough of them that the packing before the products does not count.
constexpr double gemm_operations = 5e10;

Expected<void> checked(const compute::Status& status) {
  if (status.ok()) return {};
  return compute::to_error(status);
}

}  // namespace

Expected<compute::LoadedModule> load_bench_module(const BenchContext& context, const std::string& precision) {
  compute::ModuleOptions options;
  options.threads = context.threads;
  precision.copy(options.precision, sizeof(options.precision) - 1);
  NS_ASSIGN_OR_RETURN(compute::LoadedModule loaded, compute::load_module("cpu", options, context.logger));
  return loaded;
}

Contender gemm_contender(compute::Module& module, const std::string& name, const std::string& precision,
                         std::uint32_t side) {
  return {name, [&module, precision, side]() -> Expected<double> {
            const double one = 2.0 * side * side * side;
            const auto repeats = static_cast<std::uint32_t>(gemm_operations / one) + 1;
            double operations = 0;
            NS_RETURN_IF_ERROR(checked(module.gemm_yardstick(precision.c_str(), side, repeats, &operations)));
            return operations;
          }};
}

compute::ModelShape bench_shape(std::uint32_t layers, std::uint32_t hidden, std::uint32_t heads,
                                std::uint32_t kv_heads, std::uint32_t ffn, std::uint32_t vocab,
                                std::uint32_t sequence) {
  compute::ModelShape shape;
  shape.layers = layers;
  shape.hidden = hidden;
  shape.head_dim = hidden / heads;
  shape.heads = heads;
  shape.kv_heads = kv_heads;
  shape.ffn = ffn;
  shape.vocab = vocab;
  shape.sequence = sequence;
  return shape;
}

double operations_per_token(const compute::ModelShape& shape) {
  const double attention = 6.0 * shape.layers * shape.hidden * shape.sequence;
  return 6.0 * static_cast<double>(compute::active_parameter_count(shape)) + attention;
}

TrainingStep::TrainingStep(const compute::ModelShape& shape, std::uint32_t sequences, bool whole)
    : shape_(shape), sequences_(sequences), whole_(whole) {
  Rng rng(1);
  const std::size_t count = std::size_t{sequences} * shape.sequence;
  if (whole) {
    tokens_.resize(count);
    for (auto& token : tokens_) token = static_cast<std::int32_t>(rng.below(shape.vocab));
    targets_.assign(tokens_.begin() + 1, tokens_.end());
    targets_.push_back(-1);
    return;
  }
  input_.resize(count * shape.hidden);
  for (float& value : input_) value = rng.normal();
  output_.resize(input_.size());
  upstream_.resize(input_.size());
  for (float& value : upstream_) value = rng.normal();
  gradient_.resize(input_.size());
}

Expected<std::unique_ptr<TrainingStep>> TrainingStep::make(compute::Module& module,
                                                           const compute::ModelShape& shape,
                                                           const compute::RouterOptions& router,
                                                           std::uint32_t sequences, bool whole) {
  std::unique_ptr<TrainingStep> training(new TrainingStep(shape, sequences, whole));
  compute::StageSpec spec;
  spec.shape = shape;
  spec.router = router;
  spec.layer_count = shape.layers;
  spec.embed = spec.head = whole;
  NS_ASSIGN_OR_RETURN(training->stage_, compute::make_stage(module, spec));
  NS_RETURN_IF_ERROR(training->initialise());
  return training;
}

Expected<void> TrainingStep::initialise() {
  const Hash256 seed{1};
  for (std::uint32_t i = 0; i < stage_->slot_count(); ++i) {
    const compute::SlotBuffers slot = stage_->slot(i);
    std::vector<float> values(slot.count);
    compute::initialise_slot(shape_, slot.id, seed, {values.data(), values.size()});
    NS_RETURN_IF_ERROR(checked(stage_->copy_in(i, compute::SlotBuffer::Parameters, values.data())));
  }
  stage_->parameters_changed();
  return {};
}

Expected<void> TrainingStep::forward() {
  stage_->discard(id_++);
  compute::MicroBatch batch{sequences_, shape_.sequence, nullptr, nullptr, nullptr};
  compute::ForwardMetrics metrics;
  if (whole_) {
    batch.tokens = tokens_.data();
    batch.targets = targets_.data();
    return checked(stage_->forward(id_, batch, nullptr, &metrics));
  }
  batch.input = input_.data();
  return checked(stage_->forward(id_, batch, output_.data(), &metrics));
}

Expected<void> TrainingStep::backward() {
  return checked(whole_ ? stage_->backward(id_, nullptr, nullptr)
                        : stage_->backward(id_, upstream_.data(), gradient_.data()));
}

Expected<void> TrainingStep::backward_input() {
  return checked(whole_ ? stage_->backward_input(id_, nullptr, nullptr)
                        : stage_->backward_input(id_, upstream_.data(), gradient_.data()));
}

Expected<void> TrainingStep::backward_weights() {
  return checked(stage_->backward_weights(id_));
}

Expected<void> TrainingStep::forward_backward() {
  NS_RETURN_IF_ERROR(forward());
  return backward();
}

Expected<void> TrainingStep::update() {
  compute::StepOptions options;
  options.learning_rate = 1e-4;
  options.tokens = std::uint64_t{sequences_} * shape_.sequence;
  options.step = ++step_;
  compute::StepMetrics metrics;
  return checked(stage_->step(options, &metrics));
}

Expected<void> TrainingStep::whole_step() {
  NS_RETURN_IF_ERROR(forward_backward());
  return update();
}

Expected<void> TrainingStep::fill_gradients() {
  Rng rng(step_);
  std::vector<float> pattern(4096);
  for (float& value : pattern) value = rng.normal();
  for (std::uint32_t i = 0; i < stage_->slot_count(); ++i) {
    const compute::SlotBuffers slot = stage_->slot(i);
    std::vector<float> values(slot.count);
    for (std::size_t at = 0; at < values.size(); ++at) values[at] = pattern[at % pattern.size()];
    NS_RETURN_IF_ERROR(checked(stage_->copy_in(i, compute::SlotBuffer::Gradient, values.data())));
  }
  return {};
}

std::uint64_t TrainingStep::parameters() const {
  std::uint64_t count = 0;
  for (std::uint32_t i = 0; i < stage_->slot_count(); ++i) count += stage_->slot(i).count;
  return count;
}

void add_compute_notes(const compute::LoadedModule& loaded, BenchReport& report) {
  report.notes.insert(report.notes.end(), {{"gemm", loaded.info.gemm},
                                           {"isa", loaded.info.isa},
                                           {"precision", loaded.info.precision},
                                           {"threads", std::to_string(loaded.info.threads)}});
}

}  // namespace neuroshard::app
