// The computation graph of a TorchScript model that the compute module has opened (core/compute/script.h).
#pragma once

#include "core/compute/script.h"
#include "core/partition/graph/machine_model.h"

namespace neuroshard::partition {

// Node i is the model's node i; work in milliseconds.
//   machine null: as it was measured, with one thread on this machine
//   else: from operations and bytes on that machine; of control flow, which has no such counts, the measured
//   time. Arguments and further outputs of a node take no time.
// Errors: what validate() finds; a machine whose numbers make no sense (InvalidArgument).
Expected<ComputationGraph> import_script(const compute::ScriptModel& model, const MachineModel* machine);

// The total cost of all nodes, as far as it can be counted.
OperationCost script_total(const compute::ScriptModel& model);

}  // namespace neuroshard::partition
