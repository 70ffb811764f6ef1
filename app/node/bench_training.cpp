// Training the model of the profile solo through the compute module, as a share of the matrix product's
// speed that the same module reaches in the same round.
#include <fmt/format.h>

#include <cstring>

#include "app/node/bench_row.h"
#include "core/base/rng.h"
#include "core/compute/module.h"
#include "core/engine/network_profile.h"

namespace neuroshard::app {
namespace {

constexpr std::uint32_t gemm_side = 1024;
constexpr int gemm_repeats = 4;
constexpr std::uint32_t sequences = 8;  // of a micro-batch (SPEC §6)

Contender gemm_yardstick(compute::Module& module) {
  const std::size_t count = std::size_t{gemm_side} * gemm_side;
  auto a = std::make_shared<std::vector<float>>(count, 0.5f);
  auto b = std::make_shared<std::vector<float>>(count, 0.25f);
  auto c = std::make_shared<std::vector<float>>(count);
  return {"GEMM", [&module, a, b, c]() -> Expected<double> {
            for (int i = 0; i < gemm_repeats; ++i) {
              const compute::Status status =
                  module.gemm(gemm_side, gemm_side, gemm_side, a->data(), b->data(), c->data());
              if (!status.ok()) return compute::to_error(status);
            }
            return 2.0 * gemm_repeats * gemm_side * gemm_side * gemm_side;
          }};
}

// Forward and backward: six operations per active parameter and token (Kaplan et al. 2020), and the
// attention's two products over half of the positions on average.
double operations_per_token(const compute::ModelShape& shape) {
  const double attention = 6.0 * shape.layers * shape.hidden * shape.sequence;
  return 6.0 * static_cast<double>(compute::active_parameter_count(shape)) + attention;
}

class TrainingStep {
 public:
  TrainingStep(compute::Stage& stage, const compute::ModelShape& shape) : stage_(stage), shape_(shape) {
    Rng rng(1);
    tokens_.resize(std::size_t{sequences} * shape.sequence);
    for (auto& token : tokens_) token = static_cast<std::int32_t>(rng.below(shape.vocab));
    targets_.assign(tokens_.begin() + 1, tokens_.end());
    targets_.push_back(-1);
  }

  Expected<void> initialise() {
    const Hash256 seed{1};
    for (std::uint32_t i = 0; i < stage_.slot_count(); ++i) {
      const compute::SlotBuffers slot = stage_.slot(i);
      std::vector<float> values(slot.count);
      compute::initialise_slot(shape_, slot.id, seed, {values.data(), values.size()});
      const compute::Status status = stage_.copy_in(i, compute::SlotBuffer::Parameters, values.data());
      if (!status.ok()) return compute::to_error(status);
    }
    stage_.parameters_changed();
    return {};
  }

  Expected<double> forward_backward() {
    const compute::MicroBatch batch{sequences, shape_.sequence, tokens_.data(), targets_.data(), nullptr};
    compute::ForwardMetrics metrics;
    compute::Status status = stage_.forward(++id_, batch, nullptr, &metrics);
    if (status.ok()) status = stage_.backward(id_, nullptr, nullptr);
    if (!status.ok()) return compute::to_error(status);
    return operations_per_token(shape_) * static_cast<double>(tokens_.size());
  }

  // The same and the optimizer's step, once per micro-batch: a lower bound, since real steps accumulate
  // several.
  Expected<double> whole_step() {
    NS_ASSIGN_OR_RETURN(const double operations, forward_backward());
    compute::StepOptions options;
    options.learning_rate = 1e-4;
    options.tokens = tokens_.size();
    options.step = ++step_;
    compute::StepMetrics metrics;
    const compute::Status status = stage_.step(options, &metrics);
    if (!status.ok()) return compute::to_error(status);
    return operations;
  }

 private:
  compute::Stage& stage_;
  compute::ModelShape shape_;
  std::vector<std::int32_t> tokens_, targets_;
  std::uint64_t id_ = 0;
  std::uint64_t step_ = 0;
};

}  // namespace

Expected<BenchReport> bench_training(BenchContext& context) {
  compute::ModuleOptions options;
  options.threads = context.threads;
  std::strncpy(options.precision, context.precision.c_str(), sizeof(options.precision) - 1);
  NS_ASSIGN_OR_RETURN(const compute::LoadedModule loaded,
                      compute::load_module("cpu", options, context.logger));
  NS_ASSIGN_OR_RETURN(const engine::NetworkProfile profile, engine::builtin_profile("solo"));
  compute::StageSpec spec;
  spec.shape = engine::model_shape(profile.consensus);
  spec.router = engine::router_options(profile.consensus);
  spec.layer_count = spec.shape.layers;
  spec.embed = spec.head = true;
  NS_ASSIGN_OR_RETURN(const compute::StagePtr stage, compute::make_stage(*loaded.module, spec));
  TrainingStep training(*stage, spec.shape);
  NS_RETURN_IF_ERROR(training.initialise());

  BenchReport report;
  report.unit = {"GFLOP/s", 1e9};
  report.yardstick_unit = report.unit;
  const std::vector<Contender> contenders = {
      {"forward+backward", [&] { return training.forward_backward(); }},
      {"step", [&] { return training.whole_step(); }}};
  NS_ASSIGN_OR_RETURN(report.result, run_interleaved(context.clock, gemm_yardstick(*loaded.module),
                                                     contenders, context.rounds, context.stop));
  report.targets = {{"step", true, 0.25, 0.45}};
  const double per_token = operations_per_token(spec.shape);
  const auto tokens_per_s = [&](std::size_t contender) {
    return fmt::format("{:.0f}", report.result.contenders[contender].median / per_token);
  };
  report.notes = {{"tokens_per_s", tokens_per_s(1)},
                  {"tokens_per_s_without_optimizer", tokens_per_s(0)},
                  {"model", "solo"},
                  {"parameters", std::to_string(compute::model_parameter_count(spec.shape))},
                  {"active_parameters", std::to_string(compute::active_parameter_count(spec.shape))},
                  {"micro_batch", fmt::format("{} x {}", sequences, spec.shape.sequence)},
                  {"gemm", loaded.info.gemm},
                  {"isa", loaded.info.isa},
                  {"precision", loaded.info.precision},
                  {"threads", std::to_string(loaded.info.threads)}};
  return report;
}

}  // namespace neuroshard::app
