// The result of each rule for the values of one moment, before settling and overriding.
#pragma once

#include "core/contribute/rules.h"

namespace neuroshard::contribute::detail {

// The readings that are still good.
struct Known {
  MachineReadings machine;
  node::SessionSensors session;
  bool session_reported = false;  // ever; then a missing value is a report that ran out
};

struct Judged {
  Rule rule{};
  bool enabled = false;
  bool applies = false;  // now, by its numbers
  bool can_override = true;
  std::string key;              // of the reason
  std::string reason;           // for people, with what would end it
  std::string reason_settling;  // applied until a moment ago
  node::SensorView sensor;      // without a key: nothing to show
};

// All rules, in the order in which reasons are shown. `states` tell on which side of its band a rule stands.
std::vector<Judged> judge(const Rules& rules, const Known& known, const RuleStates& states);

}  // namespace neuroshard::contribute::detail
