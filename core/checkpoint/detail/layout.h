// Which tensors the files of a checkpoint hold, in which order: slots in the manifest's order, parameters in
// buffer order, so that one slot is one run of bytes. Private to core/checkpoint.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/checkpoint/file_names.h"
#include "core/checkpoint/tensors.h"
#include "core/compute/slot.h"
#include "core/storage/file_env.h"
#include "core/tensor/safetensors.h"

namespace neuroshard::checkpoint::detail {

inline constexpr const char* weights_file = weights_file_name;
inline constexpr const char* optimizer_file = optimizer_file_name;
inline constexpr const char* manifest_file = "manifest.json";
inline constexpr const char* pin_file = "pinned";             // its presence is the pin
inline constexpr const char* verdict_file = "verified.json";  // what the last verification found
inline constexpr const char* choice_file = "chosen.json";     // beside the checkpoints
inline constexpr const char* undo_file = "undo.json";         // beside the checkpoints
inline constexpr const char* saving_folder = ".saving";       // leftovers of a kill
inline constexpr const char* importing_folder = ".importing";
inline constexpr const char* deleting_prefix = ".deleting-";

inline constexpr const char* moment1_suffix = ".moment1";
inline constexpr const char* moment2_suffix = ".moment2";
inline constexpr const char* extra_prefix = "extra.";

// Bytes hashed and written, or read and hashed, at a time: small enough for a cache, large enough for a disk.
inline constexpr std::size_t chunk_bytes = std::size_t{1} << 20;

std::vector<tensor::TensorSpec> weight_specs(const compute::ModelShape& shape,
                                             Span<const compute::SlotId> slots);
// Per slot: every moment1, then every moment2; then the extras.
std::vector<tensor::TensorSpec> optimizer_specs(const compute::ModelShape& shape,
                                                Span<const compute::SlotId> slots,
                                                Span<const ExtraTensor> extras);

// How far ahead of a reader the disk is kept busy.
inline constexpr std::uint64_t read_ahead_bytes = std::uint64_t{32} << 20;

// A file of the environment as the byte source that core/tensor reads. Read from front to back it has the
// disk fetch what comes next while the caller hashes what it has.
class FileSource final : public tensor::ByteSource {
 public:
  explicit FileSource(std::unique_ptr<storage::ReadableFile> file) : file_(std::move(file)) {}
  std::uint64_t size() const override { return file_->size(); }
  Expected<void> read_at(std::uint64_t offset, MutableByteSpan target) override {
    // In quarters of the distance: few requests, each of them large.
    if (offset + read_ahead_bytes >= expected_ + read_ahead_bytes / 4 && expected_ < size()) {
      const std::uint64_t until = offset + read_ahead_bytes;
      file_->expect_read(expected_, until - expected_);
      expected_ = until;
    }
    return file_->read_at(offset, target);
  }

 private:
  std::unique_ptr<storage::ReadableFile> file_;
  std::uint64_t expected_ = 0;  // what lies before has been asked for
};

}  // namespace neuroshard::checkpoint::detail
