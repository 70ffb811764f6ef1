// Checks of a stage's calls, before anything is done. Each returns the problem, for a person, or success.
#pragma once

#include "core/compute/stage.h"

namespace neuroshard::model {

compute::Status check_spec(const compute::StageSpec& spec);
// A valid spec for a stage that is changed: of the model that the stage is of.
compute::Status check_same_model(const compute::StageSpec& spec, const compute::ModelShape& shape,
                                 const compute::RouterOptions& router, bool trainable);
// A bad number in a step would go into every parameter and can't be taken back.
compute::Status check_step(const compute::StepOptions& options);

}  // namespace neuroshard::model
