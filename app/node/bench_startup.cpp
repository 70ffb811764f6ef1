// Starting neuroshardd for something that does not compute, beside starting the smallest program there is.
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "app/node/bench_row.h"
#include "core/platform/paths.h"

namespace neuroshard::app {
namespace {

constexpr int starts = 4;

// Runs a program to its end with its output thrown away.
Expected<void> run_program(const std::string& path, const char* argument) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  char* const arguments[] = {const_cast<char*>(path.c_str()), const_cast<char*>(argument), nullptr};
  pid_t pid = 0;
  const int failed = posix_spawn(&pid, path.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0)
    return make_error(ErrorCode::Io, fmt::format("can't start {}: {}", path, std::strerror(failed)));
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return make_error(ErrorCode::Internal,
                      fmt::format("{} {} did not end well", path, argument ? argument : ""));
  }
  return {};
}

Contender starter(const std::string& name, const std::string& path, const char* argument) {
  return {name, [path, argument]() -> Expected<double> {
            for (int i = 0; i < starts; ++i) NS_RETURN_IF_ERROR(run_program(path, argument));
            return double{starts};
          }};
}

}  // namespace

Expected<BenchReport> bench_startup(BenchContext& context) {
  NS_ASSIGN_OR_RETURN(const std::string self, platform::executable_path());
  BenchReport report;
  report.unit = {"starts/s", 1};
  report.yardstick_unit = report.unit;
  NS_ASSIGN_OR_RETURN(report.result,
                      run_interleaved(context.clock, starter("/bin/true", "/bin/true", nullptr),
                                      {starter("--help", self, "--help")}, context.rounds, context.stop));
  report.targets = {{"--help", false, 20, 50}};  // 50 ms, 20 ms
  const Speed& help = report.result.contenders[0];
  report.notes = {{"help_ms_median", fmt::format("{:.1f}", 1000 / help.median)},
                  {"help_ms_best", fmt::format("{:.1f}", 1000 / help.best)}};
  return report;
}

}  // namespace neuroshard::app
