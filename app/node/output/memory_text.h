// The memory that the members of the network offer, and the models that it is enough for, for "status".
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>
#include "core/node/snapshot.h"

namespace neuroshard::app {

nlohmann::ordered_json memory_json(const node::NetworkMemoryView& memory);
// Empty: no member has said what it offers.
std::string memory_text(const node::RoundsView& rounds);

}  // namespace neuroshard::app
