// The engine's lifecycle, commands and published state. Jobs: engine_jobs.cpp; queries: engine_queries.cpp.
#include "core/engine/detail/engine_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "core/crypto/keys.h"
#include "core/platform/directory_lock.h"
#include "core/platform/process_memory.h"

namespace neuroshard::engine {

std::unique_ptr<Engine> Engine::start(std::unique_ptr<DataDirectory> directory, EngineServices services,
                                      EngineOptions options) {
  return std::make_unique<detail::EngineCore>(std::move(directory), services, std::move(options));
}

}  // namespace neuroshard::engine

namespace neuroshard::engine::detail {
namespace {

constexpr std::size_t core_queue = 1024;   // a flood of commands is refused with Busy
constexpr std::size_t compute_queue = 64;  // one job and the queries

node::ModelView model_view(const ConsensusPart& consensus) {
  const compute::ModelShape shape = model_shape(consensus);
  node::ModelView view;
  view.layers = shape.layers;
  view.hidden = shape.hidden;
  view.experts = shape.experts;
  view.experts_per_token = shape.experts_per_token;
  view.vocab = shape.vocab;
  view.sequence = shape.sequence;
  view.parameters = compute::model_parameter_count(shape);
  view.active_parameters = compute::active_parameter_count(shape);
  return view;
}

}  // namespace

EngineCore::EngineCore(std::unique_ptr<DataDirectory> directory, EngineServices services,
                       EngineOptions options)
    : directory_(std::move(directory)),
      services_(services),
      options_(std::move(options)),
      directory_path_(directory_->path()),
      core_(make_thread_executor("ns-core", core_queue)),
      compute_(make_thread_executor("ns-compute", compute_queue)) {
  draft_.state = node::RunState::Idle;
  draft_.identity = {to_hex(crypto::node_id(directory_->node_key().public_key())), directory_->wallet_id(),
                     directory_->instance_id(), directory_->wallet_protected()};
  draft_.program = {options_.version,
                    static_cast<std::uint64_t>(platform::read_lock_holder(directory_path_).pid),
                    services_.clock.wall_now(),
                    directory_->path(),
                    directory_->profile().consensus.name,
                    to_hex(directory_->network_id()),
                    network_notice(directory_->profile())};
  draft_.model = model_view(directory_->profile().consensus);
  draft_.resources.memory_limit_bytes = directory_->settings().number(Setting::MemoryLimit);
  open_contributing();
  publish();
  if (!core_->post([this] { look_at_resources(); }))
    services_.logger.warning("engine", "the core thread did not start");
}

EngineCore::~EngineCore() {
  static_cast<void>(request_shutdown().ok());  // refused when it is under way already
  // The final checkpoint first; only then may the threads end.
  ended_.get_future().wait();
  compute_.reset();
  core_.reset();
}

std::shared_ptr<const node::Snapshot> EngineCore::snapshot() const {
  std::lock_guard lock(published_mutex_);
  return published_;
}

std::unique_ptr<node::Subscription> EngineCore::subscribe(node::EventHandler on_event) {
  return subscribers_->add(std::move(on_event));
}

Expected<node::CommandId> EngineCore::accept(std::function<void(node::CommandId)> effect) {
  if (refusing_.load()) return make_error(ErrorCode::Cancelled, "the node is shutting down");
  if (open_commands_.fetch_add(1) >= max_open_commands) {
    open_commands_.fetch_sub(1);
    return make_error(ErrorCode::Busy, "too many commands are under way; try again in a moment");
  }
  const node::CommandId id = next_command_.fetch_add(1);
  if (core_->post([this, id, effect = std::move(effect)] {
        if (shutting_down_) return done(id, make_error(ErrorCode::Cancelled, "the node is shutting down"));
        effect(id);
        advance();
      })) {
    return id;
  }
  open_commands_.fetch_sub(1);
  return make_error(ErrorCode::Busy, "the node has too much to do; try again in a moment");
}

Expected<node::CommandId> EngineCore::start_training(const node::TrainingPlan& plan) {
  if (plan.steps != 0 && plan.until_step != 0) {
    return make_error(ErrorCode::InvalidArgument, "give a number of further steps or a last step, not both");
  }
  return accept([this, plan](node::CommandId id) {
    if (run_ || session_open_) {
      return done(id, make_error(ErrorCode::Busy, "training is under way already; stop it first"));
    }
    begin_run(plan, id);
  });
}

Expected<node::CommandId> EngineCore::stop_training() {
  return accept([this](node::CommandId id) {
    if (!run_ && !session_open_) return done(id);
    stops_.push_back(id);
    stop_requested_ = true;
    cancel_.cancel();
    set_state(node::RunState::Stopping);
  });
}

Expected<node::CommandId> EngineCore::save_checkpoint() {
  return accept([this](node::CommandId id) {
    if (!run_ || !run_->prepared) {
      return done(id, make_error(ErrorCode::NotFound, "there is nothing to save: training is not under way"));
    }
    saves_.push_back(id);
  });
}

Expected<node::CommandId> EngineCore::set_setting(const std::string& name, const std::string& value) {
  NS_ASSIGN_OR_RETURN(const Setting id, find_setting(name));
  NS_ASSIGN_OR_RETURN(SettingValue parsed, parse_setting(id, value));
  if (id == Setting::Contribute) return set_contributing(parsed.word == "on");
  return accept([this, id, parsed = std::move(parsed)](node::CommandId command) {
    setting_changes_.push_back({command, id, parsed});
  });
}

Expected<node::CommandId> EngineCore::request_shutdown() {
  if (refusing_.exchange(true)) return make_error(ErrorCode::Cancelled, "the node is shutting down already");
  open_commands_.fetch_add(1);
  const node::CommandId id = next_command_.fetch_add(1);
  const auto effect = [this, id] {
    shutdowns_.push_back(id);
    shutting_down_ = true;
    stop_requested_ = true;
    cancel_.cancel();
    set_state(node::RunState::Stopping);
    advance();
  };
  // New commands are refused from now on, so a full queue drains: a flood must not keep the node from ending.
  while (!core_->post(effect)) std::this_thread::yield();
  return id;
}

void EngineCore::set_state(node::RunState state, std::optional<Error> error) {
  if (draft_.state == state && !error) return;
  draft_.state = state;
  publish();
  emit(node::StateChanged{state, std::move(error)});
}

void EngineCore::done(node::CommandId id, std::optional<Error> error) {
  open_commands_.fetch_sub(1);
  emit(node::CommandDone{id, std::move(error)});
}

void EngineCore::done_all(Ids& ids, const std::optional<Error>& error) {
  for (const node::CommandId id : std::exchange(ids, {})) done(id, error);
}

void EngineCore::raise(node::Alert alert) {
  alert.since = services_.clock.wall_now();
  for (node::Alert& existing : draft_.alerts) {
    if (existing.key != alert.key) continue;
    if (existing.message == alert.message) return;
    alert.since = existing.since;
    existing = alert;
    publish();
    return emit(node::AlertRaised{std::move(alert)});
  }
  draft_.alerts.push_back(alert);
  publish();
  emit(node::AlertRaised{std::move(alert)});
}

void EngineCore::clear(const std::string& key) {
  if (std::erase_if(draft_.alerts, [&key](const node::Alert& alert) { return alert.key == key; }) == 0)
    return;
  publish();
  emit(node::AlertCleared{key});
}

void EngineCore::publish() {
  draft_.version += 1;
  draft_.taken = services_.clock.wall_now();
  node::bound(draft_);
  auto copy = std::make_shared<const node::Snapshot>(draft_);
  std::lock_guard lock(published_mutex_);
  published_ = std::move(copy);
}

void EngineCore::look_at_resources() {
  if (ending_) return;
  end_snooze_if_due();  // the wall clock may have jumped, or the machine slept
  draft_.resources.resident_bytes = platform::process_memory().resident.value_or(0);
  const auto free = services_.files.free_bytes(directory_path_);
  draft_.resources.disk_free_bytes = free.value_or(0);
  if (free.ok() && *free < min_free_bytes) {
    raise({"disk_low",
           node::Severity::Warning,
           fmt::format("only {} MiB are free on the disk of {}; checkpoints need room", *free >> 20,
                       directory_path_),
           {}});
  } else if (free.ok()) {
    clear("disk_low");
  }
  publish();
  resource_timer_ = core_->post_after(options_.resource_period, [this] { look_at_resources(); });
}

}  // namespace neuroshard::engine::detail
