// The contribute rules: when this machine trains, and with how many resources. Pure functions over sensor
// values, settings and time; the engine reads the sensors and applies the result.
//
// A rule that applies pauses training at once. It ends only after its condition has been over for
// `settle_time`, and numbers (charge, temperature, free space) have a band between start and end, so that
// training does not start and stop in quick turns. An unknown value is always visible: the sensor view of
// each rule says how the rule treats it.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/local_time.h"
#include "core/base/week_hours.h"
#include "core/node/node.h"
#include "core/node/snapshot.h"

namespace neuroshard::contribute {

inline constexpr Duration settle_time = std::chrono::seconds(10);
inline constexpr std::uint32_t charge_band = 5;        // per cent above the limit, before it is enough again
inline constexpr double temperature_band = 10;         // °C below the limit, before it is cool again
inline constexpr std::uint64_t free_space_factor = 2;  // times the least, before there is room again
// The machine's sensors are read every few seconds; an older reading means that one of them hangs.
inline constexpr Duration machine_lease = std::chrono::seconds(60);
inline constexpr std::size_t max_programs = 32;      // listed by the user
inline constexpr std::size_t max_program_name = 64;  // bytes

enum class BatteryRule : std::uint8_t { Ignore, WhenLow, Always };

// The user's rules. The defaults are those of the settings.
struct Rules {
  WeekHours schedule = WeekHours::always();
  BatteryRule battery = BatteryRule::Always;
  std::uint32_t battery_percent = 50;  // of WhenLow
  bool metered = true;
  bool full_screen = true;
  bool only_idle = false;
  std::chrono::seconds idle_after{180};  // without keyboard and mouse
  std::vector<std::string> programs;
  std::uint32_t hottest_celsius = 0;  // 0 = off
  std::uint64_t least_free_bytes = 0;
  std::uint32_t threads = 0;       // 0 = all usable
  std::uint32_t idle_threads = 0;  // while the computer is idle; 0 = the same
};

// Readings of the machine. Unset: unknown.
struct MachineReadings {
  struct Power {
    bool on_battery = false;
    std::optional<std::uint32_t> charge_percent;
  };
  std::optional<Power> power;
  std::optional<double> celsius;
  std::string thermometer;
  std::optional<std::vector<std::string>> running;  // those of Rules::programs
  std::optional<std::uint64_t> free_bytes;
};

template <class T>
struct Reading {
  T values;
  MonotonicTime at{};
};
struct Readings {
  std::optional<Reading<MachineReadings>> machine;
  std::optional<Reading<node::SessionSensors>> session;  // good for node::sensor_lease
};

// The user's own switches.
struct Wishes {
  bool contributing = true;
  std::optional<WallTime> snoozed_until;
  std::optional<WallTime> overridden_until;  // "run anyway"
  bool safe_mode = false;
};

struct Moment {
  WallTime wall{};
  MonotonicTime monotonic{};
};

// The state of a rule. The caller keeps it from one evaluation to the next; it starts empty.
enum class Rule : std::uint8_t { Battery, Metered, Idle, Program, FullScreen, Hot, Disk, Count };
struct RuleState {
  bool active = false;
  std::optional<MonotonicTime> over_since;  // active still, but its condition is over
};
using RuleStates = std::array<RuleState, static_cast<std::size_t>(Rule::Count)>;

struct Limits {
  std::uint32_t threads = 0;  // 0 = all usable
  bool idle = false;          // the threads for an idle computer
  friend bool operator==(const Limits&, const Limits&) = default;
};

struct Verdict {
  std::vector<node::PauseReason> reasons;  // every active one; empty = train
  std::vector<node::SensorView> sensors;
  Limits limits;
};

// Deterministic; allocates little. `states` are updated.
Verdict evaluate(const Rules& rules, const Wishes& wishes, const Readings& readings, const Moment& now,
                 const LocalTimeFunction& local_time, RuleStates& states);

// The next change of the schedule; none: it never changes. Right across changes to and
// from daylight saving time, in zones whose offset is a multiple of 15 minutes (all of today's).
std::optional<WallTime> next_change(const WeekHours& schedule, WallTime from,
                                    const LocalTimeFunction& local_time);
// "Run anyway" for so long ends at the schedule's next change at the latest, so that a click never overrides
// the schedule for longer.
WallTime override_end(const Rules& rules, WallTime now, std::chrono::seconds duration,
                      const LocalTimeFunction& local_time);

// "21:31"; "Mon 21:31" when that is not today.
std::string clock_text(WallTime at, WallTime now, const LocalTimeFunction& local_time);

// "blender, Doom.exe" as the names in it. InvalidArgument: too many, too long, or not a name.
Expected<std::vector<std::string>> parse_programs(std::string_view text);

}  // namespace neuroshard::contribute
