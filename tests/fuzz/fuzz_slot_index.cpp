// slots.index of a checkpoint: what is read writes itself back, and lies within the manifest's files.
#include "core/checkpoint/slot_index.h"
#include "tests/fuzz/chosen_reader.h"
#include "tests/support/checkpoint_sample.h"

using namespace neuroshard;              // NOLINT
using namespace neuroshard::checkpoint;  // NOLINT

namespace {

// As its writer would name them, with headers of 64 bytes and two extra floats.
const Manifest& manifest() {
  static const Manifest made = [] {
    Manifest sample = testing::tiny_manifest(1);
    std::uint64_t floats = 0;
    for (const compute::SlotId slot : compute::model_slots(sample.architecture)) {
      sample.slots.push_back(slot);
      floats += compute::slot_parameter_count(sample.architecture, slot);
    }
    sample.files = {{"weights.safetensors", 64 + 4 * floats, {}},
                    {"optimizer.safetensors", 64 + 8 * floats + 8, {}}};
    return sample;
  }();
  return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteSpan input{data, size};
  const auto runs = decode_slot_index(input, manifest());
  if (!runs.ok()) return 0;
  NS_CHECK(fuzz::same(encode_slot_index(*runs), input));
  for (const SlotRun& run : *runs) {
    const FileRecord* const file = manifest().file(file_of(run));
    NS_CHECK(file != nullptr && run.bytes <= file->bytes && run.offset <= file->bytes - run.bytes);
  }
  return 0;
}
