#include "core/engine/detail/contribute_controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "core/engine/training_data.h"

namespace neuroshard::engine::detail {
namespace {

constexpr std::size_t queue = 2;  // one reading at a time
// For a reading when the engine ends. It usually takes milliseconds; a dead network drive can hold it up for
// ever.
constexpr Duration sensor_patience = std::chrono::seconds(1);
// Makes sure that the wall clock has reached the end of the snooze; if it has not, look() ends the snooze.
constexpr Duration snooze_margin = std::chrono::milliseconds(20);
// The wall clock has been set back if it says that more time is left than there is, by this much.
constexpr Duration clock_tolerance = std::chrono::seconds(1);

std::string state_path(const std::string& directory) {
  return directory + "/contribute.json";
}

// Training that a person starts by hand follows the person's own decisions only.
contribute::Rules no_rules() {
  contribute::Rules rules;
  rules.battery = contribute::BatteryRule::Ignore;
  rules.metered = rules.full_screen = false;
  return rules;
}

bool same(const node::PauseReason& a, const node::PauseReason& b) {
  return a.key == b.key && a.text == b.text && a.until == b.until && a.can_override == b.can_override;
}
bool same(const node::SensorView& a, const node::SensorView& b) {
  return a.key == b.key && a.value == b.value && a.note == b.note;
}
template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const T& x, const T& y) { return same(x, y); });
}

}  // namespace

// Between the controller and a reading of the sensors, which outlives the controller if a sensor hangs.
struct ContributeController::SensorGate {
  // False: one is under way.
  bool begin() {
    const std::lock_guard lock(mutex);
    return !std::exchange(reading, true);
  }
  void end() {
    const std::lock_guard lock(mutex);
    reading = false;
  }

  std::mutex mutex;
  std::condition_variable over;
  bool reading = false;
  bool closed = false;  // the controller may be gone
};

ContributeController::ContributeController(const EngineContext& context, DiskReader& reader,
                                           SettingsCommands& settings)
    : context_(context),
      draft_(context.publisher.draft()),
      reader_(reader),
      settings_(settings),
      gate_(std::make_shared<SensorGate>()),
      thread_(make_thread_executor("ns-sensors", queue)) {
  settings_.set_listener([this](const contribute::Rules& rules, bool applied) {
    rules_ = rules;
    if (applied) apply();
  });
}

void ContributeController::open() {
  draft_.safe_mode = context_.options.safe_mode;
  if (context_.options.remember_contributing) {
    config::Settings settings = context_.directory.settings();
    draft_.contributing = settings.word(config::Setting::Contribute) == "on";
    const auto allowed =
        settings.set(config::Setting::Contribute, settings.value(config::Setting::Contribute));
    if (!allowed.ok()) locked_ = allowed.error();
    rules_ = contribute_rules(settings);
    const auto bytes = storage::read_file(context_.services.files, state_path(context_.directory.path()),
                                          max_contribute_state_bytes);
    if (bytes.ok()) {
      const auto state =
          parse_contribute_state({bytes->data(), bytes->size()}, context_.services.clock.wall_now());
      if (!state.ok())
        context_.services.logger.warning("contribute", "contribute.json: " + state.error().message);
      kept_ = state.value_or({});
    }
    draft_.snoozed_until = kept_.snoozed_until;
    draft_.overridden_until = kept_.overridden_until;
    const contribute::Moment now = moment();
    if (kept_.snoozed_until) snooze_ends_ = now.monotonic + (*kept_.snoozed_until - now.wall);
    if (kept_.overridden_until) override_ends_ = now.monotonic + (*kept_.overridden_until - now.wall);
  }
  static_cast<void>(judge());
}

bool ContributeController::may_train() const {
  return draft_.pause_reasons.empty();
}

Expected<node::CommandId> ContributeController::set_contributing(bool on) {
  if (locked_) return *locked_;
  return context_.commands.accept([this, on](node::CommandId id) {
    draft_.contributing = on;
    listener_->switched(on);
    if (on) {
      draft_.snoozed_until.reset();
      snooze_timer_.reset();
    }
    apply();
    remember(id);
  });
}

Expected<node::CommandId> ContributeController::snooze(std::chrono::seconds duration) {
  if (duration < std::chrono::seconds(1) || duration > node::max_snooze) {
    return make_error(ErrorCode::InvalidArgument, fmt::format("a snooze lasts 1 to {} seconds, not {}",
                                                              node::max_snooze.count(), duration.count()));
  }
  return context_.commands.accept([this, duration](node::CommandId id) {
    const contribute::Moment now = moment();
    draft_.snoozed_until = now.wall + duration;
    snooze_ends_ = now.monotonic + duration;
    snooze_timer_ = context_.core.post_after(duration + snooze_margin, [this] { end_snooze_if_due(); });
    apply();
    context_.commands.done(id);
  });
}

Expected<node::CommandId> ContributeController::override_rules(std::chrono::seconds duration) {
  if (duration < std::chrono::seconds(0) || duration > node::max_snooze) {
    return make_error(ErrorCode::InvalidArgument, fmt::format("rules are ignored for 0 to {} seconds, not {}",
                                                              node::max_snooze.count(), duration.count()));
  }
  return context_.commands.accept([this, duration](node::CommandId id) {
    draft_.overridden_until.reset();
    if (duration.count() > 0) {
      const contribute::Moment now = moment();
      draft_.overridden_until =
          contribute::override_end(rules_, now.wall, duration, context_.options.local_time);
      override_ends_ = now.monotonic + (*draft_.overridden_until - now.wall);
    }
    apply();
    context_.commands.done(id);
  });
}

Expected<void> ContributeController::report_session(const node::SessionSensors& sensors) {
  NS_RETURN_IF_ERROR(context_.commands.check_open());
  if (context_.core.post([this, sensors] {
        readings_.session = {sensors, context_.services.clock.monotonic_now()};
        look_at_rules();
      })) {
    return {};
  }
  return make_error(ErrorCode::Busy, "the node is busy and will use the next report");
}

void ContributeController::look() {
  follow_clock();
  look_at_rules();
  end_snooze_if_due();  // the wall clock may have jumped, or the machine slept
}

contribute::Moment ContributeController::moment() const {
  return {context_.services.clock.wall_now(), context_.services.clock.monotonic_now()};
}

// A clock that was set back would make a snooze and "run anyway" longer than they were asked for.
void ContributeController::follow_clock() {
  const contribute::Moment now = moment();
  const auto left = [&now](MonotonicTime end) {
    return std::max(std::chrono::milliseconds(0),
                    std::chrono::duration_cast<std::chrono::milliseconds>(end - now.monotonic));
  };
  const auto too_late = [&](const std::optional<WallTime>& until, MonotonicTime end) {
    return until && *until - now.wall > left(end) + clock_tolerance;
  };
  if (too_late(draft_.snoozed_until, snooze_ends_)) draft_.snoozed_until = now.wall + left(snooze_ends_);
  if (too_late(draft_.overridden_until, override_ends_)) {
    // The schedule may change earlier by the new time.
    const auto rest = std::chrono::duration_cast<std::chrono::seconds>(left(override_ends_));
    draft_.overridden_until = contribute::override_end(rules_, now.wall, rest, context_.options.local_time);
  }
}

void ContributeController::look_at_rules() {
  if (context_.commands.shutting_down()) return;
  if (draft_.overridden_until && context_.services.clock.wall_now() >= *draft_.overridden_until)
    draft_.overridden_until.reset();
  read_sensors_if_due();
  if (!judge() && draft_.overridden_until == kept_.overridden_until) return;
  apply();
  context_.jobs.advance();
}

// One reading at a time: a sensor that hangs keeps only its own thread, and its values become unknown.
void ContributeController::read_sensors_if_due() {
  const MonotonicTime now = context_.services.clock.monotonic_now();
  if (!context_.options.sensors || !context_.options.remember_contributing ||
      (sensors_asked_ && now - *sensors_asked_ < context_.options.sensor_period) || !gate_->begin()) {
    return;
  }
  sensors_asked_ = now;
  const auto task = [this, gate = gate_, sensors = context_.options.sensors, programs = rules_.programs] {
    const contribute::MachineReadings values = sensors->read(programs);
    const std::lock_guard lock(gate->mutex);
    gate->reading = false;
    gate->over.notify_all();
    if (gate->closed) return;
    // A full core queue drops the reading: the next one is a few seconds away.
    static_cast<void>(context_.core.post([this, values] { on_sensors(values); }));
  };
  if (!thread_->post(task)) gate_->end();
}

void ContributeController::stop() {
  std::unique_lock lock(gate_->mutex);
  gate_->closed = true;
  const bool over = gate_->over.wait_for(lock, sensor_patience, [this] { return !gate_->reading; });
  lock.unlock();
  // A join could take for ever. The thread uses only objects of its own, and ends with the process.
  if (!over) static_cast<void>(thread_.release());
  thread_.reset();
}

void ContributeController::on_sensors(const contribute::MachineReadings& values) {
  readings_.machine = {values, context_.services.clock.monotonic_now()};
  look_at_rules();
}

bool ContributeController::judge() {
  const contribute::Wishes wishes{draft_.contributing || last_round_, draft_.snoozed_until,
                                  draft_.overridden_until, context_.options.safe_mode};
  const contribute::Moment now = moment();
  contribute::Verdict verdict =
      contribute::evaluate(context_.options.remember_contributing ? rules_ : no_rules(), wishes, readings_,
                           now, context_.options.local_time, rule_states_);
  if (!context_.options.remember_contributing) verdict.sensors.clear();
  if (!(verdict.limits == limits_)) {
    limits_ = verdict.limits;
    if (draft_.compute.threads != 0) draft_.compute.threads = usable_threads(limits_.threads);
  }
  if (same(verdict.reasons, draft_.pause_reasons) && same(verdict.sensors, draft_.sensors)) return false;
  draft_.pause_reasons = std::move(verdict.reasons);
  draft_.sensors = std::move(verdict.sensors);
  return true;
}

void ContributeController::keep_state() {
  const ContributeState state{draft_.snoozed_until, draft_.overridden_until};
  if (!context_.options.remember_contributing || state == kept_) return;
  kept_ = state;
  // On a full disk the decision holds only until the core ends.
  const auto asked = reader_.read([this, text = format_contribute_state(state)] {
    const auto written = storage::write_file_atomic(context_.services.files,
                                                    state_path(context_.directory.path()), as_bytes(text));
    if (!written.ok()) context_.services.logger.warning("contribute", written.error().describe());
  });
  if (!asked.ok()) context_.services.logger.warning("contribute", "the end of a snooze was not saved");
}

void ContributeController::remember(node::CommandId command) {
  if (!context_.options.remember_contributing) return context_.commands.done(command);
  settings_.enqueue({command, config::Setting::Contribute, {0, draft_.contributing ? "on" : "off"}, false});
}

void ContributeController::remember_off() {
  if (!context_.options.remember_contributing) return;
  settings_.enqueue({0, config::Setting::Contribute, {0, "off"}, false});
}

void ContributeController::apply() {
  static_cast<void>(judge());
  keep_state();
  listener_->pause_changed();
}

void ContributeController::end_snooze_if_due() {
  if (!draft_.snoozed_until || context_.services.clock.wall_now() < *draft_.snoozed_until) return;
  draft_.snoozed_until.reset();
  apply();
  context_.jobs.advance();
}

}  // namespace neuroshard::engine::detail
