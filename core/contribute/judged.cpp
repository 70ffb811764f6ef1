// The single rules: what each says about the values of one moment.
#include <fmt/format.h>

#include <utility>

#include "core/contribute/detail/judged.h"

namespace neuroshard::contribute::detail {
namespace {

constexpr const char* off = "the rule is off";
constexpr const char* pauses = "pauses";
constexpr const char* allows = "allows";

bool stands(const RuleStates& states, Rule rule) {
  return states[static_cast<std::size_t>(rule)].active;
}

const char* note(const Judged& judged) {
  return !judged.enabled ? off : judged.applies ? pauses : allows;
}

std::string span_text(std::chrono::seconds span) {
  const auto seconds = span.count();
  if (seconds < 120) return fmt::format("{} s", seconds);
  if (seconds < 2 * 3600) return fmt::format("{} min", seconds / 60);
  return fmt::format("{} h", seconds / 3600);
}

std::string session_unknown(const Known& known, const char* meaning) {
  return fmt::format("unknown: {}; {}",
                     known.session_reported ? "the desktop app has stopped reporting, or can't see it"
                                            : "only the desktop app can see it, and none has reported",
                     meaning);
}

std::string power_text(const MachineReadings::Power& power) {
  std::string text = power.on_battery ? "on battery" : "on mains power";
  if (power.charge_percent) text += fmt::format(", {} %", *power.charge_percent);
  return text;
}

// Unknown counts as mains power: a machine without this sensor rarely has a battery.
Judged battery(const Rules& rules, const Known& known, const RuleStates& states) {
  Judged judged;
  judged.rule = Rule::Battery;
  judged.key = "battery";
  judged.enabled = rules.battery != BatteryRule::Ignore;
  judged.reason_settling = "mains power has just come back";
  judged.sensor = {"battery", "", ""};
  const auto& power = known.machine.power;
  if (!power) {
    judged.sensor.note = judged.enabled ? "unknown: this system does not report it; allows" : off;
    return judged;
  }
  judged.sensor.value = power_text(*power);
  if (judged.enabled && power->on_battery) {
    if (rules.battery == BatteryRule::Always) {
      judged.applies = true;
      judged.reason = fmt::format("{}; resumes on mains power", power_text(*power));
    } else {
      // Without a known charge it may be the last per cent.
      const std::uint32_t enough = rules.battery_percent + (stands(states, Rule::Battery) ? charge_band : 0);
      judged.applies = !power->charge_percent || *power->charge_percent < enough;
      judged.reason =
          fmt::format("{}, below your {} %; resumes on mains power",
                      power->charge_percent ? power_text(*power) : "on battery, its charge unknown",
                      rules.battery_percent);
      judged.reason_settling = "the battery has just been charged enough";
    }
  }
  judged.sensor.note = note(judged);
  return judged;
}

Judged metered(const Rules& rules, const Known& known) {
  Judged judged;
  judged.rule = Rule::Metered;
  judged.key = "metered";
  judged.enabled = rules.metered;
  judged.reason = "the network connection is metered";
  judged.reason_settling = "the network connection was metered until a moment ago";
  judged.sensor = {"metered", "", ""};
  if (const auto& value = known.session.metered) {
    judged.applies = *value;
    judged.sensor.value = *value ? "metered connection" : "unmetered connection";
    judged.sensor.note = note(judged);
  } else {
    judged.sensor.note = judged.enabled ? session_unknown(known, "allows") : off;
  }
  return judged;
}

// Unknown counts as in use: the user asked for no training while working.
Judged idle(const Rules& rules, const Known& known) {
  Judged judged;
  judged.rule = Rule::Idle;
  judged.key = "idle";
  judged.enabled = rules.only_idle;
  judged.sensor = {"idle", "", ""};
  const std::string wanted = span_text(rules.idle_after);
  judged.reason_settling = "this computer was in use until a moment ago";
  if (const auto& value = known.session.input_idle) {
    judged.applies = *value < rules.idle_after;
    judged.reason =
        fmt::format("this computer is in use; resumes after {} without keyboard and mouse", wanted);
    judged.sensor.value = fmt::format("{} without input", span_text(*value));
    judged.sensor.note = note(judged);
  } else {
    judged.applies = true;
    judged.reason =
        "it is unknown whether this computer is in use, so it counts as in use; the desktop app can report "
        "it";
    judged.sensor.note = judged.enabled ? session_unknown(known, "pauses, as if in use") : off;
  }
  return judged;
}

Judged program(const Rules& rules, const Known& known) {
  Judged judged;
  judged.rule = Rule::Program;
  judged.key = "program";
  judged.enabled = !rules.programs.empty();
  judged.reason_settling = "a program of your list has just ended";
  judged.sensor = {"program", "", ""};
  const auto& running = known.machine.running;
  if (!judged.enabled) {
    judged.sensor.note = "no programs are listed";
  } else if (!running) {
    judged.sensor.note = "unknown: this system does not show which programs run; allows";
  } else {
    judged.applies = !running->empty();
    std::string names;
    for (const std::string& name : *running) names += (names.empty() ? "" : ", ") + name;
    judged.reason = fmt::format("{} run{}, which your list names", names, running->size() == 1 ? "s" : "");
    judged.sensor.value = judged.applies ? names : "none of your list";
    judged.sensor.note = note(judged);
  }
  return judged;
}

Judged full_screen(const Rules& rules, const Known& known) {
  Judged judged;
  judged.rule = Rule::FullScreen;
  judged.key = "full_screen";
  judged.enabled = rules.full_screen;
  judged.reason_settling = "a program was in full screen until a moment ago";
  judged.sensor = {"full_screen", "", ""};
  if (const auto& value = known.session.full_screen) {
    judged.applies = *value;
    const std::string& name = known.session.full_screen_program;
    judged.reason = fmt::format("{} is in full screen", name.empty() ? "a program" : name);
    judged.sensor.value = *value ? judged.reason : "no program in full screen";
    judged.sensor.note = note(judged);
  } else {
    judged.sensor.note = judged.enabled ? session_unknown(known, "allows") : off;
  }
  return judged;
}

Judged hot(const Rules& rules, const Known& known, const RuleStates& states) {
  Judged judged;
  judged.rule = Rule::Hot;
  judged.key = "hot";
  judged.enabled = rules.hottest_celsius != 0;
  judged.reason_settling = "the processor has just cooled down";
  judged.sensor = {"temperature", "", ""};
  const auto& celsius = known.machine.celsius;
  if (!celsius) {
    judged.sensor.note =
        judged.enabled ? "unknown: this system shows no sensor of the processor; allows" : off;
    return judged;
  }
  const double limit = rules.hottest_celsius;
  const double cool = limit - temperature_band;
  judged.applies = stands(states, Rule::Hot) ? *celsius >= cool : *celsius >= limit;
  judged.reason =
      fmt::format("the processor is hot: {:.0f} °C, your limit is {:.0f} °C; resumes below {:.0f} °C",
                  *celsius, limit, cool);
  judged.sensor.value = fmt::format("{:.0f} °C ({})", *celsius, known.machine.thermometer);
  judged.sensor.note = note(judged);
  return judged;
}

Judged disk(const Rules& rules, const Known& known, const RuleStates& states) {
  Judged judged;
  judged.rule = Rule::Disk;
  judged.key = "disk";
  judged.enabled = rules.least_free_bytes != 0;
  judged.can_override = false;
  judged.reason_settling = "the disk has just got enough free space";
  const auto& free = known.machine.free_bytes;
  if (!free) return judged;  // the write itself says what is wrong
  const std::uint64_t enough = rules.least_free_bytes * free_space_factor;
  judged.applies = *free < (stands(states, Rule::Disk) ? enough : rules.least_free_bytes);
  judged.reason = fmt::format("only {} MiB are free on the disk of the data; resumes with {} MiB",
                              *free >> 20, enough >> 20);
  return judged;
}

}  // namespace

std::vector<Judged> judge(const Rules& rules, const Known& known, const RuleStates& states) {
  std::vector<Judged> all;
  all.push_back(battery(rules, known, states));
  all.push_back(metered(rules, known));
  all.push_back(idle(rules, known));
  all.push_back(program(rules, known));
  all.push_back(full_screen(rules, known));
  all.push_back(hot(rules, known, states));
  all.push_back(disk(rules, known, states));
  return all;
}

}  // namespace neuroshard::contribute::detail
