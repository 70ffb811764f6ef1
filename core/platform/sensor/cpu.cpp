#include "core/platform/sensor/cpu.h"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "core/platform/process/detail/cgroup.h"
#include "core/platform/sensor/detail/small_file.h"

namespace neuroshard::platform {
namespace {

using detail::parse_number;
using detail::read_small_file;

int affinity_cpus() {
#if defined(__linux__)
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

int round_up(std::uint64_t quota, std::uint64_t period, int at_most) {
  if (quota == 0 || period == 0) return at_most;
  const std::uint64_t cpus = quota / period + (quota % period != 0 ? 1 : 0);
  return static_cast<int>(std::min<std::uint64_t>(cpus, static_cast<std::uint64_t>(at_most)));
}

int limited_by_groups(int cpus, const detail::CgroupFolders& folders) {
  for (const std::string& folder : folders.v2) {
    const std::string text = read_small_file(folder + "/cpu.max");  // "quota period", quota may be "max"
    const std::size_t space = text.find(' ');
    const auto quota = parse_number(text);
    if (!quota || space == std::string::npos) continue;
    cpus = round_up(*quota, parse_number(std::string_view(text).substr(space)).value_or(0), cpus);
  }
  for (const std::string& folder : folders.v1_cpu) {
    const auto quota = parse_number(read_small_file(folder + "/cpu.cfs_quota_us"));  // "-1": none
    const auto period = parse_number(read_small_file(folder + "/cpu.cfs_period_us"));
    if (quota && period) cpus = round_up(*quota, *period, cpus);
  }
  return std::max(1, cpus);
}

// The value of the first "key : value" line of /proc/cpuinfo.
std::string cpuinfo_field(const std::string& text, const std::string& key) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (text.compare(at, key.size(), key) == 0) {
      const std::size_t colon = text.find(": ", at);
      if (colon != std::string::npos && colon < end) return text.substr(colon + 2, end - colon - 2);
    }
    at = end + 1;
  }
  return {};
}

bool has_word(const std::string& words, const std::string& word) {
  return (" " + words + " ").find(" " + word + " ") != std::string::npos;
}

}  // namespace

std::string CpuInfo::isa_name() const {
  if (isa.amx_bf16) return "AMX";
  if (isa.avx512_bf16) return "AVX-512 (bf16)";
  if (isa.avx512f) return "AVX-512";
  if (isa.avx2) return "AVX2";
  return "baseline";
}

CpuInfo cpu_info() {
  return cpu_info("");
}

CpuInfo cpu_info(const std::string& root) {
  CpuInfo info;
  const std::string text = read_small_file(root + "/proc/cpuinfo");
  info.model = cpuinfo_field(text, "model name");
  // The kernel lists a flag only when it also saves the registers, which plain CPUID does not tell.
  const std::string flags = cpuinfo_field(text, "flags");
  info.isa = {has_word(flags, "avx2"), has_word(flags, "avx512f"), has_word(flags, "avx512_bf16"),
              has_word(flags, "amx_bf16")};
  info.usable_cpus = limited_by_groups(
      affinity_cpus(),
      detail::cgroup_folders(read_small_file(root + "/proc/self/cgroup"), root + "/sys/fs/cgroup"));
  return info;
}

namespace {

Duration processor_time(const rusage& usage) {
  const auto time = [](const timeval& t) -> Duration {
    return std::chrono::seconds(t.tv_sec) + std::chrono::microseconds(t.tv_usec);
  };
  return time(usage.ru_utime) + time(usage.ru_stime);
}

}  // namespace

Duration thread_processor_time() {
#if defined(RUSAGE_THREAD)
  rusage usage{};
  return ::getrusage(RUSAGE_THREAD, &usage) == 0 ? processor_time(usage) : Duration{0};
#else
  return Duration{0};
#endif
}

Duration process_processor_time() {
  rusage usage{};
  return ::getrusage(RUSAGE_SELF, &usage) == 0 ? processor_time(usage) : Duration{0};
}

}  // namespace neuroshard::platform
