// The person's own TURN server, as the settings say.
#pragma once

#include <optional>
#include <string>

#include "core/config/data_directory.h"
#include "core/nat/turn_hold.h"
#include "core/storage/file_env.h"

namespace neuroshard::app {

struct TurnSettings {
  std::string server;                       // empty: none
  std::optional<nat::TurnAccount> account;  // nothing, although there is a server: `trouble` says why
  std::string trouble;                      // in words, without the password
};
// Reads the file of the password.
TurnSettings read_turn_settings(const config::DataDirectory& directory, storage::FileEnv& files);

}  // namespace neuroshard::app
