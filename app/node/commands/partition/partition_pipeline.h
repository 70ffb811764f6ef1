// A cut TorchScript model as a pipeline of processes of this machine: one per block, one thread each, joined
// by byte streams; this process feeds the first ones and takes the results.
#pragma once

#include <cstdint>
#include <vector>

#include "app/node/command.h"
#include "core/compute/module.h"

namespace neuroshard::app {

// Bytes per second through one connection between two processes here, packing included. Takes a tenth of a
// second.
Expected<double> measure_stream_bandwidth(CommandContext& context);

struct PipelineOptions {
  std::uint64_t batches = 0;  // micro-batches to run, at least 1
  double batch_seconds = 0;   // of the whole model in one process: a stall is a multiple of it
};

struct PipelineReport {
  double per_second = 0;  // micro-batches, from the first that left the full pipeline to the last
  double seconds = 0;     // of all of them
  compute::ScriptDeviation deviation;
  std::uint64_t compared = 0;
  std::vector<std::int64_t> workers;       // process numbers
  std::vector<std::uint64_t> block_bytes;  // of the file that each got
};

// `model` is cut into `blocks` and has `distinct` micro-batches with expected results, which are used in
// turn. Every result is compared. No worker is left on return, also after an error. Errors: Unavailable names
// the worker that ended and how, or failed and why; Timeout when nothing moves; Cancelled.
Expected<PipelineReport> run_pipeline(compute::ScriptModel& model, std::uint32_t blocks,
                                      std::uint32_t distinct, const PipelineOptions& options,
                                      CommandContext& context);

}  // namespace neuroshard::app
