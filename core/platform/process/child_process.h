// Another process, of this same program or another, as a helper of this one. POSIX.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/expected.h"

namespace neuroshard::platform {

struct ProcessEnd {
  int exit_code = 0;
  int signal = 0;  // that ended it; 0: it returned exit_code
  bool ok() const { return signal == 0 && exit_code == 0; }
  // "was killed by signal 9", "ended with exit code 70".
  std::string describe() const;
};

// Descriptor of the first connection that a child is started with; the others follow.
inline constexpr int first_inherited_descriptor = 3;

// A running child. Destroying it kills it and waits for its end: none is left behind.  Threads: one at a
// time.
class ChildProcess {
 public:
  // The running program with other arguments. Standard input is empty, output and errors are this process's.
  // `descriptors` appear in it as first_inherited_descriptor, …; nothing else is inherited that is
  // close-on-exec.  Errors: Exhausted, Io.
  static Expected<ChildProcess> start_self(const std::vector<std::string>& arguments,
                                           const std::vector<int>& descriptors);
  // Another program, whose output is dropped.
  static Expected<ChildProcess> start_program(const std::string& path,
                                              const std::vector<std::string>& arguments);
  ChildProcess() = default;
  ChildProcess(ChildProcess&& other) noexcept : pid_(other.pid_), end_(other.end_) { other.pid_ = -1; }
  ChildProcess& operator=(ChildProcess&& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(end_, other.end_);
    return *this;
  }
  ~ChildProcess();

  std::int64_t pid() const { return pid_; }
  // How it ended, or nothing while it runs.
  std::optional<ProcessEnd> poll_end();
  ProcessEnd wait_end();
  void kill();

 private:
  static Expected<ChildProcess> start(const char* program, const std::vector<std::string>& arguments,
                                      const std::vector<int>& descriptors, bool silent);

  std::int64_t pid_ = -1;
  std::optional<ProcessEnd> end_;
};

}  // namespace neuroshard::platform
