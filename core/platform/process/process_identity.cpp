#include "core/platform/process/process_identity.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <string>

#include "core/platform/sensor/detail/small_file.h"

namespace neuroshard::platform {

std::optional<ProcessIdentity> find_process(std::int64_t pid) {
  if (pid <= 0) return std::nullopt;
  const std::string text = detail::read_small_file(fmt::format("/proc/{}/stat", pid));
  // "pid (name) state ppid …": the name may hold anything, so fields are counted after its last bracket; the
  // start is field 22 (proc(5)). A zombie has ended.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= text.size()) return std::nullopt;
  const char state = text[name_end + 2];
  if (state == 'Z' || state == 'X') return std::nullopt;
  std::size_t at = name_end + 2;
  for (int field = 3; field < 22; ++field) {
    at = text.find(' ', at);
    if (at == std::string::npos) return std::nullopt;
    ++at;
  }
  ProcessIdentity identity{pid, 0};
  const auto [end, failed] = std::from_chars(text.data() + at, text.data() + text.size(), identity.start);
  if (failed != std::errc()) return std::nullopt;
  return identity;
}

ProcessIdentity own_process() {
  return find_process(getpid()).value_or(ProcessIdentity{getpid(), 0});
}

}  // namespace neuroshard::platform
