// The whole model of one checkpoint, for reading only: evaluation and comparison with other programs. Beside a running core it
// needs no lock, and its own memory.  Threads: one, that of the stage.
#pragma once

#include <cstdint>

#include "core/base/cancel.h"
#include "core/base/expected.h"
#include "core/base/log.h"
#include "core/checkpoint/catalogue.h"
#include "core/checkpoint/loader.h"
#include "core/compute/module.h"
#include "core/storage/file_env.h"

namespace neuroshard::engine {

struct CheckpointModelOptions {
  // Its threads and precision; by default all threads, and fp32 for weights, activations and sums: then the results of
  // two checkpoints compare, whatever precision trained them. Obeyed by the first model of a process.
  compute::ModuleOptions module{};
  checkpoint::Progress progress{};
  CancelToken cancel{};
};

// Errors: Corrupt (damaged), InvalidArgument (a part of a model), Exhausted (before anything is allocated: the weights exceed
// the memory that is free), Cancelled, those of the compute module.
Expected<compute::StagePtr> open_checkpoint_model(storage::FileEnv& files, Logger& logger,
                                                  const checkpoint::Entry& entry,
                                                  const CheckpointModelOptions& options = {});

}  // namespace neuroshard::engine
