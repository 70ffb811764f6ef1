#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/base/check.h"
#include "core/crypto/hash.h"
#include "core/engine/detail/training_session_impl.h"
#include "core/engine/training_data.h"
#include "core/platform/process/heap.h"

namespace neuroshard::engine::detail {
namespace {

// One shard is fetched ahead at a time.
constexpr std::size_t fetch_queue = 4;

void report(const PrepareOptions& options, PrepareProgress::Phase phase, std::uint64_t done,
            std::uint64_t total) {
  if (options.on_progress) options.on_progress({phase, done, total});
}

compute::Precision precision_of(const compute::ModuleInfo& info) {
  return std::strcmp(info.precision, "bf16") == 0 ? compute::Precision::Bf16 : compute::Precision::Fp32;
}

void put_text(char* target, std::size_t capacity, const std::string& text) {
  const std::size_t length = std::min(text.size(), capacity - 1);
  std::memcpy(target, text.data(), length);
  target[length] = '\0';
}

// Initial weights are a pure function of network and architecture: every node begins with the same bits.
Hash256 initial_seed(const Hash256& network_id, std::uint32_t architecture_version) {
  Bytes version;
  append_le(version, architecture_version);
  return crypto::Sha256().update("neuroshard/init/v1").update(network_id).update(version).finish();
}

Error cancelled() {
  return make_error(ErrorCode::Cancelled, "The preparation was asked to stop.");
}

}  // namespace

Expected<SessionInfo> SessionImpl::prepare(const PrepareOptions& options) {
  NS_CHECK(!prepared_);
  mode_ = options.mode;
  platform::keep_heap_small();
  NS_RETURN_IF_ERROR(prepare_text(options));
  if (options.cancel.cancelled()) return cancelled();
  NS_RETURN_IF_ERROR(load_compute(options));
  NS_RETURN_IF_ERROR(make_model(options));
  NS_RETURN_IF_ERROR(restore(options));
  if (trains()) NS_RETURN_IF_ERROR(prepare_training());
  platform::trim_heap();
  prepared_ = true;
  for (const SessionAlert& alert : waiting_alerts_) {
    services_.logger.write({alert.level, alert.category, alert.text});
    history_->log(alert.level, alert.category, alert.text);
  }
  history_->log(LogLevel::Info, "train",
                info_.restored_from.empty() ? std::string("A new model begins.")
                                            : fmt::format("Continues after step {} from checkpoint {}.",
                                                          info_.step, info_.restored_from));
  return info_;
}

Expected<void> SessionImpl::prepare_text(const PrepareOptions& options) {
  if (!options.text.empty() && trains()) {
    NS_ASSIGN_OR_RETURN(const data::ImportResult result,
                        import_training_text(directory_, services_, options));
    info_.files_added = result.files_added;
    info_.tokenizer_learned = result.tokenizer_learned;
    if (result.changed()) {
      history_->log(
          LogLevel::Info, "data",
          fmt::format("Added {} of text, {} tokens to train on.",
                      result.files_added == 1 ? "one file" : fmt::format("{} files", result.files_added),
                      result.train_tokens_added));
    }
    platform::trim_heap();
  }
  NS_ASSIGN_OR_RETURN(dataset_, open_training_data(directory_, services_, options.cancel));
  state_.tokenizer_hash = dataset_->manifest().tokenizer_hash;
  info_.vocabulary = dataset_->tokenizer().vocab_size();
  const std::uint64_t rows = directory_.profile().consensus.vocab;
  if (info_.vocabulary > rows) {
    return make_error(
        ErrorCode::InvalidArgument,
        fmt::format("The tokenizer has {} tokens and the model of this network takes {}. Use the data of "
                    "this network, or another data directory with --data-dir.",
                    info_.vocabulary, rows));
  }
  if (!trains()) return {};
  for (const data::ShardEntry& shard : dataset_->shards(data::Split::Train))
    info_.train_tokens += shard.tokens;
  for (const data::ShardEntry& shard : dataset_->shards(data::Split::HeldOut))
    info_.held_out_tokens += shard.tokens;
  fetcher_ = make_thread_executor("shard-fetch", fetch_queue);
  NS_ASSIGN_OR_RETURN(loader_, data::Loader::create(*dataset_, loader_options(directory_), fetcher_.get()));
  return {};
}

TrainingMemoryRequest SessionImpl::memory_request() const {
  const config::ConsensusPart& consensus = directory_.profile().consensus;
  const config::Settings& settings = directory_.settings();
  TrainingMemoryRequest request;
  request.shape = config::model_shape(consensus);
  request.precision = precision_of(module_.info);
  request.training = trains();
  request.data_bytes = trains() ? training_data_bytes(*dataset_) : 0;
  request.user_limit = settings.number(config::Setting::MemoryLimit);
  request.max_micro_batch = static_cast<std::uint32_t>(settings.number(config::Setting::MaxMicroBatch));
  request.sequences_per_step = data::sequences_per_batch(static_cast<std::uint32_t>(consensus.batch_tokens),
                                                         static_cast<std::uint32_t>(consensus.sequence));
  request.threads = thread_limit(directory_);
  if (trains() && services_.rounds)
    request.outer_bytes = outer_round_bytes(compute::model_parameter_count(request.shape),
                                            config::is_sparse(directory_.profile().consensus));
  return request;
}

Expected<void> SessionImpl::load_compute(const PrepareOptions& options) {
  report(options, PrepareProgress::Phase::LoadingCompute, 0, 0);
  const config::Settings& settings = directory_.settings();
  if (TrainingMemoryRequest request = memory_request(); request.user_limit > 0) {
    // The module alone may be more than the user allows: then it must not be loaded at all.
    request.least_resident = with_module_bytes;
    NS_RETURN_IF_ERROR(compute::validate(request.shape));
    NS_RETURN_IF_ERROR(plan_training_memory(request));
  }
  compute::ModuleOptions module;
  module.threads = thread_limit(directory_);
  put_text(module.device, sizeof module.device, settings.word(config::Setting::Device));
  put_text(module.precision, sizeof module.precision, settings.word(config::Setting::Precision));
  NS_ASSIGN_OR_RETURN(
      module_, services_.load_module(settings.word(config::Setting::Device), module, services_.logger));
  NS_RETURN_IF_ERROR(settle_precision(module));
  // A module that was loaded before keeps its first options.
  const compute::Status threads = module_.module->set_threads(module.threads);
  if (!threads.ok()) return compute::to_error(threads);
  module_.info = module_.module->info();
  info_.compute = module_.info;
  return {};
}

// bf16 keeps packed copies of the weights: where only fp32 fits into the memory limit, "auto" means fp32.
Expected<void> SessionImpl::settle_precision(compute::ModuleOptions options) {
  const config::Settings& settings = directory_.settings();
  module_.info = module_.module->info();
  if (settings.word(config::Setting::Precision) != "auto" ||
      precision_of(module_.info) == compute::Precision::Fp32)
    return {};
  if (plan_training_memory(memory_request()).ok()) return {};
  put_text(options.precision, sizeof options.precision, "fp32");
  NS_ASSIGN_OR_RETURN(
      module_, services_.load_module(settings.word(config::Setting::Device), options, services_.logger));
  return {};
}

Expected<void> SessionImpl::make_model(const PrepareOptions& options) {
  if (options.cancel.cancelled()) return cancelled();
  const config::ConsensusPart& consensus = directory_.profile().consensus;
  const config::Settings& settings = directory_.settings();
  info_.shape = config::model_shape(consensus);
  NS_RETURN_IF_ERROR(compute::validate(info_.shape));
  info_.parameters = compute::model_parameter_count(info_.shape);
  info_.active_parameters = compute::active_parameter_count(info_.shape);
  info_.sequences_per_step = data::sequences_per_batch(static_cast<std::uint32_t>(consensus.batch_tokens),
                                                       static_cast<std::uint32_t>(consensus.sequence));
  const TrainingMemoryRequest request = memory_request();
  NS_ASSIGN_OR_RETURN(memory_, plan_training_memory(request));
  info_.memory_limit = memory_.plan.limit;
  info_.micro_batch = memory_.plan.micro_batch;
  info_.memory_planned = memory_.plan.fixed + memory_.plan.available;
  memory_setting_ = request.user_limit;
  threads_setting_ = settings.number(config::Setting::CpuThreads);
  watch_.emplace(request.user_limit == 0 ? 0 : memory_.plan.limit);
  module_.module->set_memory_limit(memory_.tensor_bytes);

  compute::StageSpec spec;
  spec.shape = info_.shape;
  spec.router = config::router_options(consensus);
  spec.layer_count = info_.shape.layers;
  spec.embed = true;
  spec.head = true;
  spec.trainable = trains();
  NS_ASSIGN_OR_RETURN(stage_, compute::make_stage(*module_.module, spec));
  return {};
}

Expected<void> SessionImpl::restore(const PrepareOptions& options) {
  std::string name;
  const auto progress = [&options](std::uint64_t done, std::uint64_t total) {
    report(options, PrepareProgress::Phase::RestoringModel, done, total);
  };
  NS_ASSIGN_OR_RETURN(const auto manifest,
                      load_current_checkpoint(directory_, services_, info_.shape, *stage_, trains(), progress,
                                              &name, &waiting_alerts_));
  if (!manifest && !trains()) {
    return make_error(
        ErrorCode::NotFound,
        "There is no trained model in this data directory yet. Train one first: neuroshardd train --text "
        "PATH --steps 200.");
  }
  if (manifest) NS_RETURN_IF_ERROR(take_over(*manifest, name));
  if (!manifest) NS_RETURN_IF_ERROR(initialise(options));
  if (!trains()) return {};

  TrainingCheckpoints::Options keep;
  keep.copy_allowed = memory_.plan.whole_snapshot;
  keep.resumed = manifest;
  keep.resumed_name = name;
  keep.local_data_bytes = dataset_->manifest().total_bytes();
  NS_ASSIGN_OR_RETURN(checkpoints_,
                      TrainingCheckpoints::open(directory_, services_, info_.shape, *stage_, keep));
  return {};
}

Expected<void> SessionImpl::initialise(const PrepareOptions& options) {
  const Hash256 seed = initial_seed(directory_.network_id(), first_architecture_version);
  std::vector<float> values;
  for (std::uint32_t i = 0; i < stage_->slot_count(); ++i) {
    if (options.cancel.cancelled()) return cancelled();
    report(options, PrepareProgress::Phase::CreatingModel, i, stage_->slot_count());
    const compute::SlotBuffers slot = stage_->slot(i);
    if (slot.parameters != nullptr) {
      compute::initialise_slot(info_.shape, slot.id, seed, {slot.parameters, slot.count});
      continue;
    }
    values.resize(slot.count);
    compute::initialise_slot(info_.shape, slot.id, seed, values);
    const compute::Status status = stage_->copy_in(i, compute::SlotBuffer::Parameters, values.data());
    if (!status.ok()) return compute::to_error(status);
  }
  stage_->parameters_changed();
  // Charts of an earlier model, whose checkpoints are gone, would be mistaken for this one's.
  if (trains()) history_->restored(0, true);
  return {};
}

// Everything beside the tensors that the next step depends on.
Expected<void> SessionImpl::take_over(const checkpoint::Manifest& manifest, const std::string& name) {
  TrainerState saved;
  NS_RETURN_IF_ERROR(decode_trainer_state(manifest.trainer_state, &saved));
  if (saved.tokenizer_hash != state_.tokenizer_hash) {
    return make_error(
        ErrorCode::InvalidArgument,
        fmt::format("Checkpoint {} was trained with another tokenizer than this data directory has. Bring "
                    "that data back, or begin a new data directory with --data-dir.",
                    name));
  }
  info_.step = state_.step = manifest.step;
  info_.restored_from = name;
  state_.tokens_seen = manifest.tokens_seen;
  state_.training_loss = manifest.losses.training;
  state_.held_out_loss = manifest.losses.held_out;
  state_.places = saved.places;
  if (!trains()) return {};
  NS_ASSIGN_OR_RETURN(const data::LoaderPosition position,
                      data::LoaderPosition::from_json(manifest.loader_position));
  NS_RETURN_IF_ERROR(loader_->restore(position));
  // The cut into micro-batches decides the last bits of a sum, so it is kept while memory allows, unless a
  // person has changed the limits that it follows from.
  const config::Settings& settings = directory_.settings();
  const std::uint32_t kept = std::max(1u, manifest.micro_batch);
  const bool same_limits = saved.memory_limit == settings.number(config::Setting::MemoryLimit) &&
                           saved.max_micro_batch == settings.number(config::Setting::MaxMicroBatch);
  if (same_limits && kept > memory_.plan.micro_batch) {
    waiting_alerts_.push_back(
        {LogLevel::Warning, "memory",
         fmt::format("Memory allows {} sequences at a time; this run had {}. Losses may differ in "
                     "the last digits.",
                     memory_.plan.micro_batch, kept)});
  }
  if (same_limits) info_.micro_batch = std::min(kept, memory_.plan.micro_batch);
  const checkpoint::Catalogue catalogue(services_.files, directory_.checkpoints_path());
  const auto current = catalogue.current();
  history_->restored(state_.step, current.ok() && *current && (*current)->chosen);
  return {};
}

Expected<void> SessionImpl::prepare_training() {
  const config::ConsensusPart& consensus = directory_.profile().consensus;
  schedule_ = {config::from_nano(consensus.peak_learning_rate_nano), consensus.warmup_steps,
               consensus.decay_steps, static_cast<double>(consensus.final_learning_rate_percent) / 100.0};
  NS_RETURN_IF_ERROR(train::validate(schedule_));
  loop_.emplace(*stage_, services_.clock, services_.logger, info_.micro_batch);
  loop_->set_before_update([this] { checkpoints_->before_update(); });
  auto part = data::HeldOut::create(*dataset_, static_cast<std::uint32_t>(consensus.sequence),
                                    directory_.settings().number(config::Setting::EvalTokens));
  if (part.ok()) {
    held_out_part_.emplace(std::move(*part));
  } else if (part.error().code != ErrorCode::NotFound) {
    return std::move(part).error();
  }
  return {};
}

}  // namespace neuroshard::engine::detail
