// contribute.json: the ends of a snooze and of "run anyway", which the core keeps across a restart beside the
// settings. Also reads the contribute rules from the settings.
#pragma once

#include <optional>
#include <string>

#include "core/base/bytes.h"
#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/config/settings.h"
#include "core/contribute/rules.h"

namespace neuroshard::engine {

inline constexpr std::uint64_t max_contribute_state_bytes = 4096;

struct ContributeState {
  std::optional<WallTime> snoozed_until;
  std::optional<WallTime> overridden_until;
  friend bool operator==(const ContributeState&, const ContributeState&) = default;
};
std::string format_contribute_state(const ContributeState& state);
// Omits times that have passed, and times later than any command allows (the clock was wrong).
// Any bytes are safe.  Errors: Corrupt.
Expected<ContributeState> parse_contribute_state(ByteSpan json, WallTime now);

contribute::Rules contribute_rules(const config::Settings& settings);

}  // namespace neuroshard::engine
