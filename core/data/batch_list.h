// The batches behind a contribution: runs of consecutive batches with a chained digest, and the signed list of them
// whose SHA-256 is in the contribution (docs/protocol/data.md). Anybody who has the list and the published
// shards rebuilds every batch and compares.
//
// Canonical bytes, little-endian; decode checks sizes and no signature. Threads: any. Errors: Corrupt.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/crypto/keys.h"
#include "core/data/batch_plan.h"

namespace neuroshard::data {

// Batches first, first + 1, … of one record, whose driver is the list's node.
struct BatchRun {
  std::uint64_t round = 0;  // BatchRecord::round
  ShardDraw draw;
  ShardId shard_id = 0;
  Hash256 shard_hash{};
  std::uint64_t offset = 0;
  std::uint64_t first = 0;
  std::uint32_t count = 0;
  Hash256 digest{};  // next_digest() over all of them, from zeros on; of own text zeros, as the shard's hash
  friend bool operator==(const BatchRun&, const BatchRun&) = default;
};
inline constexpr std::size_t max_batch_runs = 256;
inline constexpr std::size_t batch_run_bytes = 8 + 8 + 4 + 4 + 32 + 8 + 8 + 4 + 32;

// SHA-256(before, SHA-256(tokens, targets)), both int32 little-endian.
Hash256 next_digest(const Hash256& before, const Batch& batch);

// In the order in which they were trained on.
Bytes encode_runs(const std::vector<BatchRun>& runs);
Expected<std::vector<BatchRun>> decode_runs(ByteSpan bytes);

// The batches that a driver has trained on, unsigned.
struct BatchWork {
  Hash256 tokenizer_hash{};
  std::uint32_t sequence = 0;
  std::uint32_t batch_tokens = 0;
  std::vector<BatchRun> runs;

  BatchRecord record(const BatchRun& run, const Hash256& driver) const;
  std::uint64_t batches() const;
  friend bool operator==(const BatchWork&, const BatchWork&) = default;
};
// Together in one list. A round has far fewer steps; an audit of a hostile list has an end.
inline constexpr std::uint64_t max_listed_batches = 1u << 20;
Bytes encode_batch_work(const BatchWork& work);
Expected<BatchWork> decode_batch_work(ByteSpan bytes);

struct BatchList {
  Hash256 network{};
  crypto::PublicKey node{};
  Hash256 opening{};  // the contribution's opening block
  std::uint64_t round = 0;
  BatchWork work;
  crypto::Signature signature{};  // purpose BatchRecord, by the node key
  friend bool operator==(const BatchList&, const BatchList&) = default;
};
inline constexpr std::size_t max_batch_list_bytes = 64u << 10;
void sign_batch_list(BatchList& list, const crypto::KeyPair& node);
bool batch_list_holds(const BatchList& list);
Bytes encode_batch_list(const BatchList& list);
Expected<BatchList> decode_batch_list(ByteSpan bytes);

}  // namespace neuroshard::data
