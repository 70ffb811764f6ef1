// Measures this process's use of the machine: memory, processor, disk space, size of the data directory.
//
// Threads: the core executor. The reading thread measures the data directory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "core/engine/detail/disk_reader.h"
#include "core/engine/detail/engine_context.h"

namespace neuroshard::engine::detail {

class ResourceMonitor {
 public:
  ResourceMonitor(const EngineContext& context, DiskReader& reader);

  // Reads all values that are quick to read into the draft and publishes it; raises and clears "disk_low".
  // Measures the data directory once a minute.
  void look();
  // Drops the timer when the engine ends.
  void end() { directory_timer_.reset(); }

 private:
  void look_at_processor();
  void look_at_disk();
  void measure_directory();
  void read_directory();  // reading thread
  void on_directory(std::uint64_t bytes);

  const EngineContext& context_;
  DiskReader& reader_;
  node::ResourceView& view_;
  Duration processor_time_{};  // at the last measurement
  std::optional<MonotonicTime> processor_looked_;
  bool measuring_ = false;
  std::unique_ptr<TimerHandle> directory_timer_;
};

}  // namespace neuroshard::engine::detail
