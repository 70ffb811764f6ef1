// A note of the last crash: on a fatal signal the process writes a few lines into D/crash/ and dies as it
// would have. The next start shows them. No memory contents, no arguments, no paths of the user's: nothing
// secret can be in it, and nothing is sent anywhere.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/clock.h"
#include "core/base/expected.h"

namespace neuroshard::platform {

inline constexpr std::size_t kept_crash_records = 10;

// Catches SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT while it lives. At most one at a time in a process (a
// second install is Busy): signal handlers belong to the process. A stack overflow is recorded only on the
// thread that installed.
class CrashRecorder {
 public:
  // Creates `directory` (0700) if it is missing. `build` is one line that names the program and its version.
  static Expected<CrashRecorder> install(const std::string& directory, const std::string& build);
  CrashRecorder(CrashRecorder&& other) noexcept;
  CrashRecorder& operator=(CrashRecorder&&) = delete;
  ~CrashRecorder();  // puts the former handlers back

 private:
  CrashRecorder() = default;
  bool installed_ = false;
};

struct CrashRecord {
  std::string file;    // name in the directory
  std::string signal;  // "SIGSEGV"
  std::string build;
  WallTime time{};
  std::int64_t pid = 0;
  std::uint64_t address = 0;  // that was accessed; for SIGSEGV and SIGBUS
  std::uint64_t program_counter =
      0;  // less the program's load address where it is inside the program; 0: unknown
};

// The newest kept_crash_records, newest first. Older ones are deleted, first those that the user knows. A missing directory
// is an empty list. A file that is not a record is left alone and not listed. told: as told_crashes() gives.
std::vector<CrashRecord> read_crash_records(const std::string& directory, std::string_view told);
// The names of these records, one a line: for `told`, once the user knows them.
std::string told_crashes(const std::vector<CrashRecord>& records);
// Those that `told` does not name. One name without a line end, from older versions, stands for all up to it.
std::vector<CrashRecord> untold_crashes(const std::vector<CrashRecord>& records, std::string_view told);

}  // namespace neuroshard::platform
