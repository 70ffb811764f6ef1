#include "core/rounds/fragments.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/outer/codec.h"
#include "core/rounds/messages.h"

namespace neuroshard::rounds {
namespace {

// Where a post of messages.h or grouped_messages.h has its slot, by its kind. Magic, version and length come
// before a body's (certificate.h), magic and version before a contribution's, relay and others before what
// travels in sub-groups.
std::optional<std::size_t> slot_place(std::uint8_t kind) {
  constexpr std::size_t in_contribution = 6, in_body = 10, in_content = 6;
  switch (kind) {
    case 1:
    case 7: return 1 + in_contribution;
    case 2: return 1 + 4 + 1 + in_body;
    case 3:
    case 68: return 1 + 1;
    case 4:
    case 6:
    case 70: return 1;
    case 5: return 1 + in_body;
    case 65: return 1 + 1 + 4 + sizeof(crypto::Signature) + 4 + in_content;
    case 66:
    case 67: return 1 + 1 + in_body;
    case 69: return 1 + 2 + in_body;
    default: return std::nullopt;
  }
}

constexpr std::size_t slot_bytes = 5;
constexpr std::uint8_t within_sub_group = 64;

std::optional<RoundSlot> slot_at(ByteSpan bytes, std::size_t at) {
  if (at >= bytes.size()) return std::nullopt;
  const auto slot = decode_slot(bytes.subspan(at).first(std::min(bytes.size() - at, slot_bytes)));
  return slot.ok() ? std::optional(*slot) : std::nullopt;
}

std::optional<RoundSlot> slot_of_post(ByteSpan bytes) {
  if (!bytes.empty() && bytes[0] == within_sub_group) bytes = bytes.subspan(1);
  const auto at = bytes.empty() ? std::nullopt : slot_place(bytes[0]);
  return at ? slot_at(bytes, *at) : std::nullopt;
}

}  // namespace

std::vector<Fragment> cut_fragments(std::uint64_t values, std::size_t parts, std::uint32_t inner_steps) {
  NS_CHECK(parts >= 1 && parts <= max_fragments && parts <= values && parts <= inner_steps);
  const std::uint64_t unit = values / parts >= 2 * outer::codec_chunk ? outer::codec_chunk : 1;
  std::vector<Fragment> fragments(parts);
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < parts; ++i) {
    const std::uint64_t end = i + 1 == parts ? values : values * (i + 1) / parts / unit * unit;
    fragments[i].slot.layer = static_cast<std::uint16_t>(i);
    fragments[i].first = at;
    fragments[i].count = end - at;
    // Round r closes the row r mod parts: the first one's turn comes last.
    fragments[i].first_steps =
        static_cast<std::uint32_t>(std::uint64_t{inner_steps} * (i == 0 ? parts : i) / parts);
    at = end;
  }
  return fragments;
}

std::optional<RoundSlot> slot_of_call(net::Method method, ByteSpan request) {
  if (method == net::Method::RoundPost) return slot_of_post(request);
  if (method != net::Method::RoundStatus && method != net::Method::RoundChain &&
      method != net::Method::RoundFetch)
    return std::nullopt;
  return slot_at(request, 0);
}

}  // namespace neuroshard::rounds
