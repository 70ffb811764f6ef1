// The engine's lifecycle, commands and published state. Jobs: engine_jobs.cpp; queries: engine_queries.cpp.
#include "core/engine/detail/engine_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "core/crypto/keys.h"
#include "core/platform/file/directory_lock.h"
#include "core/platform/process/process_memory.h"
#include "core/platform/sensor/cpu.h"

namespace neuroshard::engine {

std::unique_ptr<Engine> Engine::start(std::unique_ptr<config::DataDirectory> directory,
                                      EngineServices services, EngineOptions options) {
  return std::make_unique<detail::EngineCore>(std::move(directory), services, std::move(options));
}

}  // namespace neuroshard::engine

namespace neuroshard::engine::detail {
namespace {

constexpr std::size_t core_queue = 1024;   // a flood of commands is refused with Busy
constexpr std::size_t sensor_queue = 16;   // one reading, and writes of which the last one counts
constexpr std::size_t compute_queue = 64;  // one job and the queries
constexpr std::size_t reader_queue = 64;
constexpr std::size_t files_queue = 16;

node::ModelView model_view(const config::ConsensusPart& consensus) {
  const compute::ModelShape shape = config::model_shape(consensus);
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

std::shared_ptr<TrainingHistory> open_history(const config::DataDirectory& directory,
                                              const EngineServices& services) {
  auto history = TrainingHistory::open(services.files, directory.state_database_path(), services.clock);
  NS_CHECK(history.ok());  // where no file can be, it is kept in memory
  return std::move(*history);
}

// Of all files below a folder. Folders of folders are few here, and links are not followed by list().
std::uint64_t tree_bytes(storage::FileEnv& files, const std::string& path, int depth) {
  constexpr int deepest = 8;
  const auto entries = files.list(path);
  if (!entries.ok() || depth > deepest) return 0;
  std::uint64_t bytes = 0;
  for (const storage::DirectoryEntry& entry : *entries)
    bytes += entry.is_directory ? tree_bytes(files, path + "/" + entry.name, depth + 1) : entry.size;
  return bytes;
}

}  // namespace

EngineCore::EngineCore(std::unique_ptr<config::DataDirectory> directory, EngineServices services,
                       EngineOptions options)
    : directory_(std::move(directory)),
      services_(services),
      options_(std::move(options)),
      directory_path_(directory_->path()),
      network_id_(directory_->network_id()),
      history_(open_history(*directory_, services_)),
      router_(config::model_shape(directory_->profile().consensus)),
      core_(make_thread_executor("ns-core", core_queue)),
      sensors_(make_thread_executor("ns-sensors", sensor_queue)),
      reader_(make_thread_executor("ns-reader", reader_queue)),
      files_(make_thread_executor("ns-files", files_queue)),
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
                    config::network_notice(directory_->profile())};
  draft_.model = model_view(directory_->profile().consensus);
  draft_.resources.memory_limit_bytes = directory_->settings().number(config::Setting::MemoryLimit);
  draft_.resources.memory_total_bytes = platform::available_memory().total;
  experts_ = router_.view();
  keep_settings_view();
  open_undo();
  open_contributing();
  for (const node::Alert& alert : options_.alerts) raise(alert);
  publish();
  if (!core_->post([this] { look_at_resources(); }))
    services_.logger.warning("engine", "the core thread did not start");
}

EngineCore::~EngineCore() {
  static_cast<void>(request_shutdown().ok());  // refused when it is under way already
  // The final checkpoint first; only then may the threads end.
  ended_.get_future().wait();
  compute_.reset();
  sensors_.reset();
  files_.reset();
  reader_.reset();
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
  NS_ASSIGN_OR_RETURN(const config::Setting id, config::find_setting(name));
  SettingChange change;
  change.id = id;
  change.reset = value.empty();
  NS_ASSIGN_OR_RETURN(
      change.value, config::parse_setting(id, change.reset ? config::setting_info(id).default_text : value));
  if (id == config::Setting::Contribute) return set_contributing(change.value.word == "on");
  return accept([this, change = std::move(change)](node::CommandId command) mutable {
    change.command = command;
    setting_changes_.push_back(change);
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
    for (auto& [command, source] : cancellable_) source.cancel();
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

void EngineCore::done(node::CommandId id, std::optional<Error> error, node::CommandResult result) {
  open_commands_.fetch_sub(1);
  emit(node::CommandDone{id, std::move(error), std::move(result)});
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
  if (options_.rounds_view) draft_.rounds = options_.rounds_view();
  if (options_.network != nullptr) draft_.peers = options_.network->peers();
  node::bound(draft_);
  auto copy = std::make_shared<const node::Snapshot>(draft_);
  std::lock_guard lock(published_mutex_);
  published_ = std::move(copy);
}

// What is not told any more is over.
void EngineCore::look_at_rounds() {
  if (!options_.rounds_alerts) return;
  const std::vector<node::Alert> now = options_.rounds_alerts();
  std::vector<std::string> over;
  for (const node::Alert& alert : draft_.alerts) {
    const bool of_rounds = alert.key.rfind("rounds_", 0) == 0;
    if (of_rounds &&
        std::none_of(now.begin(), now.end(), [&](const auto& one) { return one.key == alert.key; }))
      over.push_back(alert.key);
  }
  for (const std::string& key : over) clear(key);
  for (const node::Alert& alert : now) raise(alert);
}

void EngineCore::look_at_resources() {
  if (ending_) return;
  look_at_rules();
  look_at_rounds();
  if (finish_if_round_is_over()) advance();  // it may be paused by a rule
  end_snooze_if_due();                       // the wall clock may have jumped, or the machine slept
  look_at_processor();
  if (!directory_timer_ && !sizing_directory_) look_at_directory();
  draft_.resources.resident_bytes = platform::process_memory().resident.value_or(0);
  const auto free = services_.files.free_bytes(directory_path_);
  draft_.resources.disk_free_bytes = free.value_or(0);
  if (free.ok() && *free < config::min_free_bytes) {
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

void EngineCore::look_at_processor() {
  const MonotonicTime now = services_.clock.monotonic_now();
  const Duration used = platform::process_processor_time();
  if (processor_looked_ && now > *processor_looked_ && used.count() > 0) {
    static const double processors = std::max(1, platform::cpu_info().usable_cpus);
    const double share =
        to_seconds(used - processor_time_) / to_seconds(now - *processor_looked_) / processors;
    draft_.resources.cpu_share = std::clamp(share, 0.0, 1.0);
  }
  processor_looked_ = now;
  processor_time_ = used;
}

// Counting thousands of files takes a while: on the reading thread, once a minute.
void EngineCore::look_at_directory() {
  static constexpr Duration period = std::chrono::seconds(60);
  sizing_directory_ = reader_->post([this] {
    const std::uint64_t bytes = tree_bytes(services_.files, directory_path_, 0);
    static_cast<void>(core_->post([this, bytes] {
      sizing_directory_ = false;
      if (ending_) return;
      draft_.resources.directory_bytes = bytes;
      publish();
      directory_timer_ = core_->post_after(period, [this] { look_at_directory(); });
    }));
  });
}

}  // namespace neuroshard::engine::detail
