// A TorchScript graph cut into blocks: which values cross between them, and each block as a graph of its own.
#pragma once

#include <vector>

#include "core/model/script_graph.h"
#include "core/model/script_units.h"

namespace neuroshard::model {

struct ScriptCutLink {
  std::uint32_t from = 0, to = 0;  // blocks, or compute::script_driver
  ScriptValues values;             // what one message holds, in order
};

struct ScriptCut {
  // Ordered by sender (the driver first), then receiver (the driver last). A block that nothing is sent to
  // has a link of no values from the driver, whose messages start its micro-batches.
  std::vector<ScriptCutLink> links;
  std::vector<ScriptNodes> contents;  // operations per block
  std::vector<ScriptGraph> blocks;    // arguments: what the links bring, in their order; results likewise
};

// block_of per node of `units`. Throws ScriptError (InvalidArgument) when the assignment is no pipeline or
// divides what must share a block.
ScriptCut cut_script(const ScriptStructure& structure, const ScriptUnits& units,
                     Span<const std::uint32_t> block_of, std::uint32_t blocks);

}  // namespace neuroshard::model
