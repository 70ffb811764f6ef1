#include "core/engine/training_checkpoints.h"
#include "core/checkpoint/file_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/compute/slot.h"
#include "core/platform/sensor/cpu.h"
#include "core/storage/file_spool.h"

namespace neuroshard::engine {
namespace {

constexpr const char* router_bias_name = checkpoint::router_bias_extra;
// At most one save and its clean-up wait at a time.
constexpr std::size_t io_queue = 8;
// Share of one processor for hashing and writing. Where all processors compute, a step that is split evenly
// between them takes longer by at most this share.
constexpr double io_share = 0.02;

Error no_host_memory() {
  return make_error(
      ErrorCode::Unsupported,
      "Checkpoints of a device whose memory the processor can't address are not supported by this build.");
}

// The slots of a stage that holds the whole model.
std::vector<compute::SlotId> slots_of(compute::Stage& stage) {
  std::vector<compute::SlotId> slots;
  for (std::uint32_t i = 0; i < stage.slot_count(); ++i) slots.push_back(stage.slot(i).id);
  return slots;
}

Expected<checkpoint::SlotTarget> target_in(compute::Stage& stage, compute::SlotId id, bool optimizer) {
  for (std::uint32_t i = 0; i < stage.slot_count(); ++i) {
    const compute::SlotBuffers slot = stage.slot(i);
    if (slot.id != id) continue;
    if (slot.parameters == nullptr || (optimizer && (slot.moment1 == nullptr || slot.moment2 == nullptr))) {
      return no_host_memory();
    }
    checkpoint::SlotTarget target;
    target.parameters = {slot.parameters, slot.count};
    if (optimizer) {
      target.moment1 = {slot.moment1, slot.count};
      target.moment2 = {slot.moment2, slot.count};
    }
    return target;
  }
  return make_error(ErrorCode::InvalidArgument, "The model has no slot \"" + compute::to_string(id) + "\".");
}

Expected<void> check_network(const checkpoint::Manifest& manifest, const config::DataDirectory& directory,
                             const std::string& name) {
  if (manifest.network_id == directory.network_id()) return {};
  return make_error(
      ErrorCode::InvalidArgument,
      fmt::format("Checkpoint {} belongs to another network than this data directory ({}). Choose another "
                  "checkpoint, or another data directory with --data-dir.",
                  name, directory.profile().consensus.name));
}

}  // namespace

Expected<std::optional<checkpoint::Manifest>> load_current_checkpoint(
    config::DataDirectory& directory, TrainingServices services, const compute::ModelShape& shape,
    compute::Stage& stage, bool optimizer, const checkpoint::Progress& progress, std::string* name,
    std::vector<SessionAlert>* alerts) {
  const checkpoint::Catalogue catalogue(services.files, directory.checkpoints_path());
  std::optional<checkpoint::Entry> current;
  if (name->empty()) {
    NS_ASSIGN_OR_RETURN(current, catalogue.current());
  } else {
    NS_ASSIGN_OR_RETURN(current, catalogue.find(*name));
  }
  if (!current) {
    NS_ASSIGN_OR_RETURN(const auto all, catalogue.list());
    if (all.empty()) return std::optional<checkpoint::Manifest>{};
  } else {
    NS_RETURN_IF_ERROR(check_network(current->manifest, directory, current->name));
  }
  checkpoint::LoadRequest request;
  request.shape = shape;
  request.slots = slots_of(stage);
  request.optimizer = optimizer;
  request.target = [&stage, optimizer](compute::SlotId id) { return target_in(stage, id, optimizer); };
  const std::size_t biases = std::size_t{shape.layers} * shape.experts;
  request.extra = [&stage, biases, optimizer](const checkpoint::ExtraTensor& extra) -> Expected<void> {
    if (extra.name != router_bias_name || !optimizer) return {};
    if (extra.values.size() != biases) {
      return make_error(ErrorCode::Corrupt, "The checkpoint's router biases are not this model's.");
    }
    stage.set_router_bias(extra.values.data());
    return {};
  };
  checkpoint::Loaded loaded;
  if (name->empty()) {
    NS_ASSIGN_OR_RETURN(loaded, checkpoint::load_current(services.files, catalogue, request, progress));
  } else {
    NS_RETURN_IF_ERROR(checkpoint::load(services.files, *current, request, progress));
    loaded.entry = *current;
  }
  NS_RETURN_IF_ERROR(check_network(loaded.entry.manifest, directory, loaded.entry.name));
  stage.parameters_changed();
  for (const std::string& text : loaded.passed_over)
    alerts->push_back({LogLevel::Warning, "checkpoint", text});
  *name = loaded.entry.name;
  return std::optional<checkpoint::Manifest>(std::move(loaded.entry.manifest));
}

TrainingCheckpoints::TrainingCheckpoints(config::DataDirectory& directory, TrainingServices services,
                                         compute::Stage& stage, const Options& options)
    : directory_(directory), services_(services), stage_(stage), copy_allowed_(options.copy_allowed) {}

// The io thread ends before the objects that it uses.
TrainingCheckpoints::~TrainingCheckpoints() {
  async_.reset();
  io_.reset();
}

Expected<std::unique_ptr<TrainingCheckpoints>> TrainingCheckpoints::open(config::DataDirectory& directory,
                                                                         TrainingServices services,
                                                                         const compute::ModelShape& shape,
                                                                         compute::Stage& stage,
                                                                         const Options& options) {
  std::unique_ptr<TrainingCheckpoints> result(new TrainingCheckpoints(directory, services, stage, options));
  NS_RETURN_IF_ERROR(result->start(shape, options));
  return result;
}

Expected<void> TrainingCheckpoints::start(const compute::ModelShape& shape, const Options& options) {
  shape_ = shape;
  if (stage_.slot_count() == 0 || stage_.slot(0).parameters == nullptr) return no_host_memory();
  local_data_bytes_ = options.local_data_bytes;
  policy_.emplace(save_options(),
                  options.resumed ? options.resumed->written_today : checkpoint::DailyWrites{});
  if (services_.disk && options.resumed)
    services_.disk->written_at_least(static_cast<std::int32_t>(options.resumed->written_today.day),
                                     options.resumed->written_today.bytes);
  last_saved_step_ = options.resumed ? options.resumed->step : 0;
  policy_->start(last_saved_step_, services_.clock.monotonic_now());
  save_bytes_ = checkpoint::Writer::estimate_bytes(shape, slots_of(stage_));
  router_bias_.resize(std::size_t{shape.layers} * shape.experts);

  NS_ASSIGN_OR_RETURN(checkpoint::Writer writer,
                      checkpoint::Writer::open(services_.files, directory_.node_key(),
                                               directory_.checkpoints_path(), directory_.format_path()));
  writer_.emplace(std::move(writer));
  writer_->set_parent(options.resumed_name);
  io_ = make_thread_executor("checkpoint-io", io_queue);
  async_ = std::make_unique<checkpoint::AsyncWriter>(
      *writer_, *io_, callbacks(), checkpoint::Pace{io_share, platform::thread_processor_time},
      storage::make_file_spool({directory_.path() + "/spool", 0, services_.disk}));
  if (copy_allowed_) async_->prepare(save_bytes_);
  return {};
}

checkpoint::AsyncWriter::Callbacks TrainingCheckpoints::callbacks() {
  // After each save, and after one that found no room, on the thread that wrote it and before the writer is
  // free again: deletes checkpoints that retention no longer keeps.
  const auto clean_up = [inbox = inbox_, &files = services_.files, root = directory_.checkpoints_path(),
                         held = services_.held_checkpoints] {
    checkpoint::RetentionPolicy policy;
    {
      const std::lock_guard lock(inbox->mutex);
      policy = inbox->retention;
    }
    if (held) policy.held = held->names();
    checkpoint::Catalogue catalogue(files, root);
    const auto removed = checkpoint::apply_retention(catalogue, policy);
    if (removed.ok()) return;
    const std::lock_guard lock(inbox->mutex);
    inbox->news.alerts.push_back({LogLevel::Warning, "checkpoint",
                                  "An old checkpoint could not be deleted: " + removed.error().message});
  };
  // With the inbox's lock: follow_settings() finds both counts as they were before, or both after.
  const auto count = [inbox = inbox_, disk = services_.disk](std::uint64_t bytes) {
    inbox->written += bytes;
    if (disk) disk->count(bytes);
  };
  checkpoint::AsyncWriter::Callbacks calls;
  calls.saved = [inbox = inbox_, clean_up, count, bytes = save_bytes_](const checkpoint::SaveResult& result) {
    {
      const std::lock_guard lock(inbox->mutex);
      count(bytes);
      inbox->news.saved = result.name;
      inbox->saved_step = result.manifest.step;
    }
    clean_up();
  };
  calls.failed = [inbox = inbox_, clean_up, count, writer = &*writer_](const Error& error) {
    {
      const std::lock_guard lock(inbox->mutex);
      count(writer->take_wasted());
      inbox->news.alerts.push_back({LogLevel::Error, "checkpoint",
                                    "The checkpoint could not be saved: " + error.message +
                                        " Training continues and tries the next save as usual."});
    }
    // A person who keeps fewer checkpoints, or lowers the disk limit, makes room for the next save.
    if (error.code == ErrorCode::Exhausted) clean_up();
  };
  return calls;
}

checkpoint::SavePolicyOptions TrainingCheckpoints::save_options() const {
  const config::Settings& settings = directory_.settings();
  checkpoint::SavePolicyOptions options;
  options.every_steps = settings.number(config::Setting::CheckpointEverySteps);
  options.minimum_interval = std::chrono::seconds(settings.number(config::Setting::CheckpointMinInterval));
  options.daily_write_bytes = settings.number(config::Setting::CheckpointDailyWriteBudget);
  return options;
}

checkpoint::RetentionPolicy TrainingCheckpoints::retention() const {
  const config::Settings& settings = directory_.settings();
  checkpoint::RetentionPolicy policy;
  policy.keep_last = static_cast<std::uint32_t>(settings.number(config::Setting::CheckpointKeepLast));
  if (const std::uint64_t disk = settings.number(config::Setting::DiskLimit); disk > 0) {
    const std::uint64_t others =
        std::max(std::min(disk / 2, local_data_bytes_), services_.disk ? services_.disk->space_used() : 0);
    policy.disk_cap_bytes = std::max<std::uint64_t>(1, disk - std::min(disk, others));
  }
  return policy;
}

void TrainingCheckpoints::follow_settings() {
  policy_->set_options(save_options());
  const WallTime now = services_.clock.wall_now();
  const std::lock_guard lock(inbox_->mutex);
  policy_->count(std::exchange(inbox_->written, 0), now);
  if (services_.disk) policy_->set_written({storage::utc_day(now), services_.disk->written_today()}, now);
}

bool TrainingCheckpoints::due(const TrainerState& state) {
  follow_settings();
  return wanted_ ||
         policy_->due(state.step, services_.clock.monotonic_now(), services_.clock.wall_now(), save_bytes_);
}

checkpoint::Manifest TrainingCheckpoints::describe(const TrainerState& state) {
  {
    const std::lock_guard lock(inbox_->mutex);
    inbox_->retention = retention();
  }
  const config::ConsensusPart& consensus = directory_.profile().consensus;
  checkpoint::Manifest manifest;
  manifest.wallet = directory_.wallet_id();
  manifest.network_id = directory_.network_id();
  manifest.architecture = shape_;
  manifest.architecture_version = first_architecture_version;
  manifest.step = state.step;
  // The network's number: this node may have joined late. With fragments, the number of the last one, whose
  // rounds all have H steps.
  if (!state.places.empty() && state.places.back().round != 0) {
    manifest.round = state.places.back().round;
    manifest.inner_step = state.places.back().steps;
  } else {
    manifest.round = consensus.inner_steps == 0 ? 0 : state.step / consensus.inner_steps;
    manifest.inner_step = consensus.inner_steps == 0 ? state.step : state.step % consensus.inner_steps;
  }
  manifest.tokens_seen = state.tokens_seen;
  manifest.micro_batch = state.micro_batch;
  manifest.loader_position = state.loader_position;
  manifest.trainer_state = encode_trainer_state(state);
  manifest.losses = {state.training_loss, state.held_out_loss};
  manifest.saved_at = services_.clock.wall_now();
  follow_settings();
  manifest.written_today =
      policy_->saving(state.step, services_.clock.monotonic_now(), services_.clock.wall_now(), save_bytes_);
  return manifest;
}

checkpoint::TensorView TrainingCheckpoints::view() {
  checkpoint::TensorView view;
  for (std::uint32_t i = 0; i < stage_.slot_count(); ++i) {
    const compute::SlotBuffers slot = stage_.slot(i);
    const auto floats = [&](const float* from) { return Span<const float>(from, slot.count); };
    view.slots.push_back({slot.id, floats(slot.parameters), floats(slot.moment1), floats(slot.moment2)});
  }
  stage_.router_bias(router_bias_.data());
  view.extras.push_back({router_bias_name, {shape_.layers, shape_.experts}, router_bias_});
  return view;
}

bool TrainingCheckpoints::due_after_sync(const TrainerState& state) {
  follow_settings();
  return policy_->due_after_sync(state.step, services_.clock.monotonic_now(), services_.clock.wall_now(),
                                 save_bytes_);
}

bool TrainingCheckpoints::save(const TrainerState& state) {
  // Only a started save counts for the policy; a delayed one is requested again at the next step.
  wanted_ = async_->in_flight();
  if (wanted_) {
    // The user's interval is shorter than the pauses allow.
    async_->hurry();
    return false;
  }
  const auto started = async_->save(describe(state), view(), copy_allowed_);
  if (!started.ok()) {
    const std::lock_guard lock(inbox_->mutex);
    inbox_->news.alerts.push_back({LogLevel::Error, "checkpoint", started.error().message});
    return false;
  }
  return *started != checkpoint::SaveStart::Deferred;
}

bool TrainingCheckpoints::in_flight() const {
  return async_->in_flight();
}

void TrainingCheckpoints::before_update() {
  async_->before_update();
}

Expected<std::string> TrainingCheckpoints::save_now(const TrainerState& state) {
  NS_ASSIGN_OR_RETURN(const checkpoint::SaveResult result, async_->save_now(describe(state), view()));
  last_saved_step_ = state.step;
  return result.name;
}

bool TrainingCheckpoints::up_to_date(std::uint64_t step) {
  async_->wait();
  const std::lock_guard lock(inbox_->mutex);
  return inbox_->saved_step.value_or(last_saved_step_) == step;
}

TrainingCheckpoints::News TrainingCheckpoints::collect() {
  const std::lock_guard lock(inbox_->mutex);
  last_saved_step_ = inbox_->saved_step.value_or(last_saved_step_);
  return std::exchange(inbox_->news, {});
}

}  // namespace neuroshard::engine
