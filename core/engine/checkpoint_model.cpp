#include "core/engine/checkpoint_model.h"

#include <fmt/format.h>

#include "core/platform/process/process_memory.h"

namespace neuroshard::engine {
namespace {

Expected<void> check(const checkpoint::Entry& entry) {
  if (!entry.complete()) return make_error(ErrorCode::Corrupt, entry.damage);
  if (entry.is_part())
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("the checkpoint {} has only a part of the model", entry.name));
  const std::uint64_t weights = 4 * compute::model_parameter_count(entry.manifest.architecture);
  const std::uint64_t available = platform::available_memory().available;
  if (weights < available) return {};
  return make_error(ErrorCode::Exhausted,
                    fmt::format("the model takes {} MiB, but only {} MiB of memory are free",
                                (weights >> 20) + 1, available >> 20));
}

}  // namespace

Expected<compute::StagePtr> open_checkpoint_model(storage::FileEnv& files, Logger& logger,
                                                  const checkpoint::Entry& entry,
                                                  const CheckpointModelOptions& options) {
  NS_RETURN_IF_ERROR(check(entry));
  NS_ASSIGN_OR_RETURN(const compute::LoadedModule loaded,
                      compute::load_module("cpu", options.module, logger));
  compute::StageSpec spec;
  spec.shape = entry.manifest.architecture;
  spec.layer_count = spec.shape.layers;
  spec.embed = spec.head = true;
  spec.trainable = false;
  NS_ASSIGN_OR_RETURN(compute::StagePtr stage, compute::make_stage(*loaded.module, spec));
  checkpoint::LoadRequest request;
  request.shape = spec.shape;
  request.slots = compute::model_slots(spec.shape);
  request.optimizer = false;
  request.target = [&](compute::SlotId id) -> Expected<checkpoint::SlotTarget> {
    for (std::uint32_t i = 0; i < stage->slot_count(); ++i) {
      const compute::SlotBuffers slot = stage->slot(i);
      if (slot.id == id) return checkpoint::SlotTarget{{slot.parameters, slot.count}, {}, {}};
    }
    return make_error(ErrorCode::Internal, "the stage has no slot " + compute::to_string(id));
  };
  NS_RETURN_IF_ERROR(checkpoint::load(files, entry, request, options.progress, options.cancel));
  stage->parameters_changed();
  return stage;
}

}  // namespace neuroshard::engine
