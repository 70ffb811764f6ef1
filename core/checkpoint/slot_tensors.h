// Some slots of a checkpoint that is elsewhere: which runs of its files they need, and a checkpoint of their
// own made of these runs once they are here, each in a file. Their hashes are checked by who fetched them.
#pragma once

#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/checkpoint/slot_index.h"
#include "core/checkpoint/writer.h"
#include "core/crypto/keys.h"
#include "core/storage/file_env.h"

namespace neuroshard::checkpoint {

// Of these slots, in the index's order: weights and moments, and the extra tensors with the header that names
// them. InvalidArgument names a slot that the index lacks.
Expected<std::vector<SlotRun>> runs_of_slots(const std::vector<SlotRun>& index,
                                             const std::vector<compute::SlotId>& slots);

// "weights-layer-3", "optimizer-header".
std::string run_file_name(const SlotRun& run);

// A folder below `root`, made when missing, to be imported (Writer::adopt): the manifest is `source` with
// these slots only, signed by `key`, and says where they came from.  runs: of runs_of_slots, with a file each
// in `folder`; all of them are in memory at a time. Errors: Corrupt, those of Writer::save.
Expected<SaveResult> make_part(storage::FileEnv& env, const crypto::KeyPair& key, Manifest source,
                               const std::string& source_name, const std::vector<SlotRun>& runs,
                               const std::string& folder, const std::string& root);

}  // namespace neuroshard::checkpoint
