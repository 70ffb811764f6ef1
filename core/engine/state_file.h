// The file of one outer state.
//
//   "NSRSTATE" · round u64 · weights u64 · bias u64 · bytes of the certificate u64 · weights, momentum,
//   bias fp32 little-endian · certificate · SHA-256 of all before
//
// The format before the chain had the round's certificate in the file; now that part is empty.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <string>

#include "core/rounds/step.h"
#include "core/storage/file_env.h"

namespace neuroshard::engine {

struct StateFile {
  std::uint64_t round = 0;
  rounds::Anchor state;
  Bytes certificate;
};
// Reads the file once; the state stays in it, also when another file takes its name.
// NotFound: none yet. InvalidArgument: of another model. Corrupt: damaged.
Expected<StateFile> read_state_file(storage::FileEnv& files, const std::string& path, std::uint64_t values,
                                    std::uint64_t bias);
// Replaces the file as a whole; its name is durable once the caller has synced the folder.
Expected<void> write_state_file(storage::FileEnv& files, const std::string& path, const StateFile& file);

}  // namespace neuroshard::engine
