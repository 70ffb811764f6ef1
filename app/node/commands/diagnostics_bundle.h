// The data that a problem report needs, without secrets: version, machine, settings, the state of the core,
// the last log lines, the last crashes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "app/node/command.h"

namespace neuroshard::app {

struct DiagnosticsFile {
  std::string name;  // in the archive
  std::string what;  // one line for people
  std::string text;  // redacted
};
struct DiagnosticsBundle {
  std::vector<DiagnosticsFile> files;
  std::map<std::string, std::uint64_t> redacted;  // kind → how often
};

inline constexpr std::uint64_t diagnostics_log_bytes = 256u << 10;  // the end of each log file
inline constexpr std::size_t diagnostics_log_files = 6;

// Never fails as a whole: an entry that can't be read carries the error. Asks a running core; takes no lock
// of the data directory and changes nothing.
DiagnosticsBundle gather_diagnostics(CommandContext& context);

}  // namespace neuroshard::app
