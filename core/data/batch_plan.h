// Which shards a driver trains on, and which tokens make up each batch: pure functions of public values, so
// that any peer can rebuild any batch (docs/protocol/data.md). Nothing here reads a file or a clock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/base/span.h"
#include "core/data/manifest.h"

namespace neuroshard::data {

// The first `count` distinct values of SHA-256(beacon, node_id, counter) mod total, counter = 0, 1, …:
// positions in the list of published_shards(). Fewer when total < count. total ≥ 1.
std::vector<std::uint32_t> network_shard_order(const Hash256& beacon, const Hash256& node_id,
                                               std::uint32_t total, std::uint32_t count);
// Where a node without a network starts in the ring of its train shards: SHA-256(node_id) mod total. total
// ≥ 1.
std::uint32_t solo_first_shard(const Hash256& node_id, std::uint32_t total);

// Shards that a driver takes under one beacon: the `count` of network_shard_order().
inline constexpr std::uint32_t shards_per_draw = 8;
// The train shards that a beacon draws from: published ones that have a whole sequence; in their order.
std::vector<ShardEntry> published_shards(const std::vector<ShardEntry>& train, std::uint32_t sequence);

// The draw that gave a driver its shard.
struct ShardDraw {
  std::uint64_t round = 0;  // the network's round whose beacon drew
  // The first so many published_shards(): datasets grow at the end, so an auditor's newer manifest has them too.
  std::uint32_t total = 0;
  friend bool operator==(const ShardDraw&, const ShardDraw&) = default;
};

// Determines the batches that a driver makes from the start of a round on.
struct BatchRecord {
  std::uint64_t round = 0;  // with a draw: the network's; else the driver's own count
  ShardId shard_id = 0;
  Hash256 shard_hash{};
  Hash256 tokenizer_hash{};
  std::uint64_t offset = 0;  // tokens of the shard that this driver had consumed when the round began
  std::uint32_t batch_tokens = 0;
  // Its node id, in a network: two drivers of one shard draw batches of their own. None: solo.
  std::optional<Hash256> driver = std::nullopt;
  // Only with a driver.
  std::optional<ShardDraw> draw = std::nullopt;

  // Fixed layout, little-endian, behind the tag "neuroshard/batch/1" ("…/2" with a driver, which comes last;
  // "…/3" with a draw, which comes after the round): the bytes that seed the batches.
  Bytes canonical() const;
  friend bool operator==(const BatchRecord& a, const BatchRecord& b) {
    return a.canonical() == b.canonical();
  }
};

// One whole batch of S sequences of T tokens; the caller cuts it into micro-batches of whole sequences.
struct Batch {
  std::vector<std::int32_t> tokens;   // [S, T]
  std::vector<std::int32_t> targets;  // [S, T]: targets[s][t] is the token after tokens[s][t]
  std::uint32_t sequences = 0;        // S
  std::uint32_t sequence_length = 0;  // T
  ShardId shard_id = 0;
  std::string source;

  std::size_t token_count() const { return tokens.size(); }
};

// Sequences of a batch: batch_tokens / sequence, at least 1.
std::uint32_t sequences_per_batch(std::uint32_t batch_tokens, std::uint32_t sequence);

// Start positions in the shard: S draws of Rng(SHA-256(record.canonical(), step)).below(shard_tokens − T).
// InvalidArgument when the shard has fewer than T + 1 tokens.
Expected<std::vector<std::uint64_t>> batch_starts(const BatchRecord& record, std::uint64_t step,
                                                  std::uint64_t shard_tokens, std::uint32_t sequence);

// The batch of `step`: with a draw it counts from 0 within the record, else it is the driver's inner step.
// `shard` holds all of the shard's tokens.
Expected<Batch> make_batch(const BatchRecord& record, std::uint64_t step, Span<const std::int32_t> shard,
                           std::uint32_t sequence);

}  // namespace neuroshard::data
