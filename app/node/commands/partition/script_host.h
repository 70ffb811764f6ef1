// compute::ScriptHost over a file, and over bytes in memory.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>

#include "core/base/clock.h"
#include "core/compute/script.h"
#include "core/storage/file_env.h"

namespace neuroshard::app {

inline compute::Status script_failure(const Error& error) {
  compute::Status status;
  status.code = 1 + static_cast<std::int32_t>(error.code);
  std::snprintf(status.message, sizeof status.message, "%s", error.message.c_str());
  return status;
}

class FileScriptHost final : public compute::ScriptHost {
 public:
  FileScriptHost(storage::ReadableFile& file, const Clock& clock) : file_(file), clock_(clock) {}
  ~FileScriptHost() = default;
  std::uint64_t file_bytes() const override { return file_.size(); }
  compute::Status read(std::uint64_t offset, void* target, std::uint64_t bytes) const override {
    const auto read = file_.read_at(
        offset, MutableByteSpan(static_cast<std::uint8_t*>(target), static_cast<std::size_t>(bytes)));
    return read.ok() ? compute::Status() : script_failure(read.error());
  }
  std::int64_t monotonic_nanoseconds() const override {
    return clock_.monotonic_now().time_since_epoch().count();
  }

 private:
  storage::ReadableFile& file_;
  const Clock& clock_;
};

class BytesScriptHost final : public compute::ScriptHost {
 public:
  BytesScriptHost(ByteSpan bytes, const Clock& clock) : bytes_(bytes), clock_(clock) {}
  ~BytesScriptHost() = default;
  std::uint64_t file_bytes() const override { return bytes_.size(); }
  compute::Status read(std::uint64_t offset, void* target, std::uint64_t bytes) const override {
    if (offset > bytes_.size() || bytes > bytes_.size() - offset)
      return script_failure(make_error(ErrorCode::Corrupt, "The model ends early."));
    if (bytes > 0) std::memcpy(target, bytes_.data() + offset, static_cast<std::size_t>(bytes));
    return {};
  }
  std::int64_t monotonic_nanoseconds() const override {
    return clock_.monotonic_now().time_since_epoch().count();
  }

 private:
  ByteSpan bytes_;
  const Clock& clock_;
};

}  // namespace neuroshard::app
