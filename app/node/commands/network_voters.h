// Founders and voters of a network that "network create" makes.
#pragma once

#include <string>
#include <vector>

#include "app/node/command.h"
#include "core/config/network_profile.h"

namespace neuroshard::app {

// The wallets that --founder names, ascending: public keys of 64 hex characters, or "mine" for the wallet of the
// data directory. Errors: InvalidArgument; NotFound (there is no wallet, and how to make one).
Expected<std::vector<std::string>> parse_founders(const std::vector<std::string>& names,
                                                  CommandContext& context);
// Tells the creator who votes, and what that means.
void explain_voters(const config::ConsensusPart& consensus, CommandContext& context);

}  // namespace neuroshard::app
