// The posts of rounds on the chain's method (chain/messages.h, RoundsPost), and their outbox keys.
//
//   32  contribution: length u32 · contribution · count u8, 0 or as many as its rows · each, in the order of
//       these rows: row u32 · length u32 · payload
//   33  vector
//   34  attestation
#pragma once

#include <optional>
#include <vector>

#include "core/base/byte_reader.h"
#include "core/rounds/held_items.h"

namespace neuroshard::rounds {

inline constexpr std::uint8_t contribution_kind = 32, vector_kind = 33, attestation_kind = 34;
inline constexpr std::uint64_t contribution_key = 0, vector_key = 1, attestation_key = 2;
// A contribution on its way to one candidate. Beyond the keys of second ways (chain/keys.h).
constexpr std::uint64_t candidate_key(std::uint32_t member) {
  return std::uint64_t{2} << 32 | member;
}
// Payloads up to this size in all travel with their contribution. Each then has one slice: nobody needs its leaves.
inline constexpr std::size_t most_inline_payloads = 64u << 10;
static_assert(most_inline_payloads <= payload_slice_bytes);

inline constexpr std::size_t most_post_bytes = most_inline_payloads + (64u << 10);

struct PostedContribution {
  chain::Contribution contribution;
  std::vector<std::pair<std::uint32_t, Bytes>> payloads;  // row, bytes
};

// Payloads that are too large, or can't be read, do not go along: members ask for them.
inline Bytes encode_contribution_post(const chain::Contribution& contribution,
                                      const std::vector<Payload>& payloads) {
  Bytes alone;
  append_part(alone, chain::encode_contribution(contribution));
  Bytes bytes = alone;
  alone.push_back(0);
  std::uint64_t whole = 0;
  for (const Payload& payload : payloads) whole += payload->size();
  if (whole > most_inline_payloads || payloads.size() >= 256) return alone;
  bytes.push_back(static_cast<std::uint8_t>(payloads.size()));
  for (std::size_t i = 0; i < payloads.size(); ++i) {
    const auto payload = read_all(*payloads[i]);
    if (!payload.ok()) return alone;
    append_le(bytes, contribution.rows[i].row);
    append_part(bytes, *payload);
  }
  return bytes;
}

inline std::optional<PostedContribution> decode_contribution_post(ByteSpan bytes, std::size_t most_rows) {
  ByteReader reader(bytes);
  auto contribution = chain::decode_contribution(reader.part(), most_rows);
  if (!contribution.ok()) return std::nullopt;
  PostedContribution post{std::move(*contribution), {}};
  const auto count = reader.number<std::uint8_t>();
  const std::vector<chain::RowWork>& rows = post.contribution.rows;
  if (bytes.size() > most_post_bytes || (count != 0 && count != rows.size())) return std::nullopt;
  std::uint64_t whole = 0;
  for (std::size_t i = 0; i < count && reader.good(); ++i) {
    const auto row = reader.number<std::uint32_t>();
    const ByteSpan payload = reader.part();
    whole += payload.size();
    if (row != rows[i].row || whole > most_inline_payloads) return std::nullopt;
    post.payloads.emplace_back(row, Bytes(payload.begin(), payload.end()));
  }
  return reader.at_end() ? std::optional(std::move(post)) : std::nullopt;
}

}  // namespace neuroshard::rounds
