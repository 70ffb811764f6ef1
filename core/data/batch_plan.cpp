#include "core/data/batch_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "core/base/rng.h"
#include "core/crypto/hash.h"

namespace neuroshard::data {
namespace {

constexpr std::string_view record_tag = "neuroshard/batch/1";
constexpr std::string_view driver_record_tag = "neuroshard/batch/2";
constexpr std::string_view drawn_record_tag = "neuroshard/batch/3";
constexpr std::string_view network_tag = "neuroshard/shard-order/1";
constexpr std::string_view solo_tag = "neuroshard/solo-shard/1";

Bytes little_endian(std::uint64_t value) {
  Bytes bytes;
  append_le(bytes, value);
  return bytes;
}

// The first eight bytes decide: with at most 2^32 shards their bias is below 2^-32.
std::uint32_t modulo(const Hash256& hash, std::uint32_t total) {
  return static_cast<std::uint32_t>(load_le<std::uint64_t>(hash.data()) % total);
}

}  // namespace

std::vector<std::uint32_t> network_shard_order(const Hash256& beacon, const Hash256& node_id,
                                               std::uint32_t total, std::uint32_t count) {
  NS_CHECK(total >= 1);
  const std::uint32_t wanted = std::min(total, count);
  std::vector<std::uint32_t> order;
  std::unordered_set<std::uint32_t> seen;
  for (std::uint64_t counter = 0; order.size() < wanted; ++counter) {
    const Hash256 hash = crypto::Sha256()
                             .update(network_tag)
                             .update(beacon)
                             .update(node_id)
                             .update(little_endian(counter))
                             .finish();
    const std::uint32_t position = modulo(hash, total);
    if (seen.insert(position).second) order.push_back(position);
  }
  return order;
}

std::uint32_t solo_first_shard(const Hash256& node_id, std::uint32_t total) {
  NS_CHECK(total >= 1);
  return modulo(crypto::Sha256().update(solo_tag).update(node_id).finish(), total);
}

std::vector<ShardEntry> published_shards(const std::vector<ShardEntry>& train, std::uint32_t sequence) {
  std::vector<ShardEntry> shards;
  for (const ShardEntry& shard : train)
    if (!is_own_shard(shard.id) && shard.tokens > sequence) shards.push_back(shard);
  return shards;
}

Bytes BatchRecord::canonical() const {
  NS_CHECK(driver || !draw);
  const std::string_view tag = draw ? drawn_record_tag : driver ? driver_record_tag : record_tag;
  Bytes bytes(tag.begin(), tag.end());
  append_le(bytes, round);
  if (draw) {
    append_le(bytes, draw->round);
    append_le(bytes, draw->total);
  }
  append_le(bytes, shard_id);
  bytes.insert(bytes.end(), shard_hash.begin(), shard_hash.end());
  bytes.insert(bytes.end(), tokenizer_hash.begin(), tokenizer_hash.end());
  append_le(bytes, offset);
  append_le(bytes, batch_tokens);
  if (driver) bytes.insert(bytes.end(), driver->begin(), driver->end());
  return bytes;
}

std::uint32_t sequences_per_batch(std::uint32_t batch_tokens, std::uint32_t sequence) {
  NS_CHECK(sequence >= 1);
  return std::max(1u, batch_tokens / sequence);
}

Expected<std::vector<std::uint64_t>> batch_starts(const BatchRecord& record, std::uint64_t step,
                                                  std::uint64_t shard_tokens, std::uint32_t sequence) {
  NS_CHECK(sequence >= 1);
  if (shard_tokens <= sequence) {
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("shard {} has {} tokens; a sequence of {} needs at least {}",
                                  record.shard_id, shard_tokens, sequence, std::uint64_t{sequence} + 1));
  }
  Rng rng(crypto::Sha256().update(record.canonical()).update(little_endian(step)).finish());
  std::vector<std::uint64_t> starts(sequences_per_batch(record.batch_tokens, sequence));
  for (std::uint64_t& start : starts) start = rng.below(shard_tokens - sequence);
  return starts;
}

Expected<Batch> make_batch(const BatchRecord& record, std::uint64_t step, Span<const std::int32_t> shard,
                           std::uint32_t sequence) {
  NS_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> starts,
                      batch_starts(record, step, shard.size(), sequence));
  Batch batch;
  batch.sequences = static_cast<std::uint32_t>(starts.size());
  batch.sequence_length = sequence;
  batch.shard_id = record.shard_id;
  batch.tokens.reserve(starts.size() * sequence);
  batch.targets.reserve(starts.size() * sequence);
  for (const std::uint64_t start : starts) {
    const std::int32_t* from = shard.data() + start;
    batch.tokens.insert(batch.tokens.end(), from, from + sequence);
    batch.targets.insert(batch.targets.end(), from + 1, from + 1 + sequence);
  }
  return batch;
}

}  // namespace neuroshard::data
