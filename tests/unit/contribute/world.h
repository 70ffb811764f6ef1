// A world for the contribute rules: settings, sensors and clocks that a test moves by hand.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "core/contribute/rules.h"

namespace neuroshard::testing {

// UTC as local time, by arithmetic.
inline LocalTime utc_time(WallTime at) {
  const std::int64_t minutes = to_unix_ms(at) / 60'000;
  const std::int64_t day = minutes / (24 * 60);
  LocalTime local;
  local.year = 1970 + static_cast<int>(day / 366);  // only told apart, never shown
  local.day_of_year = static_cast<int>(day % 366);
  local.weekday = static_cast<int>((day + 3) % 7);  // 1970-01-01 was a Thursday
  local.hour = static_cast<int>(minutes / 60 % 24);
  local.minute = static_cast<int>(minutes % 60);
  return local;
}

struct World {
  contribute::Rules rules;
  contribute::Wishes wishes;
  contribute::MachineReadings machine;
  node::SessionSensors session;
  bool machine_read = true, session_reported = true;  // renewed with every look()
  LocalTimeFunction local_time = utc_time;
  WallTime wall{std::chrono::hours(24 * 20'000)};  // 2024-10-04, a Friday, 0:00 UTC
  MonotonicTime monotonic{};

  World() {
    // Nothing in the way.
    machine.power = contribute::MachineReadings::Power{};
    machine.celsius = 50;
    machine.thermometer = "coretemp";
    machine.running.emplace();
    machine.free_bytes = std::uint64_t{1} << 40;
    session.input_idle = std::chrono::hours(1);
    session.full_screen = false;
    session.metered = false;
  }

  void pass(Duration time) {
    monotonic += time;
    wall += std::chrono::duration_cast<std::chrono::milliseconds>(time);
  }
  contribute::Verdict look() {
    if (machine_read) readings.machine = {machine, monotonic};
    if (session_reported) readings.session = {session, monotonic};
    return contribute::evaluate(rules, wishes, readings, {wall, monotonic}, local_time, states);
  }
  // Keys of the reasons, in order: "battery metered".
  std::string keys() {
    std::string text;
    for (const node::PauseReason& reason : look().reasons) text += (text.empty() ? "" : " ") + reason.key;
    return text;
  }
  // After what was true a moment ago has settled.
  std::string settled() {
    static_cast<void>(look());
    pass(contribute::settle_time);
    return keys();
  }
  node::PauseReason reason(const std::string& key) {
    for (const node::PauseReason& reason : look().reasons) {
      if (reason.key == key) return reason;
    }
    return {};
  }
  node::SensorView sensor(const std::string& key) {
    for (const node::SensorView& view : look().sensors) {
      if (view.key == key) return view;
    }
    return {};
  }

  contribute::Readings readings;
  contribute::RuleStates states;
};

}  // namespace neuroshard::testing
