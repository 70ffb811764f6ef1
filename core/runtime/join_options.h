// The options of joining a network: those of a command line, beside the profile and the settings.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/crypto/secret.h"

namespace neuroshard::runtime {

// Reads the passphrase of the wallet from the place that the user has configured, without asking a person.
// Empty: the user has configured none.
using PassphraseSource = std::function<Expected<crypto::Secret>()>;

struct JoinOptions {
  std::vector<std::string> sources;  // trackers and nodes beside those of the profile, "[ID@]HOST:PORT"
  std::string address = "0.0.0.0";
  std::optional<std::uint16_t> port;
  bool lan = false;                         // private addresses count, many nodes share one address
  std::vector<std::string> mainline_nodes;  // of the BitTorrent DHT, in place of the well-known ones
  PassphraseSource passphrase;              // opens the wallet when it has to sign a new delegation
};

}  // namespace neuroshard::runtime
