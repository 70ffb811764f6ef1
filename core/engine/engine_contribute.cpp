// Contributing: the one switch, snoozes, and finishing. Off and snoozed are reasons to pause; they add up.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include "core/engine/detail/engine_core.h"

namespace neuroshard::engine::detail {
namespace {

// In the user's own time zone: "21:31", with the day when that is not today.
std::string local_time(WallTime at, WallTime now) {
  const auto broken_down = [](WallTime time) {
    return fmt::localtime(
        std::chrono::system_clock::to_time_t(std::chrono::floor<std::chrono::seconds>(time)));
  };
  const std::tm then = broken_down(at);
  const std::tm today = broken_down(now);
  return then.tm_yday == today.tm_yday && then.tm_year == today.tm_year ? fmt::format("{:%H:%M}", then)
                                                                        : fmt::format("{:%a %H:%M}", then);
}

}  // namespace

void EngineCore::open_contributing() {
  if (!options_.remember_contributing) return;
  Settings settings = directory_->settings();
  draft_.contributing = settings.word(Setting::Contribute) == "on";
  const auto allowed = settings.set(Setting::Contribute, settings.value(Setting::Contribute));
  if (!allowed.ok()) contribute_locked_ = allowed.error();
  apply_pause();
}

Expected<node::CommandId> EngineCore::set_contributing(bool on) {
  if (contribute_locked_) return *contribute_locked_;
  return accept([this, on](node::CommandId id) {
    draft_.contributing = on;
    if (on) {
      draft_.snoozed_until.reset();
      snooze_timer_.reset();
    }
    apply_pause();
    take_up_finished();
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
    draft_.contributing = false;
    if (!run_ && !session_open_) {
      apply_pause();
      return remember_contributing(id);
    }
    finishing_ = true;
    draft_.finishing = true;
    stop_requested_ = true;  // the step that runs is completed
    if (!run_ || !run_->prepared) cancel_.cancel();
    tell_pause_reasons();
    publish();
    stops_.push_back(id);
    if (options_.remember_contributing)
      setting_changes_.push_back({0, Setting::Contribute, {0, "off"}, false});
  });
}

Expected<node::CommandId> EngineCore::override_rules(std::chrono::seconds duration) {
  if (duration < std::chrono::seconds(0) || duration > node::max_snooze) {
    return make_error(ErrorCode::InvalidArgument, fmt::format("rules are ignored for 0 to {} seconds, not {}",
                                                              node::max_snooze.count(), duration.count()));
  }
  return accept([this, duration](node::CommandId id) {
    draft_.overridden_until.reset();
    if (duration.count() > 0) draft_.overridden_until = services_.clock.wall_now() + duration;
    look_at_rules();
    done(id);
  });
}

Expected<void> EngineCore::report_session(const node::SessionSensors& sensors) {
  if (refusing_.load()) return make_error(ErrorCode::Cancelled, "the node is shutting down");
  if (core_->post([this, sensors] {
        session_sensors_ = sensors;
        session_reported_ = services_.clock.monotonic_now();
        look_at_rules();
        advance();
      })) {
    return {};
  }
  return make_error(ErrorCode::Busy, "the node has too much to do; the next report counts");
}

void EngineCore::look_at_rules() {
  if (draft_.overridden_until && services_.clock.wall_now() >= *draft_.overridden_until)
    draft_.overridden_until.reset();
  apply_pause();
}

void EngineCore::remember_contributing(node::CommandId command) {
  if (!options_.remember_contributing) return done(command);
  setting_changes_.push_back({command, Setting::Contribute, {0, draft_.contributing ? "on" : "off"}, false});
}

void EngineCore::tell_pause_reasons() {
  draft_.pause_reasons.clear();
  if (!draft_.contributing)
    draft_.pause_reasons.push_back({"user", "you switched contributing off", std::nullopt, false});
  if (draft_.snoozed_until) {
    draft_.pause_reasons.push_back(
        {"snooze", "snoozed until " + local_time(*draft_.snoozed_until, services_.clock.wall_now()),
         draft_.snoozed_until, false});
  }
}

void EngineCore::apply_pause() {
  tell_pause_reasons();
  if (!may_train()) {
    // A step that is thrown away is computed again later: obeyed at once, and nothing is lost.
    if (run_ && !stop_requested_) cancel_.cancel();
  } else if (run_ && draft_.state == node::RunState::Paused) {
    set_state(run_->prepared ? node::RunState::Training : node::RunState::Starting);
  }
  publish();
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
  take_up_finished();
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
