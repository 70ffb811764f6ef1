// A checkpoint for elsewhere: its weights as one plain safetensors file with the public (Hugging Face) names,
// for other programs, or all of it as a folder, for another node.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/expected.h"
#include "core/checkpoint/catalogue.h"
#include "core/checkpoint/loader.h"
#include "core/storage/file_env.h"

namespace neuroshard::checkpoint {

// "neuroshard-{wallet}-{8 hex of the node}-step{step}.safetensors"
std::string export_file_name(const Manifest& manifest);

// Writes beside `path` first, so a file of that name is whole or absent; replaces an earlier one. Metadata
// (texts): format "pt" and neuroshard.{architecture (JSON), checkpoint, network_id, wallet, instance, step,
// tokens_seen, training_loss, held_out_loss}. The content is hashed on the way: a damaged checkpoint is never
// exported. Returns the bytes written. Errors: Corrupt, Denied, Exhausted, Io, Cancelled.
Expected<std::uint64_t> export_weights(storage::FileEnv& env, const Entry& entry, const std::string& path,
                                       const Progress& progress = {}, const CancelToken& cancel = {});

// All of a checkpoint as a new folder, which another data directory can import: the signed manifest and the
// files that it names, byte for byte, hashed on the way. The manifest comes last: a
// folder without it is no checkpoint. A failed export leaves nothing. Returns the bytes written. Errors: AlreadyExists, Corrupt, Denied, Exhausted, Io, Cancelled.
Expected<std::uint64_t> export_folder(storage::FileEnv& env, const Entry& entry, const std::string& path,
                                      const Progress& progress = {}, const CancelToken& cancel = {});

}  // namespace neuroshard::checkpoint
