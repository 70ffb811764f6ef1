// The sizes that the model of a network may grow to: --grow-to of "network create", and their lines of "network show".
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "app/node/command.h"
#include "core/config/network_profile.h"

namespace neuroshard::app {

// Each "LAYERSxWIDTH" or "LAYERSxWIDTH@MEMORY", or one "all". They replace the sizes of the profile, which grows then. The rest of the
// profile is complete.  InvalidArgument names the flag, or the profile's field, and what is allowed.
Expected<void> take_sizes(const std::vector<std::string>& flags, config::ConsensusPart& consensus);

// Nothing where the profile has none.
void show_sizes(const config::ConsensusPart& consensus, Output& out, nlohmann::ordered_json& document);

// "12.34 million".
std::string human_count(std::uint64_t count);

}  // namespace neuroshard::app
