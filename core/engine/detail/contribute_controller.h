// Decides whether this machine contributes now, from the switch, snoozes, the contribute rules with the
// sensors' values, and "run anyway". Reasons to pause are independent; training runs while there is none.
//
// Threads: set_contributing(), snooze(), override_rules() and report_session() from any thread; the rest on
// the core executor. The sensor thread reads the sensors, and the reading thread writes contribute.json. The
// thread that destroys the engine calls stop().
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/contribute/rules.h"
#include "core/engine/contribute_state.h"
#include "core/engine/detail/command_queue.h"
#include "core/engine/detail/disk_reader.h"
#include "core/engine/detail/engine_context.h"
#include "core/engine/detail/settings_commands.h"

namespace neuroshard::engine::detail {

// The training's side: gets these changes. Core executor.
class ContributeListener {
 public:
  virtual ~ContributeListener() = default;
  virtual void switched(bool contributing) = 0;  // by a person, before the rules are applied
  virtual void pause_changed() = 0;              // may_train() may have another value now
};

class ContributeController {
 public:
  ContributeController(const EngineContext& context, DiskReader& reader, SettingsCommands& settings);

  // Reads the settings and contribute.json. Once, before the core executor runs anything.
  void open();
  void set_listener(ContributeListener& listener) { listener_ = &listener; }

  Expected<node::CommandId> set_contributing(bool on);
  Expected<node::CommandId> snooze(std::chrono::seconds duration);
  Expected<node::CommandId> override_rules(std::chrono::seconds duration);
  Expected<void> report_session(const node::SessionSensors& sensors);
  // The error for a switch that a flag or the environment has fixed.
  const std::optional<Error>& locked() const { return locked_; }

  bool may_train() const;
  const contribute::Limits& limits() const { return limits_; }

  // Evaluates the rules again and notifies the listener.
  void apply();
  // Evaluates the rules again and writes the result into the draft only; true when a shown value has changed.
  bool judge();
  // Checks the rules, the sensors and the end of a snooze; call it every few seconds.
  void look();
  void end_snooze_if_due();

  // While finish() completes this round, the node contributes although its switch is off.
  const std::optional<std::uint64_t>& last_round() const { return last_round_; }
  void set_last_round(std::optional<std::uint64_t> round) { last_round_ = round; }

  // Saves the switch in the settings, where it persists; then the command is done.
  void remember(node::CommandId command);
  // As part of another command.
  void remember_off();

  // Drops the timer of the snooze: the engine ends.
  void end() { snooze_timer_.reset(); }
  // Joins the sensor thread; leaves it alone if a sensor hangs.
  void stop();

 private:
  struct SensorGate;

  contribute::Moment moment() const;
  void follow_clock();
  void look_at_rules();
  void read_sensors_if_due();
  void on_sensors(const contribute::MachineReadings& values);
  void keep_state();

  const EngineContext& context_;
  node::Snapshot& draft_;
  DiskReader& reader_;
  SettingsCommands& settings_;
  ContributeListener* listener_ = nullptr;

  std::optional<Error> locked_;  // fixed once open
  contribute::Rules rules_;
  contribute::Readings readings_;
  contribute::RuleStates rule_states_;
  contribute::Limits limits_;
  ContributeState kept_;  // as on the disk
  // The ends of the snooze and of "run anyway" by a clock that nobody sets.
  MonotonicTime snooze_ends_{}, override_ends_{};
  std::optional<std::uint64_t> last_round_;
  std::optional<MonotonicTime> sensors_asked_;
  const std::shared_ptr<SensorGate> gate_;
  std::unique_ptr<TimerHandle> snooze_timer_;
  std::unique_ptr<Executor> thread_;
};

}  // namespace neuroshard::engine::detail
