#include "core/platform/process/account.h"

#include <pwd.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <string_view>

#include "core/platform/file/paths.h"
#include "core/platform/sensor/detail/small_file.h"

namespace neuroshard::platform {
namespace {

// PRETTY_NAME="…" of os-release (5).
std::string distribution() {
  const std::string text = "\n" + detail::read_small_file("/etc/os-release");
  constexpr std::string_view key = "\nPRETTY_NAME=";
  const std::size_t at = text.find(key);
  if (at == std::string::npos) return {};
  const std::size_t begin = at + key.size();
  std::string name = text.substr(begin, text.find('\n', begin) - begin);
  if (name.size() >= 2 && name.front() == '"' && name.back() == '"') name = name.substr(1, name.size() - 2);
  return name;
}

}  // namespace

Account current_account() {
  Account account;
  // HOME wins over the list of users, as in shells.
  account.home = process_environment()("HOME");
  std::array<char, 16'384> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(geteuid(), &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) {
    account.user = entry.pw_name;
    if (account.home.empty()) account.home = entry.pw_dir;
  }
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) == 0) account.host = host.data();
  return account;
}

std::string system_name() {
  std::string name = distribution();
  utsname kernel{};
  if (uname(&kernel) == 0) {
    if (!name.empty()) name += "; ";
    // Not the node name: that is the computer's.
    name += std::string(kernel.sysname) + " " + kernel.release + " " + kernel.machine;
  }
  return name;
}

}  // namespace neuroshard::platform
