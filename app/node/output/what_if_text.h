// The answer to "what if" about the network that a node is in: JSON for programs, lines for people.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/node/what_if.h"

namespace neuroshard::app {

nlohmann::ordered_json what_if_json(const node::WhatIfQuery& query, const node::WhatIf& answer);
std::vector<std::string> what_if_lines(const node::WhatIfQuery& query, const node::WhatIf& answer);

}  // namespace neuroshard::app
