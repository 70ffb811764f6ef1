// slots.index of a checkpoint: where each slot lies in the files beside it, and its hash, so that one slot
// can be fetched and proven without the rest. The manifest names the file with its hash, and so its signature
// covers this one; checkpoints of earlier versions have none.
//
//   offset  size  content, little-endian
//   0       4     "NSSI"
//   4       4     version, 1
//   8       4     number of runs, n
//   12      62 n  runs: what u8 (0 embed, 1 layer, 2 expert, 3 head, 4 the file's header, 5 extra tensors)
//                   · file u8 (0 weights, 1 optimizer) · layer u32 · expert u32 · offset u64 · bytes u64
//                   · reserved u32, 0 · SHA-256
//
// The runs tile each file from its first to its last byte: its header, the slots in the manifest's order, and
// in the optimizer's file the extra tensors, if there are any.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/checkpoint/manifest.h"
#include "core/compute/slot.h"

namespace neuroshard::checkpoint {

inline constexpr const char* slot_index_file = "slots.index";
inline constexpr std::size_t max_slot_runs = 65'536;
inline constexpr std::size_t slot_run_bytes = 62;
inline constexpr std::size_t max_slot_index_bytes = 12 + max_slot_runs * slot_run_bytes;

enum class RunOf : std::uint8_t { Slot, Header, Extras };
enum class RunFile : std::uint8_t { Weights = 0, Optimizer = 1 };

struct SlotRun {
  RunOf of = RunOf::Slot;
  RunFile file = RunFile::Weights;
  compute::SlotId slot;  // of a Slot
  std::uint64_t offset = 0, bytes = 0;
  Hash256 sha256{};
  friend bool operator==(const SlotRun& a, const SlotRun& b) {
    return a.of == b.of && a.file == b.file && a.slot == b.slot && a.offset == b.offset &&
           a.bytes == b.bytes && a.sha256 == b.sha256;
  }
};
const char* file_of(const SlotRun& run);

Bytes encode_slot_index(const std::vector<SlotRun>& runs);
// As the format says, and the runs of exactly this manifest's slots and files. Corrupt, Unsupported (newer).
Expected<std::vector<SlotRun>> decode_slot_index(ByteSpan bytes, const Manifest& manifest);

}  // namespace neuroshard::checkpoint
