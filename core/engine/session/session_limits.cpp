#include "core/engine/session/session_limits.h"

#include <algorithm>

#include "core/engine/training_data.h"
#include "core/platform/process/heap.h"

namespace neuroshard::engine::detail {
namespace {

// Of a memory limit; 0 is none.
bool is_raised(std::uint64_t before, std::uint64_t now) {
  return before != 0 && (now == 0 || now > before);
}

}  // namespace

SessionLimits::SessionLimits(SessionParts& parts)
    : parts_(parts),
      threads_(parts.directory.settings().number(config::Setting::CpuThreads)),
      disk_(parts.directory.settings().number(config::Setting::DiskLimit)),
      watch_(parts.state.memory_limit == 0 ? 0 : parts.memory.plan.limit) {}

void SessionLimits::follow(StepReport* report) {
  follow_threads(report);
  const std::uint64_t limit = parts_.directory.settings().number(config::Setting::MemoryLimit);
  const std::uint64_t most = parts_.directory.settings().number(config::Setting::MaxMicroBatch);
  const bool raised = is_raised(parts_.state.memory_limit, limit) || most > parts_.state.max_micro_batch;
  follow_memory(limit);
  parts_.state.max_micro_batch = most;
  if (raised && !parts_.is_part()) plan_again();
  if (most < parts_.loop->micro_batch())
    parts_.loop->set_micro_batch(std::max(1u, static_cast<std::uint32_t>(most)));
  follow_disk(report);
}

void SessionLimits::follow_threads(StepReport* report) {
  const config::Settings& settings = parts_.directory.settings();
  const std::uint64_t usual = settings.number(config::Setting::CpuThreads);
  const std::uint64_t threads = threads_wanted_ != 0 ? threads_wanted_ : usual;
  if (threads == threads_) return;
  threads_ = threads;
  const compute::Status status = parts_.module.module->set_threads(usable_threads(threads));
  if (status.ok()) return;
  const bool idle = threads != usual && threads == settings.number(config::Setting::IdleCpuThreads);
  parts_.tell({LogLevel::Warning, idle ? "idle_cpu_threads" : "cpu_threads", status.message}, report);
}

void SessionLimits::follow_memory(std::uint64_t limit) {
  if (limit == parts_.state.memory_limit) return;
  parts_.state.memory_limit = limit;
  watch_ = MemoryWatch(limit);
  if (limit == 0) return parts_.module.module->set_memory_limit(0);
  // Memory outside the tensors stays as it is; the tensors get the rest, and steps that no longer fit are
  // cut into smaller micro-batches.
  const std::uint64_t outside = parts_.memory.plan.limit - parts_.memory.tensor_bytes;
  const std::uint64_t least = parts_.module.module->memory(false).live_bytes;
  parts_.module.module->set_memory_limit(std::max(limit > outside ? limit - outside : 0, least));
  platform::trim_heap();
}

// A person who raises a limit gets what the limits allow. Without room for one sequence nothing changes.
void SessionLimits::plan_again() {
  const std::uint64_t most =
      std::min<std::uint64_t>(parts_.state.max_micro_batch, parts_.info.sequences_per_step);
  const auto planned =
      plan_micro_batch(parts_.memory, parts_.state.memory_limit, static_cast<std::uint32_t>(most));
  if (planned.ok()) parts_.loop->set_micro_batch(*planned);
}

// Checkpoints follow at the next save (TrainingCheckpoints).
void SessionLimits::follow_disk(StepReport* report) {
  const std::uint64_t limit = parts_.directory.settings().number(config::Setting::DiskLimit);
  if (limit == disk_) return;
  disk_ = limit;
  const auto limited = parts_.dataset->limit_cache(published_cache_bytes(parts_.directory));
  if (!limited.ok()) parts_.tell({LogLevel::Warning, "disk_limit", limited.error().message}, report);
}

void SessionLimits::watch(StepReport* report) {
  std::optional<std::string> note;
  const std::uint32_t micro_batch = watch_.check(parts_.loop->micro_batch(), &note);
  parts_.loop->set_micro_batch(micro_batch);
  if (note) parts_.tell({LogLevel::Warning, "memory", *note}, report);
}

}  // namespace neuroshard::engine::detail
