// The outer rounds in detail, as "neuroshardd status --rounds" prints them.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>
#include "core/config/network_profile.h"
#include "core/node/rounds_report.h"

namespace neuroshard::app {

nlohmann::ordered_json rounds_report_json(const node::RoundsReport& report);
std::vector<std::string> rounds_report_lines(const node::RoundsReport& report);

// Bytes of a round for a person who may join the network; null and empty: it has no rounds.
nlohmann::ordered_json round_traffic_json(const config::ConsensusPart& consensus);
std::string round_traffic_text(const config::ConsensusPart& consensus);

}  // namespace neuroshard::app
