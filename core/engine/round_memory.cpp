#include "core/engine/round_memory.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "core/crypto/hash.h"

namespace neuroshard::engine {
namespace {

constexpr std::string_view magic("NSRLRN1\0", 8);
constexpr std::size_t round_at = 8, anchor_at = 16, steps_at = 48, tokens_at = 52, payload_at = 60,
                      values_at = 68, head = 76;
constexpr std::size_t hashed_at_once = 1u << 20;

Expected<Hash256> hash_of(const ByteSource& bytes) {
  crypto::Sha256 hash;
  NS_RETURN_IF_ERROR(
      read_in_parts(bytes, hashed_at_once, [&](std::uint64_t, ByteSpan part) -> Expected<void> {
        hash.update(part);
        return {};
      }));
  return hash.finish();
}

}  // namespace

Expected<ByteSourcePtr> encode_round_memory(const RoundMemory& memory) {
  Bytes bytes(magic.begin(), magic.end());
  append_le(bytes, memory.round);
  bytes.insert(bytes.end(), memory.anchor.begin(), memory.anchor.end());
  append_le(bytes, memory.work.steps);
  append_le(bytes, memory.work.tokens);
  append_le(bytes, memory.payload->size());
  append_le(bytes, memory.buffer->size() / sizeof(float));
  std::vector<ByteSourcePtr> parts = {in_memory(std::move(bytes)), memory.payload, memory.buffer};
  NS_ASSIGN_OR_RETURN(const Hash256 hash, hash_of(*joined(parts)));
  parts.push_back(in_memory(Bytes(hash.begin(), hash.end())));
  return joined(std::move(parts));
}

Expected<RoundMemory> decode_round_memory(const ByteSourcePtr& bytes) {
  const Error damaged = make_error(ErrorCode::Corrupt,
                                   "this node's record of its last contribution is damaged and is not used");
  if (bytes->size() < head + sizeof(Hash256)) return damaged;
  Bytes first(head);
  NS_RETURN_IF_ERROR(bytes->read_at(0, first));
  if (as_text(ByteSpan(first).first(magic.size())) != magic) return damaged;
  const auto payload = load_le<std::uint64_t>(first.data() + payload_at);
  const auto values = load_le<std::uint64_t>(first.data() + values_at);
  const std::uint64_t all = bytes->size() - sizeof(Hash256), rest = all - head;
  if (payload > rest || (rest - payload) % sizeof(float) != 0 || (rest - payload) / sizeof(float) != values)
    return damaged;
  Hash256 kept{};
  NS_RETURN_IF_ERROR(bytes->read_at(all, {kept.data(), kept.size()}));
  NS_ASSIGN_OR_RETURN(const Hash256 hash, hash_of(*part_of(bytes, 0, all)));
  if (hash != kept) return damaged;
  RoundMemory memory;
  memory.round = load_le<std::uint64_t>(first.data() + round_at);
  std::copy_n(first.begin() + anchor_at, memory.anchor.size(), memory.anchor.begin());
  memory.work.steps = load_le<std::uint32_t>(first.data() + steps_at);
  memory.work.tokens = load_le<std::uint64_t>(first.data() + tokens_at);
  memory.payload = part_of(bytes, head, payload);
  memory.buffer = part_of(bytes, head + payload, rest - payload);
  return memory;
}

}  // namespace neuroshard::engine
