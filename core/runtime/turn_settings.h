// The user's own TURN server, as the settings name it.  Threads: any. Errors: in TurnSettings::trouble.
#pragma once

#include <optional>
#include <string>

#include "core/config/data_directory.h"
#include "core/nat/turn_hold.h"
#include "core/storage/file_env.h"

namespace neuroshard::runtime {

struct TurnSettings {
  std::string server;                       // empty: none
  std::optional<nat::TurnAccount> account;  // nothing with a server: `trouble` says why
  std::string trouble;                      // for people; never the password
};
// Reads the file with the password.
TurnSettings read_turn_settings(const config::DataDirectory& directory, storage::FileEnv& files);

}  // namespace neuroshard::runtime
