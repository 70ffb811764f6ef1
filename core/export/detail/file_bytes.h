// A file of the environment as the byte source that core/tensor reads. Private to core/export.
#pragma once

#include <memory>
#include <utility>

#include "core/storage/file_env.h"
#include "core/tensor/safetensors.h"

namespace neuroshard::exporting::detail {

class FileBytes final : public tensor::ByteSource {
 public:
  explicit FileBytes(std::unique_ptr<storage::ReadableFile> file) : file_(std::move(file)) {}
  std::uint64_t size() const override { return file_->size(); }
  Expected<void> read_at(std::uint64_t offset, MutableByteSpan target) override {
    return file_->read_at(offset, target);
  }

 private:
  std::unique_ptr<storage::ReadableFile> file_;
};

}  // namespace neuroshard::exporting::detail
