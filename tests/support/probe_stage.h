// The model of a checkpoint, for programs that compare or measure it.
#pragma once

#include <string>
#include <utility>

#include "core/base/log.h"
#include "core/checkpoint/loader.h"
#include "core/compute/module.h"

namespace neuroshard::testing {

// A stage with the whole model and without training buffers. The module's options are those of the first call.
inline Expected<compute::StagePtr> load_probe_stage(storage::FileEnv& files, const checkpoint::Entry& entry,
                                                    const compute::ModuleOptions& options = {}) {
  static NullLogger logger;
  NS_ASSIGN_OR_RETURN(const compute::LoadedModule loaded, compute::load_module("cpu", options, logger));
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
    return make_error(ErrorCode::NotFound, "the stage has no such slot");
  };
  NS_RETURN_IF_ERROR(checkpoint::load(files, entry, request));
  stage->parameters_changed();
  return stage;
}

}  // namespace neuroshard::testing
