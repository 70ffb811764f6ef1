// The lock of a data directory: one process at a time owns it. The operating system's lock counts, on
// D/lock, which ends with the process however it dies; the file stays and its text (pid and start time) is
// only for people.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/clock.h"
#include "core/base/expected.h"

namespace neuroshard::platform {

// Held while the object lives. Movable only. A child made by fork shares it; one made by exec does not
// (close-on-exec).
class DirectoryLock {
 public:
  // Waits at most for `patience`, by a clock that runs, while another process has it. `directory` must exist.
  // Busy: another process has it (the message names its pid and start time). NotFound, Denied, Io: the file
  // can't be opened. Unsupported: this file system has no locks.
  // name: of the file. Another one than "lock" is a lock of its own, for one file of a directory that somebody
  // owns.
  static Expected<DirectoryLock> acquire(const std::string& directory, const Clock& clock,
                                         Duration patience = {}, const std::string& name = "lock");

  DirectoryLock(DirectoryLock&& other) noexcept;
  DirectoryLock& operator=(DirectoryLock&& other) noexcept;
  ~DirectoryLock();

 private:
  explicit DirectoryLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

// The holder's entry in the file; pid 0 when that is not readable.
struct LockHolder {
  std::int64_t pid = 0;
  WallTime started{};
};
LockHolder read_lock_holder(const std::string& directory);
// Whether this process has the lock now. An entry stays when its process has ended.
bool holds_lock(std::int64_t pid, const std::string& directory);

}  // namespace neuroshard::platform
