#include "core/platform/process/program_file.h"

#include <fmt/format.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/platform/file/paths.h"
#include "core/platform/process/child_process.h"
#include "core/platform/sensor/detail/small_file.h"

namespace neuroshard::platform {
namespace {

constexpr std::int64_t nanoseconds = 1'000'000'000;

}  // namespace

std::vector<std::string> own_arguments() {
  const std::string text = detail::read_small_file("/proc/self/cmdline");
  std::vector<std::string> arguments;
  // Each ends with a zero byte.
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\0', at), text.size());
    arguments.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return arguments;
}

Expected<ProgramFile> ProgramFile::of_this_process() {
  NS_ASSIGN_OR_RETURN(std::string path, executable_path());
  return ProgramFile(std::move(path));
}

ProgramFile::ProgramFile(std::string path)
    : path_(std::move(path)), started_(identity_of(path_)), seen_(started_) {}

ProgramFile::Identity ProgramFile::identity_of(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  return {status.st_dev, status.st_ino, status.st_size,
          status.st_mtim.tv_sec * nanoseconds + status.st_mtim.tv_nsec};
}

bool ProgramFile::replaced() {
  const Identity now = identity_of(path_);
  const bool steady = now == seen_;
  seen_ = now;
  if (!steady || now == started_ || now.size < 0) return false;
  auto version = ChildProcess::start_program(path_, {"--version"});
  return version.ok() && version->wait_end().ok();
}

Error ProgramFile::run_again(std::vector<std::string> arguments) const {
  if (arguments.empty())
    return make_error(ErrorCode::Unavailable, "the system does not report the arguments of this program");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  close_range(STDERR_FILENO + 1, ~0u, CLOSE_RANGE_CLOEXEC);
  // Signals that wait for a thread of this program would wait for ever.
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execv(path_.c_str(), argv.data());
  return make_error(ErrorCode::Io, fmt::format("can't start {}: {}", path_, std::strerror(errno)));
}

}  // namespace neuroshard::platform
