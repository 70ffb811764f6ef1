// control.json, an invitation and the record of invitations: any bytes are refused or read, and what was read
// is written and read back the same.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "core/control/control_file.h"
#include "core/control/remote_access.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace neuroshard::control;  // NOLINT
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto file = parse_control_file(text); file.ok()) {
    const std::string written = format_control_file(*file);
    const auto again = parse_control_file(written);
    if (!again.ok() || format_control_file(*again) != written) std::abort();
  }
  if (const auto access = parse_remote_access(text); access.ok()) {
    const std::string written = format_remote_access(*access);
    const auto again = parse_remote_access(written);
    if (!again.ok() || format_remote_access(*again) != written) std::abort();
  }
  return 0;
}
