#include "core/platform/process/process_identity.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <string>

#include "core/platform/sensor/detail/small_file.h"

namespace neuroshard::platform {
namespace {

std::string stat_of(std::int64_t pid, const std::string& proc) {
  return detail::read_small_file(fmt::format("{}/{}/stat", proc, pid));
}

std::optional<ProcessIdentity> parse_stat(std::int64_t pid, const std::string& text) {
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

}  // namespace

std::optional<ProcessIdentity> find_process(std::int64_t pid, const std::string& proc) {
  if (pid <= 0) return std::nullopt;
  return parse_stat(pid, stat_of(pid, proc));
}

bool may_live(const ProcessIdentity& process, const std::string& proc) {
  if (process.pid <= 0) return false;
  const std::string text = stat_of(process.pid, proc);
  if (text.empty()) return kill(static_cast<pid_t>(process.pid), 0) == 0 || errno == EPERM;
  const auto found = parse_stat(process.pid, text);
  return found && (process.start == 0 || *found == process);
}

ProcessIdentity own_process() {
  return find_process(getpid()).value_or(ProcessIdentity{getpid(), 0});
}

}  // namespace neuroshard::platform
