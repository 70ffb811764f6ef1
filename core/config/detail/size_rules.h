// The rules of the sizes that a profile names (docs/protocol/networks.md#sizes).
#pragma once

#include "core/config/network_profile.h"

namespace neuroshard::config::detail {

// All else of the profile is valid. InvalidArgument names the field, the size and what is allowed.
Expected<void> check_sizes(const ConsensusPart& consensus);

}  // namespace neuroshard::config::detail
