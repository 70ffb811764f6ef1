#include "core/engine/training_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "core/checkpoint/tensors.h"
#include "core/compute/slot.h"
#include "core/pipeline/stage_schedule.h"
#include "core/platform/process/heap.h"
#include "core/platform/process/process_memory.h"
#include "core/storage/file_env.h"

namespace neuroshard::engine {
namespace {

constexpr std::uint64_t mib = 1u << 20;
// The baseline is rounded up to this, so that two runs of the same program have the same plan although
// slightly different pages of its libraries are loaded.
constexpr std::uint64_t baseline_grain = 32 * mib;
// Pages of libraries that the first step loads, database, tokenizer, threads' stacks.
constexpr std::uint64_t margin = 96 * mib;
// Of a checkpoint's copy of weights and moments.
constexpr std::uint64_t most_copied_in_memory = 128 * mib;
// A process with a compute module and no model, as measured.
constexpr std::uint64_t module_resident = 190 * mib;
constexpr std::uint64_t no_limit_allows = std::numeric_limits<std::uint64_t>::max();
// One file's buffers while a checkpoint is written from the spool.
constexpr std::uint64_t write_buffer = 16 * mib;
// Without a user's limit: the machine's free memory, less the share for other programs.
constexpr double share_of_free = 0.9;

// Of a contribution, while a round's deltas are combined: one slice of its values and windows of its payload
// (outer/aggregate.h).
constexpr std::uint64_t decoded_bytes = 512u << 10;
constexpr std::uint64_t contributors_at_once = 16;
// Slices of weights, deltas and anchors on the training's, the rounds' and the disk's thread.
constexpr std::uint64_t round_slices = 8 * mib;
// Of the top-k codec (outer/codec.h), per parameter: the selection, and the payload.
constexpr double selected_bytes = 6.0 * 64 / 4096 + 0.02;
// A fragment's items in the spool. Payloads of the round and of the one before; the aggregate, the weights of the
// boundary and the buffer of error feedback; two anchors with their momentum and the next one.
constexpr std::uint64_t payloads_held = 2 * contributors_at_once;
constexpr std::uint64_t values_held = 3, states_held = 3;

std::uint64_t round_up(std::uint64_t bytes, std::uint64_t grain) {
  return (bytes + grain - 1) / grain * grain;
}

// Bytes that the process may use: the user's limit, and at most the existing memory.
Expected<std::uint64_t> limit_in_force(std::uint64_t user_limit, std::uint64_t resident) {
  const platform::AvailableMemory free = platform::available_memory();
  if (free.total == 0) {
    if (user_limit > 0) return user_limit;
    return make_error(
        ErrorCode::Unavailable,
        "This system does not say how much memory is free. Set a limit, e.g. --memory-limit 2GiB.");
  }
  const auto usable =
      resident + static_cast<std::uint64_t>(share_of_free * static_cast<double>(free.available));
  return user_limit == 0 ? usable : std::min(user_limit, usable);
}

compute::StageSpec spec_of(const TrainingMemoryRequest& request) {
  compute::StageSpec spec;
  spec.shape = request.shape;
  spec.first_layer = request.range.first_layer;
  spec.layer_count = request.range.layer_count;
  spec.embed = request.range.embed;
  spec.head = request.range.head;
  spec.trainable = request.training;
  return spec;
}

// Of one sequence of a whole model, or of one micro-batch of a stage in a pipeline. There, the gradients of weights come later, so
// the factors of those are kept, and take the place of the activations. Returns how many of them there are at most.
std::uint32_t add_activations(const TrainingMemoryRequest& request, const compute::StageSpec& spec,
                              train::MemoryNeeds& needs) {
  const std::uint32_t sequence = request.shape.sequence;
  const std::uint32_t allowed = std::max(1u, request.max_micro_batch);
  needs.workspace = compute::estimate_workspace_bytes(spec, request.precision, sequence, request.threads);
  if (request.range == compute::whole_range(request.shape)) {
    needs.activation_per_sample =
        compute::estimate_activation_bytes_per_sample(spec, request.precision, sequence);
    return std::clamp(request.sequences_per_step, 1u, allowed);
  }
  const compute::PipelineEstimate bytes = compute::estimate_pipeline_bytes(
      spec, request.precision, std::uint64_t{request.sequences_together} * sequence);
  needs.workspace += bytes.passing;
  needs.activation_per_sample = bytes.kept;
  needs.deferred_per_sample = bytes.deferred - std::min(bytes.kept, bytes.deferred);
  needs.most_deferred = pipeline::default_most_due;
  const std::uint32_t of_step = std::max(1u, request.sequences_per_step / request.sequences_together);
  // The head computes both passes in one go: what it holds waits for the weights' gradients.
  return std::min({allowed, of_step, spec.head ? pipeline::default_most_due : of_step});
}

// The needs, and the micro-batches that the process would hold with memory for all.
struct Wanted {
  train::MemoryNeeds needs;
  std::uint32_t most = 1;
};

// resident: of the process before the model.
Wanted needs_of(const TrainingMemoryRequest& request, std::uint64_t resident) {
  const compute::StageSpec spec = spec_of(request);
  const compute::MemoryEstimate model = compute::estimate_memory(spec, request.precision);
  Wanted wanted;
  train::MemoryNeeds& needs = wanted.needs;
  needs.baseline = round_up(resident, baseline_grain);
  needs.parameters = model.parameters + model.packed;
  needs.gradients = model.gradients;
  needs.moments = model.moments;
  needs.data = request.data_bytes + request.outer_bytes;
  needs.margin = margin;
  wanted.most = add_activations(request, spec, needs);
  if (!request.training) return wanted;
  const std::vector<compute::SlotId> slots = compute::slots_of(request.shape, request.range);
  const std::uint64_t copy = checkpoint::Snapshot::bytes_for(request.shape, slots);
  // A larger one is in the spool: its 12 bytes a parameter would be more than weights and gradients.
  needs.snapshot_whole = copy <= most_copied_in_memory ? copy + storage::large_file_buffer : no_limit_allows;
  needs.snapshot_slot = write_buffer;
  return wanted;
}

}  // namespace

std::uint64_t outer_round_bytes(const RoundShape& shape) {
  const std::uint64_t fragment = std::max<std::uint64_t>(1, shape.parameters / shape.fragments);
  std::uint64_t left = round_spool_memory;
  // An item that is larger than what is left goes to the disk. Small ones leave the least.
  for (const auto& [held, bytes] : {std::pair{payloads_held, outer::max_payload_bytes(shape.codec, fragment)},
                                    std::pair{values_held, fragment * sizeof(float)},
                                    std::pair{states_held, 2 * fragment * sizeof(float)}})
    left -= std::min(held * shape.fragments, left / std::max<std::uint64_t>(1, bytes)) * bytes;
  const std::uint64_t selection =
      shape.error_feedback ? static_cast<std::uint64_t>(selected_bytes * static_cast<double>(fragment)) : 0;
  return round_spool_memory - left + contributors_at_once * decoded_bytes + round_slices + selection;
}

Expected<TrainingMemory> plan_training_memory(const TrainingMemoryRequest& request) {
  platform::trim_heap();
  const std::uint64_t resident = platform::process_memory().resident.value_or(0);
  NS_ASSIGN_OR_RETURN(const std::uint64_t limit, limit_in_force(request.user_limit, resident));
  const Wanted wanted = needs_of(request, std::max(resident, request.least_resident));
  const train::MemoryNeeds& needs = wanted.needs;
  TrainingMemory memory;
  NS_ASSIGN_OR_RETURN(memory.plan, train::plan_memory(needs, limit, wanted.most));
  const std::uint64_t outside = needs.baseline + needs.data + needs.margin +
                                (memory.plan.whole_snapshot ? needs.snapshot_whole : needs.snapshot_slot);
  memory.tensor_bytes = limit - outside;
  const std::uint64_t activations = train::activation_bytes(needs, memory.plan.micro_batch);
  memory.spare_bytes = (memory.plan.available - std::min(activations, memory.plan.available)) / 2;
  memory.needs = needs;
  memory.sequences_together = request.sequences_together;
  return memory;
}

Expected<std::uint32_t> plan_micro_batch(const TrainingMemory& memory, std::uint64_t user_limit,
                                         std::uint32_t most) {
  const std::uint64_t resident = platform::process_memory().resident.value_or(0);
  NS_ASSIGN_OR_RETURN(const std::uint64_t limit, limit_in_force(user_limit, resident));
  NS_ASSIGN_OR_RETURN(const train::MemoryPlan plan, train::plan_memory(memory.needs, limit, most));
  return plan.micro_batch;
}

std::uint64_t unlimited_training_bytes(const TrainingMemoryRequest& request) {
  const Wanted wanted = needs_of(request, module_resident);
  const train::MemoryNeeds& needs = wanted.needs;
  const std::uint64_t copy =
      needs.snapshot_whole == no_limit_allows ? needs.snapshot_slot : needs.snapshot_whole;
  return needs.baseline + needs.parameters + needs.gradients + needs.moments + needs.data + needs.workspace +
         copy + train::activation_bytes(needs, wanted.most) + needs.margin;
}

std::string TrainingMemory::describe() const {
  const std::uint64_t model = needs.parameters + needs.gradients + needs.moments;
  const std::uint64_t copy = plan.whole_snapshot ? needs.snapshot_whole : needs.snapshot_slot;
  const std::uint64_t step = needs.workspace + train::activation_bytes(needs, plan.micro_batch);
  return fmt::format(
      "the memory plan expects {} MiB at the peak: program {}, model and optimizer {}, checkpoint {}, text "
      "and "
      "rounds {}, {} sequences at a time {}. It keeps {} MiB free below the limit of {} MiB",
      plan.expected / mib, needs.baseline / mib, model / mib, copy / mib, needs.data / mib,
      plan.micro_batch * sequences_together, step / mib, needs.margin / mib, plan.limit / mib);
}

std::uint32_t MemoryWatch::check(std::uint32_t micro_batch, std::optional<std::string>* note) {
  note->reset();
  if (limit_ == 0) return micro_batch;
  const auto resident = [] { return platform::process_memory().resident.value_or(0); };
  if (resident() <= limit_) return micro_batch;
  platform::trim_heap();
  const std::uint64_t now = resident();
  if (now <= limit_) return micro_batch;
  if (micro_batch > 1) {
    *note = fmt::format(
        "The program uses {} of at most {} MiB: it continues with {} sequences at a time instead of {}.",
        now / mib, limit_ / mib, micro_batch / 2, micro_batch);
    return micro_batch / 2;
  }
  if (!told_) {
    told_ = true;
    *note = fmt::format(
        "The program uses {} of at most {} MiB, and one sequence at a time is the minimum. Raise the "
        "memory limit or train a smaller model.",
        now / mib, limit_ / mib);
  }
  return micro_batch;
}

}  // namespace neuroshard::engine
