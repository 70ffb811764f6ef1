#include "app/node/commands/partition/partition_machine.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/node/commands/bench/bench_row.h"
#include "app/node/output/quantity.h"
#include "core/compute/module.h"

namespace neuroshard::app {
namespace {

constexpr std::uint32_t large_side = 1024, small_side = 16;
constexpr std::uint32_t large_products = 8, small_products = 5000;
constexpr int turns = 5;

// Returns the best of a few turns of `work`, in units per second: the machine's ability without disturbance.
Expected<double> best_rate(const Clock& clock, const std::function<Expected<double>()>& work) {
  double best = 0;
  for (int turn = 0; turn < turns; ++turn) {
    const MonotonicTime start = clock.monotonic_now();
    NS_ASSIGN_OR_RETURN(const double units, work());
    const double seconds = to_seconds(clock.monotonic_now() - start);
    if (seconds > 0) best = std::max(best, units / seconds);
  }
  return best;
}

Expected<double> product_rate(compute::Module& module, const Clock& clock, std::uint32_t side,
                              std::uint32_t products) {
  return best_rate(clock, [&]() -> Expected<double> {
    double operations = 0;
    const compute::Status status = module.gemm_yardstick("fp32", side, products, &operations);
    if (!status.ok()) return compute::to_error(status);
    return operations;
  });
}

}  // namespace

Expected<Machine> partition_machine(const MachineFlags& flags, CommandContext& context) {
  Machine machine;
  std::string product = "given", memory = "given";
  if (!flags.flops.empty()) {
    NS_ASSIGN_OR_RETURN(machine.model.flops, parse_operations("--flops", flags.flops));
  } else {
    auto loaded = compute::load_module("cpu", {}, context.logger);
    if (!loaded.ok()) {
      return make_error(loaded.error().code,
                        fmt::format("{} Without it, give the machine's speed: --flops and --memory-bandwidth",
                                    loaded.error().message));
    }
    compute::Module& module = *loaded->module;
    NS_ASSIGN_OR_RETURN(machine.model.flops, product_rate(module, context.clock, large_side, large_products));
    NS_ASSIGN_OR_RETURN(const double small, product_rate(module, context.clock, small_side, small_products));
    // The time of a small product beyond its operations is the cost of starting one.
    const double operations = 2.0 * small_side * small_side * small_side;
    machine.model.launch = std::max(0.0, operations / small - operations / machine.model.flops);
    product = fmt::format("{}x{} fp32 products, {} threads", large_side, large_side, loaded->info.threads);
  }
  if (!flags.memory_bandwidth.empty()) {
    NS_ASSIGN_OR_RETURN(machine.model.memory_bandwidth,
                        parse_bytes("--memory-bandwidth", flags.memory_bandwidth));
  } else {
    const Contender copy = memcpy_yardstick();
    NS_ASSIGN_OR_RETURN(const double copied, best_rate(context.clock, copy.work));
    machine.model.memory_bandwidth = 2 * copied;  // each byte is read and written
    memory = "copies of 32 MiB";
  }
  machine.source = product == memory ? product : fmt::format("{}; memory: {}", product, memory);
  return machine;
}

}  // namespace neuroshard::app
