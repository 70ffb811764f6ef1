// The memory that a member of a network takes for the model, or for its part of it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/compute/stage_range.h"
#include "core/config/network_profile.h"
#include "core/engine/training_memory.h"

namespace neuroshard::engine {

// All that follows from the profile: the shape, a step's sequences, the micro-batches of a pipeline, and the outer rounds. range: one of
// config::model_parts(), or the whole model. The rest is the node's own.
TrainingMemoryRequest memory_request(const config::ConsensusPart& consensus, const compute::StageRange& range,
                                     bool in_rounds);

// Bytes that a node needs which holds the range in rounds, in fp32 on one thread, with the plan's margin: with all micro-batches that a
// pipeline gives it to hold, or with one sequence of a whole model. Pure.
std::uint64_t member_bytes(const config::ConsensusPart& consensus, const compute::StageRange& range);

// That of each part, in order, for the model's present size; of a network of whole models, one number.
std::vector<std::uint64_t> part_bytes(const config::ConsensusPart& consensus);
// The largest of them: a member with so much can hold any part.
std::uint64_t most_member_bytes(const config::ConsensusPart& consensus);

// The first size that `fits` denies: of the next larger one, and of those after it that need as much of a member. An offer is
// enough for all of these or for none. So a node whose offer follows from this one offers the same at each of them. Else the network
// would grow to one of them, and shrink again. Nothing: all have room, or there is no larger size.
std::optional<std::uint32_t> first_too_large(const config::ConsensusPart& consensus,
                                             const std::function<bool(std::uint32_t size)>& fits);

}  // namespace neuroshard::engine
