// The outer rounds in detail, as "neuroshardd status --rounds" prints them.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>
#include "core/node/rounds_report.h"

namespace neuroshard::app {

nlohmann::ordered_json rounds_report_json(const node::RoundsReport& report);
std::vector<std::string> rounds_report_lines(const node::RoundsReport& report);

}  // namespace neuroshard::app
