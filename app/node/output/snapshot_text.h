// A snapshot as text: one JSON object for programs, a few lines for people.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/node/snapshot.h"

namespace neuroshard::app {

// Every active reason with its key.
nlohmann::ordered_json pause_reasons_json(const node::Snapshot& view);
// Unknown values are null.
nlohmann::ordered_json snapshot_json(const node::Snapshot& view);
// The state, why, and what the contribute rules see.
std::vector<std::string> contribute_lines(const node::Snapshot& view);
// "State      training", …; unknown values are "—".
std::vector<std::string> snapshot_lines(const node::Snapshot& view);
// "training, step 120 of 1000", "paused: snoozed until 21:31".
std::string state_text(const node::Snapshot& view);

}  // namespace neuroshard::app
