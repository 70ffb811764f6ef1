// Starting neuroshardd for a command that does not compute, beside starting the smallest possible program.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "app/node/commands/bench/bench_row.h"
#include "core/platform/file/paths.h"

namespace neuroshard::app {
namespace {

constexpr int starts = 4;

// Runs a program to its end and discards its output.
Expected<void> run_program(const std::vector<std::string>& command) {
  const std::string& path = command.front();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  pid_t pid = 0;
  const int failed = posix_spawn(&pid, path.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0)
    return make_error(ErrorCode::Io, fmt::format("can't start {}: {}", path, std::strerror(failed)));
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return make_error(ErrorCode::Internal, fmt::format("{} failed", fmt::join(command, " ")));
  }
  return {};
}

Contender starter(const std::string& name, const std::vector<std::string>& command) {
  return {name, [command]() -> Expected<double> {
            for (int i = 0; i < starts; ++i) NS_RETURN_IF_ERROR(run_program(command));
            return double{starts};
          }};
}

}  // namespace

Expected<BenchReport> bench_startup(BenchContext& context) {
  NS_ASSIGN_OR_RETURN(const std::string self, platform::executable_path());
  BenchReport report;
  report.unit = {"starts/s", 1};
  report.yardstick_unit = report.unit;
  const std::string directory = context.scratch + "/startup";
  NS_RETURN_IF_ERROR(
      run_program({self, "wallet", "create", "--protection", "none", "--data-dir", directory}));
  const std::vector<Contender> contenders = {
      starter("--help", {self, "--help"}),
      starter("wallet show", {self, "wallet", "show", "--data-dir", directory})};
  NS_ASSIGN_OR_RETURN(report.result, run_interleaved(context.clock, starter("/bin/true", {"/bin/true"}),
                                                     contenders, context.rounds, context.stop));
  for (const Speed& speed : report.result.contenders) {
    report.targets.push_back({speed.name, false, 20, 50});  // 50 ms, 20 ms
    report.notes.emplace_back(speed.name + " ms", fmt::format("{:.1f}", 1000 / speed.median));
  }
  return report;
}

}  // namespace neuroshard::app
