#include "core/contribute/rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/contribute/detail/judged.h"

namespace neuroshard::contribute {
namespace {

using detail::Judged;

// Begins at once; ends when the condition has been over for settle_time.
void follow(RuleState& state, bool condition, MonotonicTime now) {
  if (condition) {
    state = {true, std::nullopt};
  } else if (state.active) {
    if (!state.over_since) state.over_since = now;
    if (now - *state.over_since >= settle_time) state = {};
  }
}

// The readings that are still valid.
detail::Known known(const Readings& readings, MonotonicTime now) {
  detail::Known result;
  if (readings.machine && now - readings.machine->at <= machine_lease)
    result.machine = readings.machine->values;
  result.session_reported = readings.session.has_value();
  if (readings.session && now - readings.session->at <= node::sensor_lease)
    result.session = readings.session->values;
  return result;
}

void add_own_reasons(const Wishes& wishes, const Moment& now, const LocalTimeFunction& local_time,
                     std::vector<node::PauseReason>& reasons) {
  if (wishes.safe_mode) {
    reasons.push_back({"safe_mode", "safe mode: training is off until the core is started without --safe",
                       std::nullopt, false});
  }
  if (!wishes.contributing) {
    reasons.push_back({"user", "you switched contributing off", std::nullopt, false});
  }
  if (wishes.snoozed_until) {
    reasons.push_back({"snooze", "snoozed until " + clock_text(*wishes.snoozed_until, now.wall, local_time),
                       wishes.snoozed_until, false});
  }
}

struct ScheduleNow {
  bool allows = true;
  std::optional<WallTime> until;
};

ScheduleNow look_at_schedule(const WeekHours& schedule, WallTime now, const LocalTimeFunction& local_time) {
  if (schedule.is_always()) return {};
  const LocalTime local = local_time(now);
  return {schedule.at(local.weekday, local.hour), next_change(schedule, now, local_time)};
}

std::string schedule_reason(const ScheduleNow& schedule, WallTime now, const LocalTimeFunction& local_time) {
  if (!schedule.until) return "the schedule allows no hour of the week";
  return "outside the hours of your schedule until " + clock_text(*schedule.until, now, local_time);
}

node::SensorView schedule_view(const ScheduleNow& schedule, bool overridden, WallTime now,
                               const LocalTimeFunction& local_time) {
  const std::string end = schedule.until ? " until " + clock_text(*schedule.until, now, local_time) : "";
  return {"schedule", (schedule.allows ? "inside your hours" : "outside your hours") + end,
          schedule.allows ? "allows"
          : overridden    ? "ignored now: run anyway"
                          : "pauses"};
}

}  // namespace

Verdict evaluate(const Rules& rules, const Wishes& wishes, const Readings& readings, const Moment& now,
                 const LocalTimeFunction& local_time, RuleStates& states) {
  const bool overridden = wishes.overridden_until && now.wall < *wishes.overridden_until;
  Verdict verdict;
  add_own_reasons(wishes, now, local_time, verdict.reasons);
  const ScheduleNow schedule = look_at_schedule(rules.schedule, now.wall, local_time);
  if (!schedule.allows && !overridden) {
    verdict.reasons.push_back(
        {"schedule", schedule_reason(schedule, now.wall, local_time), schedule.until, true});
  }
  const detail::Known values = known(readings, now.monotonic);
  for (const Judged& judged : detail::judge(rules, values, states)) {
    RuleState& state = states[static_cast<std::size_t>(judged.rule)];
    if (!judged.enabled) {
      state = {};
    } else {
      follow(state, judged.applies, now.monotonic);
    }
    const bool ignored = state.active && overridden && judged.can_override;
    if (state.active && !ignored) {
      verdict.reasons.push_back({judged.key, judged.applies ? judged.reason : judged.reason_settling,
                                 std::nullopt, judged.can_override});
    }
    if (judged.sensor.key.empty()) continue;
    node::SensorView view = judged.sensor;
    if (ignored) {
      view.note = "ignored now: run anyway";
    } else if (state.active && !judged.applies) {
      view.note = "pauses for a few more seconds";
    }
    verdict.sensors.push_back(std::move(view));
  }
  if (!rules.schedule.is_always())
    verdict.sensors.push_back(schedule_view(schedule, overridden, now.wall, local_time));
  const auto& idle = values.session.input_idle;
  verdict.limits.idle = rules.idle_threads != 0 && idle && *idle >= rules.idle_after;
  verdict.limits.threads = verdict.limits.idle ? rules.idle_threads : rules.threads;
  return verdict;
}

std::optional<WallTime> next_change(const WeekHours& schedule, WallTime from,
                                    const LocalTimeFunction& local_time) {
  if (schedule.is_always() || schedule.is_never()) return std::nullopt;
  constexpr auto quarter = std::chrono::minutes(15);
  const auto allowed = [&](WallTime at) {
    const LocalTime local = local_time(at);
    return schedule.at(local.weekday, local.hour);
  };
  const bool now = allowed(from);
  WallTime at(from.time_since_epoch() - from.time_since_epoch() % quarter);
  for (int i = 0; i < (WeekHours::days + 1) * WeekHours::hours * 4; ++i) {
    at += quarter;
    if (allowed(at) != now) return at;
  }
  return std::nullopt;
}

WallTime override_end(const Rules& rules, WallTime now, std::chrono::seconds duration,
                      const LocalTimeFunction& local_time) {
  const WallTime wished = now + duration;
  return std::min(wished, next_change(rules.schedule, now, local_time).value_or(wished));
}

std::string clock_text(WallTime at, WallTime now, const LocalTimeFunction& local_time) {
  constexpr std::array<const char*, WeekHours::days> names = {"Mon", "Tue", "Wed", "Thu",
                                                              "Fri", "Sat", "Sun"};
  const LocalTime then = local_time(at), today = local_time(now);
  const std::string clock = fmt::format("{:02}:{:02}", then.hour, then.minute);
  if (then.year == today.year && then.day_of_year == today.day_of_year) return clock;
  return fmt::format("{} {}", names[static_cast<std::size_t>(then.weekday)], clock);
}

Expected<std::vector<std::string>> parse_programs(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    std::string_view name = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
    while (!name.empty() && name.back() == ' ') name.remove_suffix(1);
    if (name.empty()) continue;
    // Characters that settings.toml can hold and that a file name can have.
    const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
      return c >= 0x20 && c < 0x7f && c != '/' && c != '\\' && c != '"';
    });
    if (!plain || name.size() > max_program_name) {
      return make_error(ErrorCode::InvalidArgument,
                        fmt::format("'{}' is not the name of a program; write its file name without folders, "
                                    "at most {} bytes: \"blender, doom\"",
                                    plain ? name.substr(0, 40) : std::string_view("…"), max_program_name));
    }
    if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
  }
  if (names.size() > max_programs) {
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("{} programs are listed; at most {} fit", names.size(), max_programs));
  }
  return names;
}

}  // namespace neuroshard::contribute
