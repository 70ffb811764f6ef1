#include "core/engine/round_memory.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "core/crypto/hash.h"

namespace neuroshard::engine {
namespace {

constexpr std::string_view magic("NSRLRN1\0", 8);
constexpr std::size_t round_at = 8, anchor_at = 16, steps_at = 48, tokens_at = 52, payload_at = 60,
                      values_at = 68, head = 76;

}  // namespace

Bytes encode_round_memory(const RoundMemory& memory, Span<const float> buffer) {
  Bytes bytes;
  bytes.reserve(head + memory.payload.size() + buffer.size_bytes() + sizeof(Hash256));
  bytes.assign(magic.begin(), magic.end());
  append_le(bytes, memory.round);
  bytes.insert(bytes.end(), memory.anchor.begin(), memory.anchor.end());
  append_le(bytes, memory.work.steps);
  append_le(bytes, memory.work.tokens);
  append_le(bytes, static_cast<std::uint64_t>(memory.payload.size()));
  append_le(bytes, static_cast<std::uint64_t>(buffer.size()));
  bytes.insert(bytes.end(), memory.payload.begin(), memory.payload.end());
  const ByteSpan values = as_bytes(buffer);
  bytes.insert(bytes.end(), values.begin(), values.end());
  const Hash256 hash = crypto::sha256(bytes);
  bytes.insert(bytes.end(), hash.begin(), hash.end());
  return bytes;
}

Expected<RoundMemory> decode_round_memory(ByteSpan bytes) {
  const Error damaged = make_error(ErrorCode::Corrupt,
                                   "this node's record of its last contribution is damaged and is not used");
  if (bytes.size() < head + sizeof(Hash256) || as_text(bytes.first(magic.size())) != magic) return damaged;
  const ByteSpan all = bytes.first(bytes.size() - sizeof(Hash256));
  const auto payload = load_le<std::uint64_t>(bytes.data() + payload_at);
  const auto values = load_le<std::uint64_t>(bytes.data() + values_at);
  const std::uint64_t rest = all.size() - head;
  if (payload > rest || (rest - payload) % sizeof(float) != 0 || (rest - payload) / sizeof(float) != values)
    return damaged;
  const Hash256 hash = crypto::sha256(all);
  if (!std::equal(hash.begin(), hash.end(), bytes.begin() + all.size())) return damaged;
  RoundMemory memory;
  memory.round = load_le<std::uint64_t>(bytes.data() + round_at);
  std::copy_n(bytes.begin() + anchor_at, memory.anchor.size(), memory.anchor.begin());
  memory.work.steps = load_le<std::uint32_t>(bytes.data() + steps_at);
  memory.work.tokens = load_le<std::uint64_t>(bytes.data() + tokens_at);
  const ByteSpan sent = bytes.subspan(head, static_cast<std::size_t>(payload));
  memory.payload.assign(sent.begin(), sent.end());
  memory.buffer.resize(static_cast<std::size_t>(values));
  if (values > 0)
    std::memcpy(memory.buffer.data(), sent.data() + sent.size(), memory.buffer.size() * sizeof(float));
  return memory;
}

}  // namespace neuroshard::engine
