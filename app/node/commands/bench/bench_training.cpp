// Training models of several sizes through the compute module, as a share of the matrix product's speed that
// the same module reaches in the same precision and round.
#include <fmt/format.h>

#include "app/node/commands/bench/bench_compute.h"
#include "core/config/network_profile.h"

namespace neuroshard::app {
namespace {

constexpr std::uint32_t gemm_side = 1024;

struct Workload {
  const char* model;
  compute::ModelShape shape;
  compute::RouterOptions router;
  std::uint32_t sequences = 0;
  bool judged = true;  // against the share of the product's speed
};

Expected<BenchReport> measure(BenchContext& context, const Workload& workload) {
  NS_ASSIGN_OR_RETURN(const compute::LoadedModule loaded, load_bench_module(context, context.precision));
  NS_ASSIGN_OR_RETURN(const auto training, TrainingStep::make(*loaded.module, workload.shape, workload.router,
                                                              workload.sequences, true));
  const double per_token = operations_per_token(workload.shape);
  const double operations = per_token * training->tokens();
  BenchReport report;
  report.unit = {"GFLOP/s", 1e9};
  report.yardstick_unit = report.unit;
  const std::vector<Contender> contenders = {{"forward+backward",
                                              [&]() -> Expected<double> {
                                                NS_RETURN_IF_ERROR(training->forward_backward());
                                                return operations;
                                              }},
                                             {"step", [&]() -> Expected<double> {
                                                NS_RETURN_IF_ERROR(training->whole_step());
                                                return operations;
                                              }}};
  NS_ASSIGN_OR_RETURN(
      report.result,
      run_interleaved(context.clock, gemm_contender(*loaded.module, "GEMM", loaded.info.precision, gemm_side),
                      contenders, context.rounds, context.stop));
  if (workload.judged) report.targets = {{"step", true, 0.25, 0.45}};
  const auto tokens_per_s = [&](std::size_t contender) {
    return fmt::format("{:.0f}", report.result.contenders[contender].median / per_token);
  };
  report.notes = {{"tokens_per_s", tokens_per_s(1)},
                  {"tokens_per_s_without_optimizer", tokens_per_s(0)},
                  {"model", workload.model},
                  {"parameters", std::to_string(compute::model_parameter_count(workload.shape))},
                  {"active_parameters", std::to_string(compute::active_parameter_count(workload.shape))},
                  {"micro_batch", fmt::format("{} x {}", workload.sequences, workload.shape.sequence)}};
  add_compute_notes(loaded, report);
  return report;
}

// The halves of the backward pass beside the whole one. Every turn has a forward pass before it, untimed.
Expected<BenchReport> measure_halves(BenchContext& context, const Workload& workload, bool whole) {
  NS_ASSIGN_OR_RETURN(const compute::LoadedModule loaded, load_bench_module(context, context.precision));
  NS_ASSIGN_OR_RETURN(const auto stage, TrainingStep::make(*loaded.module, workload.shape, workload.router,
                                                           workload.sequences, whole));
  const auto timed = [&](const char* name, const std::function<Expected<void>()>& work) {
    return Contender{name,
                     [&stage, work]() -> Expected<double> {
                       NS_RETURN_IF_ERROR(work());
                       return stage->tokens();
                     },
                     [&stage] {
                       stage->zero_gradients();
                       return stage->forward();
                     }};
  };
  BenchReport report{{"tokens/s", 1}, {"tokens/s", 1}, {}, {}, {}};
  NS_ASSIGN_OR_RETURN(report.result,
                      run_interleaved(context.clock, timed("backward", [&] { return stage->backward(); }),
                                      {timed("first half", [&] { return stage->backward_input(); }),
                                       timed("both halves",
                                             [&]() -> Expected<void> {
                                               NS_RETURN_IF_ERROR(stage->backward_input());
                                               return stage->backward_weights();
                                             })},
                                      context.rounds, context.stop));
  const auto share_of_time = [&](std::size_t contender) {
    return fmt::format("{:.3f}", 1 / report.result.contenders[contender].ratio_median);
  };
  report.notes = {{"time_of_first_half", share_of_time(0)},
                  {"time_of_both_halves", share_of_time(1)},
                  {"model", workload.model},
                  {"micro_batch", fmt::format("{} x {}", workload.sequences, workload.shape.sequence)}};
  add_compute_notes(loaded, report);
  return report;
}

}  // namespace

Expected<BenchReport> bench_halves(BenchContext& context) {
  return measure_halves(context, {"4 layers of dense25m", bench_shape(4, 512, 8, 8, 1344, 512, 256), {}, 4},
                        false);
}

Expected<BenchReport> bench_halves_of_solo(BenchContext& context) {
  NS_ASSIGN_OR_RETURN(const config::NetworkProfile profile, config::builtin_profile("solo"));
  return measure_halves(
      context, {"solo", config::model_shape(profile.consensus), config::router_options(profile.consensus), 8},
      true);
}

Expected<BenchReport> bench_gemm(BenchContext& context) {
  NS_ASSIGN_OR_RETURN(const compute::LoadedModule loaded, load_bench_module(context, "auto"));
  compute::Module& module = *loaded.module;
  std::vector<Contender> contenders = {gemm_contender(module, "fp32 2048", "fp32", 2048)};
  const Contender half = gemm_contender(module, "bf16 1024", "bf16", 1024);
  const bool has_bf16 = half.work().ok();
  if (has_bf16) {
    contenders.push_back(half);
    contenders.push_back(gemm_contender(module, "bf16 2048", "bf16", 2048));
  }
  BenchReport report{{"GFLOP/s", 1e9}, {"GFLOP/s", 1e9}, {}, {}, {}};
  NS_ASSIGN_OR_RETURN(report.result,
                      run_interleaved(context.clock, gemm_contender(module, "fp32 1024", "fp32", 1024),
                                      contenders, context.rounds, context.stop));
  if (!has_bf16) report.notes = {{"bf16", "no units in this processor"}};
  add_compute_notes(loaded, report);
  return report;
}

Expected<BenchReport> bench_nanogpt(BenchContext& context) {
  return measure(context, {"nanogpt", bench_shape(4, 128, 4, 4, 352, 96, 64), {}, 12, false});
}

Expected<BenchReport> bench_dense25m(BenchContext& context) {
  return measure(context, {"dense25m", bench_shape(8, 512, 8, 8, 1344, 512, 256), {}, 4});
}

Expected<BenchReport> bench_training(BenchContext& context) {
  NS_ASSIGN_OR_RETURN(const config::NetworkProfile profile, config::builtin_profile("solo"));
  return measure(context, {"solo", config::model_shape(profile.consensus),
                           config::router_options(profile.consensus), 8, false});
}

// One layer with experts beside the dense layer of the same operations per token: one expert of twice the
// width. Both forward and backward; no optimizer.
Expected<BenchReport> bench_moe_layer(BenchContext& context) {
  constexpr std::uint32_t sequences = 4;
  NS_ASSIGN_OR_RETURN(const compute::LoadedModule loaded, load_bench_module(context, context.precision));
  compute::ModelShape sparse = bench_shape(1, 512, 8, 2, 2048, 16, 512);
  sparse.experts = 8;
  sparse.experts_per_token = 2;
  const compute::ModelShape dense = bench_shape(1, 512, 8, 2, 4096, 16, 512);
  NS_ASSIGN_OR_RETURN(const auto moe, TrainingStep::make(*loaded.module, sparse, {}, sequences, false));
  NS_ASSIGN_OR_RETURN(const auto equal, TrainingStep::make(*loaded.module, dense, {}, sequences, false));
  const auto passes = [](TrainingStep& layer) -> Expected<double> {
    layer.zero_gradients();
    NS_RETURN_IF_ERROR(layer.forward_backward());
    return layer.tokens();
  };
  BenchReport report{{"tokens/s", 1}, {"tokens/s", 1}, {}, {{"8 experts, top-2", true, 0.65, 0.90}}, {}};
  NS_ASSIGN_OR_RETURN(
      report.result,
      run_interleaved(context.clock, {"dense equivalent", [&] { return passes(*equal); }},
                      {{"8 experts, top-2", [&] { return passes(*moe); }}}, context.rounds, context.stop));
  report.notes = {{"hidden", "512"}, {"ffn", "2048 per expert, 4096 dense"}, {"micro_batch", "4 x 512"}};
  add_compute_notes(loaded, report);
  return report;
}

}  // namespace neuroshard::app
