// AdamW with clipping over 25 M parameters, beside the bandwidth of the memory.
#include <fmt/format.h>

#include "app/node/commands/bench/bench_compute.h"
#include "app/node/commands/bench/bench_streams.h"

namespace neuroshard::app {

Expected<BenchReport> bench_optimizer(BenchContext& context) {
  NS_ASSIGN_OR_RETURN(const compute::LoadedModule loaded, load_bench_module(context, context.precision));
  NS_ASSIGN_OR_RETURN(
      const auto training,
      TrainingStep::make(*loaded.module, bench_shape(8, 512, 8, 8, 1344, 512, 256), {}, 1, true));
  const auto parameters = static_cast<double>(training->parameters());
  // fp32: the norm reads the gradient; the update reads and writes parameters, gradient (zeroed) and two
  // moments. bf16 writes two packed copies more.
  const bool half = std::string(loaded.info.precision) == "bf16";
  const double bytes = parameters * (4 + 8 * 4 + (half ? 4 : 0));
  const Contender update{"AdamW + clip",
                         [&]() -> Expected<double> {
                           NS_RETURN_IF_ERROR(training->update());
                           return bytes;
                         },
                         [&] { return training->fill_gradients(); }};
  BenchReport report{{"GB/s", 1e9}, {"GB/s", 1e9}, {}, {{"AdamW + clip", true, 0.5, 0.9}}, {}};
  NS_ASSIGN_OR_RETURN(report.result, run_interleaved(context.clock, update_contender(loaded.info.threads),
                                                     {update}, context.rounds, context.stop));
  const double per_parameter = bytes / parameters;
  const double speed = report.result.contenders[0].median / per_parameter;
  report.notes = {{"parameters", fmt::format("{:.0f}", parameters)},
                  {"bytes_per_parameter", fmt::format("{:.0f}", per_parameter)},
                  {"million_parameters_per_s", fmt::format("{:.0f}", speed / 1e6)}};
  add_compute_notes(loaded, report);
  return report;
}

}  // namespace neuroshard::app
