// Reads a checkpoint: every byte is hashed on its way, every tensor checked for name, type and shape.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/cancel.h"
#include "core/base/expected.h"
#include "core/checkpoint/catalogue.h"
#include "core/checkpoint/tensors.h"
#include "core/storage/file_env.h"

namespace neuroshard::checkpoint {

// All extras of one checkpoint together.
inline constexpr std::uint64_t max_extra_bytes = 64u << 20;

// Where a slot's floats go: slot_parameter_count each, or empty for what is not wanted (generation takes no
// moments).
struct SlotTarget {
  Span<float> parameters;
  Span<float> moment1;
  Span<float> moment2;
};

struct LoadRequest {
  compute::ModelShape shape;           // must be the checkpoint's
  std::vector<compute::SlotId> slots;  // must be in the checkpoint; further ones there are passed over
  std::function<Expected<SlotTarget>(compute::SlotId)>
      target;                                               // once per slot above, before anything is read
  std::function<Expected<void>(const ExtraTensor&)> extra;  // may be null
  bool optimizer = true;  // false: weights only, the other file is not opened
};

// done and total bytes; called about every 16 MiB. May be null.
using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

// Bit for bit what was saved. Errors: InvalidArgument (another architecture, a slot that it lacks), Corrupt,
// Io, Cancelled (looked at about every megabyte). On a failure the targets hold an undefined mixture.
Expected<void> load(storage::FileEnv& env, const Entry& entry, const LoadRequest& request,
                    const Progress& progress = {}, const CancelToken& cancel = {});

struct Loaded {
  Entry entry;
  std::vector<std::string> passed_over;  // damaged newer ones, each in a sentence for a person
};
// Tries the catalogue's candidates in turn, going past damaged ones. NotFound: there is none at all; Corrupt:
// none of those there are can be loaded; any other error stops at once.
Expected<Loaded> load_current(storage::FileEnv& env, const Catalogue& catalogue, const LoadRequest& request,
                              const Progress& progress = {});

// Reads everything and keeps nothing: signature, hashes, strict format, names and shapes.
Expected<void> verify(storage::FileEnv& env, const Entry& entry, const Progress& progress = {},
                      const CancelToken& cancel = {});

bool same_shape(const compute::ModelShape& a, const compute::ModelShape& b);

}  // namespace neuroshard::checkpoint
