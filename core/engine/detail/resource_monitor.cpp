#include "core/engine/detail/resource_monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "core/platform/process/process_memory.h"
#include "core/platform/sensor/cpu.h"
#include "core/storage/disk_budget.h"

namespace neuroshard::engine::detail {
namespace {

constexpr Duration directory_period = std::chrono::seconds(60);

}  // namespace

ResourceMonitor::ResourceMonitor(const EngineContext& context, DiskReader& reader)
    : context_(context), reader_(reader), view_(context.publisher.draft().resources) {
  view_.memory_limit_bytes = context.directory.settings().number(config::Setting::MemoryLimit);
  view_.memory_total_bytes = platform::available_memory().total;
}

void ResourceMonitor::look() {
  look_at_processor();
  if (!directory_timer_ && !measuring_) measure_directory();
  view_.resident_bytes = platform::process_memory().resident.value_or(0);
  look_at_disk();
  context_.publisher.publish();
}

void ResourceMonitor::look_at_processor() {
  const MonotonicTime now = context_.services.clock.monotonic_now();
  const Duration used = platform::process_processor_time();
  if (processor_looked_ && now > *processor_looked_ && used.count() > 0) {
    static const double processors = std::max(1, platform::cpu_info().usable_cpus);
    const double share =
        to_seconds(used - processor_time_) / to_seconds(now - *processor_looked_) / processors;
    view_.cpu_share = std::clamp(share, 0.0, 1.0);
  }
  processor_looked_ = now;
  processor_time_ = used;
}

void ResourceMonitor::look_at_disk() {
  const std::string folder = context_.directory.path();
  const auto free = context_.services.files.free_bytes(folder);
  view_.disk_free_bytes = free.value_or(0);
  if (!free.ok()) return;
  if (*free >= config::min_free_bytes) return context_.publisher.clear("disk_low");
  context_.publisher.raise(
      {"disk_low",
       node::Severity::Warning,
       fmt::format("only {} MiB are free on the disk of {}; checkpoints need space", *free >> 20, folder),
       {}});
}

// Counting thousands of files takes a while.
void ResourceMonitor::measure_directory() {
  measuring_ = reader_.read([this] { read_directory(); }).ok();
}

void ResourceMonitor::read_directory() {
  const std::uint64_t bytes = storage::tree_bytes(context_.services.files, context_.directory.path());
  context_.arrivals.put([this, bytes] { on_directory(bytes); });
}

void ResourceMonitor::on_directory(std::uint64_t bytes) {
  measuring_ = false;
  if (context_.jobs.ended()) return;
  view_.directory_bytes = bytes;
  context_.publisher.publish();
  // The next look measures, and the one after it if the reading thread has no room.
  directory_timer_ = context_.core.post_after(directory_period, [this] { directory_timer_.reset(); });
}

}  // namespace neuroshard::engine::detail
