// TorchScript models at the command line: reading one for `partition`, and running it in blocks.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "app/node/command.h"
#include "core/compute/module.h"
#include "core/partition/search/partition.h"

namespace neuroshard::app {

struct ScriptFlags {
  std::vector<std::string> input_shapes;  // one per tensor argument, see parse_input_shape()
  std::uint64_t seed = 1;                 // of the values
  std::uint32_t companions = 0;           // compute::ScriptOptions
};

// "1x3x224x224", "8x128:int64", "8x128:int64:50000" (integers below 50000); "1" has one dimension, "scalar"
// none. InvalidArgument says what is wrong.
Expected<compute::ScriptSample> parse_input_shape(const std::string& text);

// The file, opened in the compute module with one thread and run a few times. Errors: those of
// compute::open_script; NotFound without a compute module.
Expected<compute::ScriptModelPtr> open_script_file(const std::string& path, const ScriptFlags& flags,
                                                   CommandContext& context);

struct ScriptRun {
  std::uint64_t batches = 0;  // 0: about two seconds of them
  double bandwidth = 0;       // bytes per second between processes, as the partition was made with
};

// Runs the model in the blocks of `result` and prints the measurements: lines for people, an object for
// programs. Sets the exit code to Failure when the results are not the whole model's.
Expected<nlohmann::ordered_json> run_script_blocks(compute::ScriptModel& model,
                                                   const partition::ComputationGraph& graph,
                                                   const partition::PartitionResult& result,
                                                   const ScriptRun& run, CommandContext& context);

}  // namespace neuroshard::app
