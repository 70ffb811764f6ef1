// control.json: the address of a running core, and the secrets that prove both sides to each other. It is in
// the user's runtime directory, mode 0600, named by a hash of the data directory's path. A program that can
// read it may control the core. The control service writes it at its start, again if somebody removes it (as systems
// do with old files in /tmp), and removes it at its end; the file of a killed core is recognised by its process.
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
  // PEM, of an invitation: what the client shows. Empty: the core is on this machine and asks for none.
  std::string client_certificate, client_key;
  std::string data_directory;
  // Of a core that also listens for invited programs (remote_access.h): where, and with which certificate, PEM.
  // Empty: it does not.
  std::string remote_address, remote_certificate;
};

// The path of the file for a data directory, which need not exist.
std::string control_file_path(const std::string& runtime_directory, const std::string& data_directory);

std::string format_control_file(const ControlFile& file);
// Strict, any bytes are safe.  Errors: Corrupt.
Expected<ControlFile> parse_control_file(const std::string& text);

// An invitation from another machine. The process in the file is not checked. Errors: NotFound; Denied if
// another user owns the file or others can read it; Corrupt. Unsupported: an older version made it.
Expected<ControlFile> read_control_file(const std::string& path);

// The core that owns `data_directory`, by its file.
// NotFound: no file. Unavailable: its process has ended (killed). Denied: another user owns the file, or
// others can read it. Corrupt: not a control file.
Expected<ControlFile> find_core(const std::string& runtime_directory, const std::string& data_directory);

}  // namespace neuroshard::control
