#include "core/platform/process/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace neuroshard::platform {
namespace {

constexpr char own_program[] = "/proc/self/exe";

ProcessEnd end_of(int status) {
  ProcessEnd end;
  if (WIFSIGNALED(status)) {
    end.signal = WTERMSIG(status);
  } else {
    end.exit_code = WEXITSTATUS(status);
  }
  return end;
}

// Copies of the descriptors above all the numbers that they shall have in the child, so that placing one does
// not overwrite the next.
class RaisedDescriptors {
 public:
  explicit RaisedDescriptors(const std::vector<int>& descriptors) {
    const int above = first_inherited_descriptor + static_cast<int>(descriptors.size());
    for (const int descriptor : descriptors) {
      raised_.push_back(fcntl(descriptor, F_DUPFD_CLOEXEC, above));
      complete_ = complete_ && raised_.back() >= 0;
    }
  }
  ~RaisedDescriptors() {
    for (const int descriptor : raised_)
      if (descriptor >= 0) close(descriptor);
  }
  RaisedDescriptors(const RaisedDescriptors&) = delete;
  RaisedDescriptors& operator=(const RaisedDescriptors&) = delete;
  bool complete() const { return complete_; }
  const std::vector<int>& list() const { return raised_; }

 private:
  std::vector<int> raised_;
  bool complete_ = true;
};

}  // namespace

std::string ProcessEnd::describe() const {
  return signal != 0 ? fmt::format("was killed by signal {}", signal)
                     : fmt::format("ended with exit code {}", exit_code);
}

Expected<ChildProcess> ChildProcess::start_self(const std::vector<std::string>& arguments,
                                                const std::vector<int>& descriptors) {
  return start(own_program, arguments, descriptors, false);
}

Expected<ChildProcess> ChildProcess::start_program(const std::string& path,
                                                   const std::vector<std::string>& arguments) {
  return start(path.c_str(), arguments, {}, true);
}

Expected<ChildProcess> ChildProcess::start(const char* program, const std::vector<std::string>& arguments,
                                           const std::vector<int>& descriptors, bool silent) {
  const RaisedDescriptors raised(descriptors);
  if (!raised.complete())
    return make_error(ErrorCode::Exhausted, "this process has no file descriptors left for another one");
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (silent) {
    for (const int output : {STDOUT_FILENO, STDERR_FILENO})
      posix_spawn_file_actions_addopen(&actions, output, "/dev/null", O_WRONLY, 0);
  }
  for (std::size_t i = 0; i < descriptors.size(); ++i) {
    posix_spawn_file_actions_adddup2(&actions, raised.list()[i],
                                     first_inherited_descriptor + static_cast<int>(i));
  }
  // Signals that this process waits for in a thread of its own are blocked here, and must not be there.
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  std::vector<char*> argv;
  std::string name = "neuroshardd";
  argv.push_back(name.data());
  std::vector<std::string> copies = arguments;
  for (std::string& argument : copies) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, program, &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0)
    return make_error(ErrorCode::Io, fmt::format("can't start another process: {}", std::strerror(error)));
  ChildProcess child;
  child.pid_ = pid;
  return child;
}

ChildProcess::~ChildProcess() {
  if (pid_ < 0 || end_) return;
  kill();
  wait_end();
}

std::optional<ProcessEnd> ChildProcess::poll_end() {
  int status = 0;
  if (pid_ >= 0 && !end_ && waitpid(static_cast<pid_t>(pid_), &status, WNOHANG) == pid_)
    end_ = end_of(status);
  return end_;
}

ProcessEnd ChildProcess::wait_end() {
  int status = 0;
  while (pid_ >= 0 && !end_) {
    if (waitpid(static_cast<pid_t>(pid_), &status, 0) == pid_) {
      end_ = end_of(status);
    } else if (errno != EINTR) {
      end_ = ProcessEnd{};  // somebody else has asked before
    }
  }
  return end_.value_or(ProcessEnd{});
}

void ChildProcess::kill() {
  if (pid_ >= 0 && !end_) ::kill(static_cast<pid_t>(pid_), SIGKILL);
}

}  // namespace neuroshard::platform
