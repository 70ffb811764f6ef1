// The file of the running program: an upgrade replaces it while the process goes on with the old one. POSIX.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/expected.h"

namespace neuroshard::platform {

// The arguments of this process, its name first. Empty: the system does not report them.
std::vector<std::string> own_arguments();

// Threads: one at a time.
class ProgramFile {
 public:
  // Of this process.  Errors: Unavailable.
  static Expected<ProgramFile> of_this_process();
  // Any file, as it is now.
  explicit ProgramFile(std::string path);

  const std::string& path() const { return path_; }
  // Looks. True when another program has its place: the same one at this look and the one before, as somebody
  // may still write it, and one that starts (`--version` succeeds): its libraries may not be there yet. A
  // removed program is not replaced.
  bool replaced();
  // Goes on as the program that is there now, with the environment and id of this process. `arguments` begin
  // with a name of the program. All other threads end, all files but the standard ones are closed. Returns only
  // when it failed.
  Error run_again(std::vector<std::string> arguments) const;

 private:
  struct Identity {
    std::uint64_t device = 0, file = 0;
    std::int64_t size = -1, time_ns = 0;  // size −1: there is no file
    bool operator==(const Identity& other) const {
      return device == other.device && file == other.file && size == other.size && time_ns == other.time_ns;
    }
  };
  static Identity identity_of(const std::string& path);

  std::string path_;
  Identity started_, seen_;
};

}  // namespace neuroshard::platform
