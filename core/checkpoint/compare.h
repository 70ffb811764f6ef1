// Two checkpoints of one model side by side: how far their weights are apart, slot by slot.
#pragma once

#include <string>
#include <vector>

#include "core/base/cancel.h"
#include "core/base/expected.h"
#include "core/checkpoint/catalogue.h"
#include "core/checkpoint/loader.h"
#include "core/storage/file_env.h"

namespace neuroshard::checkpoint {

struct WeightDistance {
  double distance = 0;  // ‖b − a‖₂
  double relative = 0;  // ‖b − a‖₂ / ‖a‖₂; 0 when both are zero
  double cosine = 1;    // a·b / (‖a‖₂ ‖b‖₂); 1 when either is zero
};
struct SlotComparison {
  compute::SlotId slot;
  WeightDistance distance;
};
struct Comparison {
  std::vector<SlotComparison> slots;  // that both hold, in the order of the model
  WeightDistance all;                 // over all of them
};

// Reads both files of weights once, piece by piece; a few megabytes are held. Sums are in double precision.
// Hashes are not checked: that is verify()'s part. Errors: InvalidArgument (other architectures), Corrupt,
// Io, Cancelled.
Expected<Comparison> compare(storage::FileEnv& env, const Entry& first, const Entry& second,
                             const Progress& progress = {}, const CancelToken& cancel = {});

}  // namespace neuroshard::checkpoint
