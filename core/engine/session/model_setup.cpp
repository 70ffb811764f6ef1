#include "core/engine/session/model_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/base/check.h"
#include "core/config/model_part.h"
#include "core/crypto/hash.h"
#include "core/engine/initial_weights.h"
#include "core/engine/member_memory.h"
#include "core/engine/training_data.h"
#include "core/platform/process/heap.h"
#include "core/rounds/sync.h"

namespace neuroshard::engine::detail {
namespace {

constexpr std::size_t most_kept_before_changes = 2;  // models before changes of the network's size

// One shard is fetched at a time; those before it in the queue were given up.
constexpr std::size_t fetch_queue = 4;

void put_text(char* target, std::size_t capacity, const std::string& text) {
  const std::size_t length = std::min(text.size(), capacity - 1);
  std::memcpy(target, text.data(), length);
  target[length] = '\0';
}

Error cancelled() {
  return make_error(ErrorCode::Cancelled, "The preparation was cancelled.");
}

}  // namespace

Expected<void> ModelSetup::run() {
  platform::keep_heap_small();
  NS_RETURN_IF_ERROR(choose_part());
  NS_RETURN_IF_ERROR(prepare_text());
  if (options_.cancel.cancelled()) return cancelled();
  NS_RETURN_IF_ERROR(load_compute());
  NS_RETURN_IF_ERROR(make_model());
  NS_RETURN_IF_ERROR(restore());
  if (parts_.trains()) NS_RETURN_IF_ERROR(prepare_training());
  platform::trim_heap();
  return {};
}

void ModelSetup::report(PrepareProgress::Phase phase, std::uint64_t done, std::uint64_t total) const {
  if (options_.on_progress) options_.on_progress({phase, done, total});
}

Expected<void> ModelSetup::choose_part() {
  SessionInfo& info = parts_.info;
  info.shape = config::model_shape(consensus());
  info.range = compute::whole_range(info.shape);
  if (options_.part)
    NS_RETURN_IF_ERROR(config::keep_part(parts_.directory, parts_.services.files, *options_.part));
  NS_ASSIGN_OR_RETURN(const auto part, config::own_part(parts_.directory, parts_.services.files));
  if (!part) return {};
  is_part_ = true;
  if (part->drawn) drawn_ = part->index;
  info.range = part->range;
  info.part = part->index;
  if (!parts_.trains())
    return make_error(
        ErrorCode::Unavailable,
        "A node of this network holds a part of the model, and generates text together with the "
        "others, while it trains: start training first (Contribute).");
  if (!parts_.services.pipeline)
    return make_error(
        ErrorCode::Unavailable,
        "A node of this network holds a part of the model, and trains it together with the others: "
        "neuroshardd run");
  return {};
}

Expected<void> ModelSetup::prepare_text() {
  auto prepared = prepare_training_text(parts_.directory, parts_.services, options_);
  parts_.note_text(prepared);
  NS_ASSIGN_OR_RETURN(TrainingText text, std::move(prepared));
  parts_.dataset = std::move(text.dataset);
  note_import(text.imported);
  const data::Dataset& dataset = *parts_.dataset;
  SessionInfo& info = parts_.info;
  parts_.state.tokenizer_hash = dataset.manifest().tokenizer_hash;
  info.vocabulary = dataset.tokenizer().vocab_size();
  if (info.vocabulary > consensus().vocab) {
    return make_error(
        ErrorCode::InvalidArgument,
        fmt::format("The tokenizer has {} tokens and the model of this network takes {}. Use the data of "
                    "this network, or another data directory with --data-dir.",
                    info.vocabulary, consensus().vocab));
  }
  if (!parts_.trains()) return {};
  for (const data::ShardEntry& shard : dataset.shards(data::Split::Train)) info.train_tokens += shard.tokens;
  for (const data::ShardEntry& shard : dataset.shards(data::Split::HeldOut))
    info.held_out_tokens += shard.tokens;
  parts_.fetcher = make_thread_executor("shard-fetch", fetch_queue);
  NS_ASSIGN_OR_RETURN(parts_.loader, data::Loader::create(*parts_.dataset, loader_options(parts_.directory),
                                                          parts_.fetcher.get()));
  return {};
}

void ModelSetup::note_import(const data::ImportResult& result) {
  parts_.info.files_added = result.files_added;
  parts_.info.tokenizer_learned = result.tokenizer_learned;
  if (result.changed()) {
    parts_.history->log(
        LogLevel::Info, "data",
        fmt::format("Added {} of text, {} tokens to train on.",
                    result.files_added == 1 ? "one file" : fmt::format("{} files", result.files_added),
                    result.train_tokens_added));
  }
  platform::trim_heap();
}

TrainingMemoryRequest ModelSetup::memory_request() const {
  return memory_request(consensus(), parts_.info.range);
}

TrainingMemoryRequest ModelSetup::memory_request(const config::ConsensusPart& consensus,
                                                 const compute::StageRange& range) const {
  TrainingMemoryRequest request =
      engine::memory_request(consensus, range, parts_.trains() && parts_.services.rounds);
  request.precision = precision_of(parts_.module.info);
  request.training = parts_.trains();
  request.data_bytes = parts_.trains() ? training_data_bytes(*parts_.dataset) : 0;
  request.user_limit = settings().number(config::Setting::MemoryLimit);
  request.threads = thread_limit(parts_.directory);
  if (!is_part_)
    request.max_micro_batch = static_cast<std::uint32_t>(settings().number(config::Setting::MaxMicroBatch));
  return request;
}

Expected<TrainingMemory> ModelSetup::plan_memory(std::uint64_t least_resident) {
  const auto plan = [this, least_resident] {
    TrainingMemoryRequest request = memory_request();
    request.least_resident = least_resident;
    return plan_training_memory(request);
  };
  auto planned = plan();
  if (planned.ok() || planned.error().code != ErrorCode::Exhausted || !parts_.trains()) return planned;
  SessionInfo& info = parts_.info;
  if (const auto next = drawn_ ? config::next_fitting(parts_that_fit(least_resident), info.part)
                               : std::optional<std::uint32_t>()) {
    info.part = *next;
    info.range = config::model_parts(consensus()).at(*next);
    return plan();
  }
  if (parts_.services.no_memory) parts_.services.no_memory();
  return planned;
}

std::vector<bool> ModelSetup::parts_that_fit(std::uint64_t least_resident) const {
  std::vector<bool> fitting;
  for (const compute::StageRange& range : config::model_parts(consensus())) {
    TrainingMemoryRequest request = memory_request(consensus(), range);
    request.least_resident = least_resident;
    fitting.push_back(plan_training_memory(request).ok());
  }
  return fitting;
}

// From then on it is the node's part, as if the network had chosen it: a node that has less memory later does not change it by itself.
Expected<void> ModelSetup::keep_drawn_part() {
  if (!drawn_) return {};
  const SessionInfo& info = parts_.info;
  if (info.part != *drawn_)
    alerts_.push_back(
        {LogLevel::Info, "memory",
         fmt::format("Part {} of the model, which this node's id draws, has no room in the memory limit "
                     "of {} MiB. The node takes the next part that has room, {}: {}.",
                     *drawn_ + 1, parts_.memory.plan.limit >> 20, info.part + 1, to_text(info.range))});
  return config::keep_part(parts_.directory, parts_.services.files, info.part);
}

Expected<void> ModelSetup::load_compute() {
  report(PrepareProgress::Phase::LoadingCompute, 0, 0);
  if (settings().number(config::Setting::MemoryLimit) > 0) {
    // The module alone may exceed the user's limit: then it must not be loaded at all.
    NS_RETURN_IF_ERROR(compute::validate(parts_.info.shape));
    NS_RETURN_IF_ERROR(plan_memory(with_module_bytes));
  }
  compute::ModuleOptions module;
  module.threads = thread_limit(parts_.directory);
  put_text(module.device, sizeof module.device, settings().word(config::Setting::Device));
  put_text(module.precision, sizeof module.precision, settings().word(config::Setting::Precision));
  NS_ASSIGN_OR_RETURN(parts_.module, parts_.services.load_module(settings().word(config::Setting::Device),
                                                                 module, parts_.services.logger));
  NS_RETURN_IF_ERROR(settle_precision(module));
  // A module that is already loaded keeps its first options.
  const compute::Status threads = parts_.module.module->set_threads(module.threads);
  if (!threads.ok()) return compute::to_error(threads);
  parts_.module.info = parts_.module.module->info();
  parts_.info.compute = parts_.module.info;
  return {};
}

// bf16 keeps packed copies of the weights: where only fp32 fits into the memory limit, "auto" means fp32.
Expected<void> ModelSetup::settle_precision(compute::ModuleOptions options) {
  parts_.module.info = parts_.module.module->info();
  if (settings().word(config::Setting::Precision) != "auto" ||
      precision_of(parts_.module.info) == compute::Precision::Fp32)
    return {};
  if (plan_training_memory(memory_request()).ok()) return {};
  put_text(options.precision, sizeof options.precision, "fp32");
  NS_ASSIGN_OR_RETURN(parts_.module, parts_.services.load_module(settings().word(config::Setting::Device),
                                                                 options, parts_.services.logger));
  return {};
}

Expected<void> ModelSetup::make_model() {
  if (options_.cancel.cancelled()) return cancelled();
  NS_RETURN_IF_ERROR(compute::validate(parts_.info.shape));
  parts_.info.parameters = compute::model_parameter_count(parts_.info.shape);
  parts_.info.active_parameters = compute::active_parameter_count(parts_.info.shape);
  parts_.info.sequences_per_step = data::sequences_per_batch(
      static_cast<std::uint32_t>(consensus().batch_tokens), static_cast<std::uint32_t>(consensus().sequence));
  const TrainingMemoryRequest request = memory_request();
  parts_.state.memory_limit = request.user_limit;
  parts_.state.max_micro_batch =
      is_part_ ? settings().number(config::Setting::MaxMicroBatch) : std::uint64_t{request.max_micro_batch};
  NS_ASSIGN_OR_RETURN(parts_.memory, plan_memory(0));
  NS_RETURN_IF_ERROR(keep_drawn_part());
  // So that the node moves to no part that it can't hold.
  if (is_part_) parts_.info.parts_that_fit = parts_that_fit(0);
  if (parts_.trains())
    parts_.info.too_large_size =
        first_too_large(consensus(), [this](std::uint32_t size) { return size_fits(size); });
  parts_.info.memory_limit = parts_.memory.plan.limit;
  parts_.info.micro_batch = is_part_ ? parts_.memory.sequences_together : parts_.memory.plan.micro_batch;
  parts_.info.memory_planned = parts_.memory.plan.expected;
  parts_.services.logger.info("memory", parts_.memory.describe());
  parts_.module.module->set_memory_limit(parts_.memory.tensor_bytes);

  NS_ASSIGN_OR_RETURN(parts_.stage, compute::make_stage(*parts_.module.module, stage_spec(parts_)));
  return {};
}

// So that it does not offer memory for a model that it can't hold, whatever the profile says that this needs.
bool ModelSetup::size_fits(std::uint32_t size) const {
  const config::ConsensusPart other = config::at_size(consensus(), size);
  const std::vector<compute::StageRange> parts = config::model_parts(other);
  TrainingMemoryRequest request = memory_request(
      other, parts.empty() ? compute::whole_range(config::model_shape(other)) : parts.at(parts_.info.part));
  // With something to spare: the node starts anew for it, and then other programs may have a little more of the memory.
  request.outer_bytes += parts_.memory.plan.limit / 16;
  if (plan_training_memory(request).ok()) return true;
  if (settings().word(config::Setting::Precision) != "auto") return false;
  request.precision = compute::Precision::Fp32;
  return plan_training_memory(request).ok();
}

Expected<void> ModelSetup::restore() {
  std::string name = parts_.trains() ? std::string() : options_.checkpoint;
  const auto progress = [this](std::uint64_t done, std::uint64_t total) {
    report(PrepareProgress::Phase::RestoringModel, done, total);
  };
  std::optional<checkpoint::Manifest> manifest;
  if (!passes_over_checkpoint()) {
    NS_ASSIGN_OR_RETURN(
        manifest, load_current_checkpoint(parts_.directory, parts_.services, parts_.info.shape, *parts_.stage,
                                          parts_.trains(), progress, &name, &alerts_));
  }
  if (!manifest && !parts_.trains()) {
    return make_error(
        ErrorCode::NotFound,
        "There is no trained model in this data directory yet. Train one first: neuroshardd train --text "
        "PATH --steps 200.");
  }
  if (manifest) NS_RETURN_IF_ERROR(take_over(*manifest, name));
  if (!manifest) NS_RETURN_IF_ERROR(initialise());
  if (of_other_model_) {
    NS_RETURN_IF_ERROR(take_over(of_other_model_->manifest, {}));
    parts_.state.places.clear();
    parts_.state.since_arrival = 0;
    parts_.fresh_at = parts_.state.step;
    manifest = of_other_model_->manifest;
    name = of_other_model_->name;
  }
  if (!parts_.trains()) return {};

  TrainingCheckpoints::Options keep;
  keep.copy_allowed = parts_.memory.plan.whole_snapshot;
  keep.resumed = manifest;
  keep.resumed_name = name;
  keep.local_data_bytes = parts_.dataset->manifest().total_bytes();
  NS_ASSIGN_OR_RETURN(parts_.checkpoints, TrainingCheckpoints::open(parts_.directory, parts_.services,
                                                                    parts_.info.shape, *parts_.stage, keep));
  return {};
}

// A node that takes part in rounds gets the weights from the network, where its own are of another part or size, or were trained
// on text of another tokenizer. After a move or a change of size it goes on with its steps and its text.
bool ModelSetup::passes_over_checkpoint() {
  if (consensus().inner_steps == 0 || !parts_.trains()) return false;
  checkpoint::Catalogue catalogue(parts_.services.files, parts_.directory.checkpoints_path());
  const auto current = catalogue.current();
  if (!current.ok() || !*current) return false;
  const checkpoint::Manifest& manifest = (*current)->manifest;
  const compute::ModelShape &saved_shape = manifest.architecture, &shape = parts_.info.shape;
  const bool other_size = saved_shape.layers != shape.layers || saved_shape.hidden != shape.hidden;
  const bool other_part =
      is_part_ && std::any_of(manifest.slots.begin(), manifest.slots.end(),
                              [this](const auto& slot) { return !compute::holds(parts_.info.range, slot); });
  TrainerState saved;
  const bool other_tokenizer = decode_trainer_state(manifest.trainer_state, &saved).ok() &&
                               saved.tokenizer_hash != parts_.state.tokenizer_hash;
  if ((other_part || other_size) && !other_tokenizer) of_other_model_ = **current;
  if (other_size)
    keep_before_change(catalogue, **current);
  else if (other_part)
    alerts_.push_back(
        {LogLevel::Info, "checkpoint",
         fmt::format("Checkpoint {} holds another part of the model than {}; it stays on the disk.",
                     (*current)->name, to_text(parts_.info.range))});
  else if (other_tokenizer)
    alerts_.push_back({LogLevel::Warning, "checkpoint",
                       fmt::format("Checkpoint {} was trained with another tokenizer than the network has. "
                                   "Training begins with a new model; the checkpoint stays on the disk.",
                                   (*current)->name)});
  return other_part || other_size || other_tokenizer;
}

// The model before the change stays on the disk until somebody unpins it, or the network has changed its size twice more.
void ModelSetup::keep_before_change(checkpoint::Catalogue& catalogue, const checkpoint::Entry& entry) {
  const Expected<void> pinned = catalogue.pin(entry.name, checkpoint::Catalogue::PinnedBy::Program);
  // One that can't be unpinned stays until the next change.
  if (pinned.ok()) static_cast<void>(catalogue.unpin_older(most_kept_before_changes));
  alerts_.push_back(
      {LogLevel::Info, "checkpoint",
       fmt::format(
           "Checkpoint {} has the model before the network changed its size, {} layers of width {}; {}.",
           entry.name, entry.manifest.architecture.layers, entry.manifest.architecture.hidden,
           pinned.ok() ? "it is pinned, so it stays on the disk"
                       : "it can't be pinned: " + pinned.error().describe())});
}

Expected<void> ModelSetup::initialise() {
  const Hash256 seed = initial_seed(parts_.directory.network_id(), first_architecture_version);
  std::vector<float> values;
  for (std::uint32_t i = 0; i < parts_.stage->slot_count(); ++i) {
    if (options_.cancel.cancelled()) return cancelled();
    report(PrepareProgress::Phase::CreatingModel, i, parts_.stage->slot_count());
    const compute::SlotBuffers slot = parts_.stage->slot(i);
    if (slot.parameters != nullptr) {
      compute::initialise_slot(parts_.info.shape, slot.id, seed, {slot.parameters, slot.count});
      continue;
    }
    values.resize(slot.count);
    compute::initialise_slot(parts_.info.shape, slot.id, seed, values);
    const compute::Status status = parts_.stage->copy_in(i, compute::SlotBuffer::Parameters, values.data());
    if (!status.ok()) return compute::to_error(status);
  }
  parts_.stage->parameters_changed();
  // Charts of an earlier model, whose checkpoints are gone, would be mistaken for this one's.
  if (parts_.trains() && !of_other_model_) parts_.history->restored(0, true);
  return {};
}

// Everything beside the tensors that the next step depends on.
Expected<void> ModelSetup::take_over(const checkpoint::Manifest& manifest, const std::string& name) {
  TrainerState saved;
  NS_RETURN_IF_ERROR(decode_trainer_state(manifest.trainer_state, &saved));
  if (saved.tokenizer_hash != parts_.state.tokenizer_hash) {
    return make_error(
        ErrorCode::InvalidArgument,
        fmt::format("Checkpoint {} was trained with another tokenizer than this data directory has. Restore "
                    "that data, or use a new data directory with --data-dir.",
                    name));
  }
  parts_.info.step = parts_.state.step = manifest.step;
  parts_.info.restored_from = name;
  parts_.state.tokens_seen = manifest.tokens_seen;
  parts_.state.training_loss = manifest.losses.training;
  parts_.state.held_out_loss = manifest.losses.held_out;
  parts_.state.places = saved.places;
  parts_.state.since_arrival = saved.since_arrival;
  if (!parts_.trains()) return {};
  // A model from elsewhere has read none of this text: the loader stays at its beginning.
  if (manifest.loader_position.empty()) return history_restored();
  NS_ASSIGN_OR_RETURN(data::LoaderPosition position,
                      data::LoaderPosition::from_json(manifest.loader_position));
  // Saved before own shards had ids of their own.
  if (parts_.dataset->manifest().find(position.shard_id) == nullptr)
    position.shard_id |= data::first_own_shard;
  if (is_in_other_text(manifest, position)) {
    alerts_.push_back({LogLevel::Info, "checkpoint",
                       "The node that made the checkpoint was training on its own text, which is not here. "
                       "Training begins at the start of the text of this node."});
    return history_restored();
  }
  NS_RETURN_IF_ERROR(parts_.loader->restore(position));
  if (!is_part_) keep_micro_batch(saved, std::max(1u, manifest.micro_batch));
  return history_restored();
}

// The number of an own shard means another text on each node of a network. Without a network, a tokenizer is made
// from the text, so an equal tokenizer means an equal text: a backup goes on where it was.
bool ModelSetup::is_in_other_text(const checkpoint::Manifest& manifest,
                                  const data::LoaderPosition& position) const {
  if (manifest.origin.empty() || !position.started) return false;
  const data::Manifest& held = parts_.dataset->manifest();
  const bool is_here = held.find(position.shard_id) != nullptr ||
                       held.find(position.shard_id | data::first_own_shard) != nullptr;
  return !is_here || (consensus().inner_steps > 0 && data::is_own_shard(position.shard_id));
}

Expected<void> ModelSetup::history_restored() {
  const checkpoint::Catalogue catalogue(parts_.services.files, parts_.directory.checkpoints_path());
  const auto current = catalogue.current();
  parts_.history->restored(parts_.state.step, current.ok() && *current && (*current)->chosen);
  return {};
}

// The division into micro-batches affects the last bits of a sum, so it stays while memory allows, unless a
// person has changed the limits that it depends on.
void ModelSetup::keep_micro_batch(const TrainerState& saved, std::uint32_t micro_batch) {
  const bool same_limits = saved.memory_limit == parts_.state.memory_limit &&
                           saved.max_micro_batch == parts_.state.max_micro_batch;
  if (!same_limits) return;
  const std::uint32_t planned = parts_.memory.plan.micro_batch;
  if (micro_batch > planned) {
    alerts_.push_back(
        {LogLevel::Warning, "memory",
         fmt::format("Memory allows {} sequences at a time; this run had {}. Losses may differ in "
                     "the last digits.",
                     planned, micro_batch)});
  }
  parts_.info.micro_batch = std::min(micro_batch, planned);
}

Expected<void> ModelSetup::prepare_training() {
  parts_.schedule = {config::from_nano(consensus().peak_learning_rate_nano), consensus().warmup_steps,
                     consensus().decay_steps,
                     static_cast<double>(consensus().final_learning_rate_percent) / 100.0};
  NS_RETURN_IF_ERROR(train::validate(parts_.schedule));
  parts_.loop.emplace(*parts_.stage, parts_.services.clock, parts_.services.logger, parts_.info.micro_batch);
  parts_.loop->set_before_update([&parts = parts_] { parts.checkpoints->before_update(); });
  auto part = data::HeldOut::create(*parts_.dataset, static_cast<std::uint32_t>(consensus().sequence),
                                    settings().number(config::Setting::EvalTokens));
  if (part.ok()) {
    parts_.held_out.emplace(std::move(*part));
    if (has_publisher(parts_.directory)) {
      parts_.held_out_fetcher = make_thread_executor("shard-fetch", fetch_queue);
      parts_.held_out_fetch.emplace(*parts_.dataset, *parts_.held_out_fetcher);
    }
  } else if (part.error().code != ErrorCode::NotFound) {
    return std::move(part).error();
  }
  return {};
}

}  // namespace neuroshard::engine::detail
