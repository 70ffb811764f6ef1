// Contributing: the one switch, snoozes, and finishing. Off and snoozed are reasons to pause; they add up.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/engine/detail/engine_core.h"
#include "core/engine/training_data.h"

namespace neuroshard::engine::detail {
namespace {

std::string state_path(const std::string& directory) {
  return directory + "/contribute.json";
}

// Training that a person starts by hand obeys the person's own decisions only.
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

void EngineCore::open_contributing() {
  draft_.safe_mode = options_.safe_mode;
  if (options_.remember_contributing) {
    config::Settings settings = directory_->settings();
    draft_.contributing = settings.word(config::Setting::Contribute) == "on";
    const auto allowed =
        settings.set(config::Setting::Contribute, settings.value(config::Setting::Contribute));
    if (!allowed.ok()) contribute_locked_ = allowed.error();
    rules_ = contribute_rules(settings);
    const auto bytes =
        storage::read_file(services_.files, state_path(directory_path_), max_contribute_state_bytes);
    if (bytes.ok()) {
      const auto state = parse_contribute_state({bytes->data(), bytes->size()}, services_.clock.wall_now());
      if (!state.ok()) services_.logger.warning("contribute", "contribute.json: " + state.error().message);
      kept_ = state.value_or({});
    }
    draft_.snoozed_until = kept_.snoozed_until;
    draft_.overridden_until = kept_.overridden_until;
  }
  static_cast<void>(judge());
}

Expected<node::CommandId> EngineCore::set_contributing(bool on) {
  if (contribute_locked_) return *contribute_locked_;
  return accept([this, on](node::CommandId id) {
    draft_.contributing = on;
    if (finish_after_ && on) {  // it has thought better of it
      finish_after_.reset();
      finishing_ = draft_.finishing = false;
      done_all(stops_, std::nullopt);
    } else if (finish_after_) {
      end_finishing();
    }
    if (on) {
      draft_.snoozed_until.reset();
      snooze_timer_.reset();
    }
    apply_pause();
    remember_contributing(id);
  });
}

Expected<node::CommandId> EngineCore::snooze(std::chrono::seconds duration) {
  if (duration < std::chrono::seconds(1) || duration > node::max_snooze) {
    return make_error(ErrorCode::InvalidArgument, fmt::format("a snooze lasts 1 to {} seconds, not {}",
                                                              node::max_snooze.count(), duration.count()));
  }
  return accept([this, duration](node::CommandId id) {
    draft_.snoozed_until = services_.clock.wall_now() + duration;
    // A little later, so that the wall clock agrees; if it does not, look_at_resources() ends the snooze.
    snooze_timer_ =
        core_->post_after(duration + std::chrono::milliseconds(20), [this] { end_snooze_if_due(); });
    apply_pause();
    done(id);
  });
}

Expected<node::CommandId> EngineCore::finish() {
  if (contribute_locked_) return *contribute_locked_;
  return accept([this](node::CommandId id) {
    const bool round = completes_round();
    draft_.contributing = false;
    if (!run_ && !session_open_) {
      apply_pause();
      return remember_contributing(id);
    }
    finishing_ = true;
    draft_.finishing = true;
    stops_.push_back(id);
    if (round) {
      finish_after_ = options_.rounds_view().round;
      static_cast<void>(judge());
      publish();
    } else {
      end_finishing();
    }
    if (options_.remember_contributing)
      setting_changes_.push_back({0, config::Setting::Contribute, {0, "off"}, false});
  });
}

// Not when it is asked for a second time: then the step is enough.
bool EngineCore::completes_round() const {
  if (!options_.rounds || !options_.rounds_view || finishing_ || stop_requested_) return false;
  if (!run_ || !run_->prepared || !may_train()) return false;
  const node::RoundsView rounds = options_.rounds_view();
  return rounds.taking_part && rounds.member && rounds.members > 1;
}

void EngineCore::end_finishing() {
  finish_after_.reset();
  stop_requested_ = true;  // the step that runs is completed
  if (!run_ || !run_->prepared) cancel_.cancel();
  static_cast<void>(judge());
  publish();
}

bool EngineCore::finish_if_round_is_over() {
  if (!finish_after_) return false;
  const node::RoundsView rounds = options_.rounds_view();
  const bool goes_on = rounds.round <= *finish_after_ && rounds.member && rounds.members > 1;
  if (goes_on && may_train()) return false;
  end_finishing();
  return true;
}

Expected<node::CommandId> EngineCore::override_rules(std::chrono::seconds duration) {
  if (duration < std::chrono::seconds(0) || duration > node::max_snooze) {
    return make_error(ErrorCode::InvalidArgument, fmt::format("rules are ignored for 0 to {} seconds, not {}",
                                                              node::max_snooze.count(), duration.count()));
  }
  return accept([this, duration](node::CommandId id) {
    draft_.overridden_until.reset();
    if (duration.count() > 0) {
      draft_.overridden_until =
          contribute::override_end(rules_, services_.clock.wall_now(), duration, options_.local_time);
    }
    apply_pause();
    done(id);
  });
}

Expected<void> EngineCore::report_session(const node::SessionSensors& sensors) {
  if (refusing_.load()) return make_error(ErrorCode::Cancelled, "the node is shutting down");
  if (core_->post([this, sensors] {
        readings_.session = {sensors, services_.clock.monotonic_now()};
        look_at_rules();
      })) {
    return {};
  }
  return make_error(ErrorCode::Busy, "the node has too much to do; the next report counts");
}

void EngineCore::look_at_rules() {
  if (shutting_down_) return;
  if (draft_.overridden_until && services_.clock.wall_now() >= *draft_.overridden_until)
    draft_.overridden_until.reset();
  read_sensors_if_due();
  if (!judge() && draft_.overridden_until == kept_.overridden_until) return;
  apply_pause();
  advance();
}

// One reading at a time: a sensor that hangs keeps only its own thread, and its values become unknown.
void EngineCore::read_sensors_if_due() {
  const MonotonicTime now = services_.clock.monotonic_now();
  if (!options_.sensors || !options_.remember_contributing || sensors_read_ ||
      (sensors_asked_ && now - *sensors_asked_ < options_.sensor_period)) {
    return;
  }
  sensors_asked_ = now;
  sensors_read_ = true;
  const bool asked = sensors_->post([this, programs = rules_.programs] {
    auto values = options_.sensors->read(programs);
    // A full core queue drops the reading: the next one is a few seconds away.
    const bool told = core_->post([this, values = std::move(values)] {
      sensors_read_ = false;
      readings_.machine = {values, services_.clock.monotonic_now()};
      look_at_rules();
    });
    if (!told) sensors_read_ = false;
  });
  if (!asked) sensors_read_ = false;
}

bool EngineCore::judge() {
  const contribute::Wishes wishes{draft_.contributing || finish_after_, draft_.snoozed_until,
                                  draft_.overridden_until, options_.safe_mode};
  const contribute::Moment now{services_.clock.wall_now(), services_.clock.monotonic_now()};
  contribute::Verdict verdict =
      contribute::evaluate(options_.remember_contributing ? rules_ : no_rules(), wishes, readings_, now,
                           options_.local_time, rule_states_);
  if (!options_.remember_contributing) verdict.sensors.clear();
  if (!(verdict.limits == limits_)) {
    limits_ = verdict.limits;
    if (draft_.compute.threads != 0) draft_.compute.threads = usable_threads(limits_.threads);
  }
  if (same(verdict.reasons, draft_.pause_reasons) && same(verdict.sensors, draft_.sensors)) return false;
  draft_.pause_reasons = std::move(verdict.reasons);
  draft_.sensors = std::move(verdict.sensors);
  return true;
}

void EngineCore::keep_contribute_state() {
  const ContributeState state{draft_.snoozed_until, draft_.overridden_until};
  if (!options_.remember_contributing || state == kept_) return;
  kept_ = state;
  // On a full disk the decision holds until the core ends, and no longer.
  const bool posted = sensors_->post([this, text = format_contribute_state(state)] {
    const auto written =
        storage::write_file_atomic(services_.files, state_path(directory_path_), as_bytes(text));
    if (!written.ok()) services_.logger.warning("contribute", written.error().describe());
  });
  if (!posted) services_.logger.warning("contribute", "the end of a snooze was not written down");
}

void EngineCore::remember_contributing(node::CommandId command) {
  if (!options_.remember_contributing) return done(command);
  setting_changes_.push_back(
      {command, config::Setting::Contribute, {0, draft_.contributing ? "on" : "off"}, false});
}

void EngineCore::apply_pause() {
  static_cast<void>(judge());
  keep_contribute_state();
  if (!may_train()) {
    // A step that is thrown away is computed again later: obeyed at once, and nothing is lost.
    if (run_ && !stop_requested_) cancel_.cancel();
  } else if (run_ && draft_.state == node::RunState::Paused) {
    set_state(run_->prepared ? node::RunState::Training : node::RunState::Starting);
  }
  publish();
  take_up_finished();
}

void EngineCore::pause() {
  if (run_->prepared && (!saves_.empty() || unsaved_)) return save_job();
  // Whoever asked for this training is not left waiting for the end of the pause.
  if (run_->command != 0) done(std::exchange(run_->command, 0));
  draft_.training.activity.clear();
  draft_.training.activity_share = 0;
  set_state(node::RunState::Paused);
}

void EngineCore::end_snooze_if_due() {
  if (!draft_.snoozed_until || services_.clock.wall_now() < *draft_.snoozed_until) return;
  draft_.snoozed_until.reset();
  apply_pause();
  advance();
}

void EngineCore::begin_run(node::TrainingPlan plan, node::CommandId command) {
  finished_plan_.reset();
  stop_requested_ = false;
  clear("training_failed");
  draft_.training.data_source = plan.text_path;
  draft_.training.activity.clear();
  run_ = Run{std::move(plan), command};
  set_state(node::RunState::Starting);
}

void EngineCore::keep_finished_plan() {
  draft_.finishing = false;
  finish_after_.reset();
  if (!std::exchange(finishing_, false) || !run_) return;
  finished_plan_ = run_->plan;
  if (run_->prepared && run_->target_step != 0) {
    finished_plan_->steps = 0;
    finished_plan_->until_step = run_->target_step;
  }
}

void EngineCore::take_up_finished() {
  if (!may_train() || shutting_down_ || run_ || session_open_ || !finished_plan_) return;
  begin_run(*std::exchange(finished_plan_, std::nullopt), 0);
}

}  // namespace neuroshard::engine::detail
