// control.json: where a running core can be reached, and what proves both sides to each other. It lies in the
// user's runtime directory, mode 0600, named by a hash of the data directory's path; whoever can read it may
// steer the core. Written when the control service starts, removed when it stops; what a killed core leaves
// behind is recognised by its process.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/platform/process/process_identity.h"

namespace neuroshard::control {

inline constexpr std::size_t max_control_file_bytes = 16u << 10;  // a certificate has less than 1 KiB

struct ControlFile {
  platform::ProcessIdentity process;
  WallTime started{};
  std::string address;      // "127.0.0.1:43210"
  std::string certificate;  // PEM; the client trusts this one and no other
  std::string cookie;       // 64 hex characters; every call carries it
  std::string data_directory;
};

// The path of the file for a data directory, which need not exist.
std::string control_file_path(const std::string& runtime_directory, const std::string& data_directory);

std::string format_control_file(const ControlFile& file);
// Strict, any bytes are safe.  Errors: Corrupt.
Expected<ControlFile> parse_control_file(const std::string& text);

// One that was carried here from another machine. The file's process is not looked for.
// NotFound, Denied (somebody else's, or open to others), Corrupt.
Expected<ControlFile> read_control_file(const std::string& path);

// The core that owns `data_directory`, by its file.
// NotFound: no file. Unavailable: its process has ended (killed). Denied: the file is somebody else's or open
// to others. Corrupt: not a control file.
Expected<ControlFile> find_core(const std::string& runtime_directory, const std::string& data_directory);

}  // namespace neuroshard::control
