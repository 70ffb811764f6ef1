// Account and host: names that identify a person or a computer, so that they can be left out of what is
// shared.
#pragma once

#include <string>

namespace neuroshard::platform {

struct Account {
  std::string home, user, host;  // empty where the system does not tell
};
Account current_account();

// "Debian GNU/Linux 12 (bookworm); Linux 6.1.0-18-amd64 x86_64".
std::string system_name();

}  // namespace neuroshard::platform
