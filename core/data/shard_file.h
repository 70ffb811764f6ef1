// Shards as files: written with their manifest entry, read with every promise of that entry checked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/expected.h"
#include "core/base/span.h"
#include "core/data/manifest.h"
#include "core/storage/file_env.h"

namespace neuroshard::data {

std::string shard_file_name(ShardId id);  // "shard_7.pt"
bool is_shard_file_name(std::string_view name);

// Writes DIRECTORY/shard_{id}.pt atomically and returns its entry.
Expected<ShardEntry> write_shard(storage::FileEnv& env, const std::string& directory, ShardId id,
                                 Span<const std::int32_t> tokens, const std::string& source, Split split);

// Reads a shard and checks size, SHA-256, number of tokens and that each is below vocab_size. Corrupt names
// the file and what is wrong; of a person's own text, an error says how to get the shard again.
Expected<std::vector<std::int32_t>> read_shard(storage::FileEnv& env, const std::string& path,
                                               const ShardEntry& entry, std::uint32_t vocab_size);

}  // namespace neuroshard::data
