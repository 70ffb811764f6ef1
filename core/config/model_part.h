// The part of the model that a node holds, where the members of its network hold parts: `sync` of the profile is
// "parts=P" (rounds/sync.h). The setting `part` chooses one. Without it the network does, and the file D/part has the number of
// the present one; a node begins with one that follows from its id, or with the next one that its memory has room for.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/expected.h"
#include "core/compute/stage_range.h"
#include "core/config/data_directory.h"

namespace neuroshard::config {

// In order, of the model's present size; empty: every member holds the whole model. The first size is cut into parts of about
// the same size. In a larger one each part continues the same part of the size before it: slots never change their part when the
// model grows or shrinks (compute::grown_from).
std::vector<compute::StageRange> model_parts(const ConsensusPart& consensus);

struct ModelPart {
  std::uint32_t index = 0;  // the row of the chain
  std::uint32_t count = 1;  // P
  compute::StageRange range;
  bool follows_plan = false;  // the network chooses it, and may choose another later
  bool drawn = false;         // by the node's id: no part was kept yet
};
// Nothing: every member holds the whole model. InvalidArgument: the setting names none of the network's parts; the message
// lists them.
Expected<std::optional<ModelPart>> own_part(const DataDirectory& directory, storage::FileEnv& files);
// planned: where the settings name no part; its remainder by the number of parts counts.
Expected<std::optional<ModelPart>> own_part(const ConsensusPart& consensus, const Settings& settings,
                                            std::uint32_t planned);
// The part that the network has chosen for this node, or the first one that it made a model of. Errors: those of writing.
Expected<void> keep_part(const DataDirectory& directory, storage::FileEnv& files, std::uint32_t index);
// The first part that fits, from the one of this index on and around. fitting: by part. Nothing: none fits.
std::optional<std::uint32_t> next_fitting(const std::vector<bool>& fitting, std::uint32_t index);

// Sequences of a micro-batch in the network's pipeline, the same for all its members: they divide a batch, and together have
// some 1,024 tokens.
std::uint32_t pipeline_sequences(const ConsensusPart& consensus);
// Unfinished micro-batches of one driver: those of all drivers that share a node keep all parts at work. members: that drive;
// holders: of the part that has the fewest, at least 1.
std::uint32_t pipeline_window(std::size_t parts, std::size_t members, std::size_t holders);
// Micro-batches that the part of this index has passed on and not got back, while all parts are at work.
std::uint32_t pipeline_depth(std::size_t parts, std::size_t index);
// Bytes of micro-batches that a node keeps beside the model, with such windows and bf16 between the parts.
std::uint64_t pipeline_bytes(const ConsensusPart& consensus);
// Of those, what the holder of a part has at most: the micro-batches of a step that it passed on, and the results that it
// keeps for a driver that asks again. The first part answers without rows, and of what waits for its next step it has the
// tokens only.
std::uint64_t part_payload_bytes(const ConsensusPart& consensus, const compute::StageRange& range);

}  // namespace neuroshard::config
