#include "core/rounds/fragments.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/outer/codec.h"
#include "core/rounds/messages.h"

namespace neuroshard::rounds {
namespace {

struct SlotOf {
  RoundSlot operator()(const ContributionPost& post) const { return post.contribution.slot; }
  RoundSlot operator()(const ProposalPost& post) const { return post.body.slot; }
  RoundSlot operator()(const VotePost& post) const { return post.vote.slot; }
  RoundSlot operator()(const NewViewPost& post) const { return post.slot; }
  RoundSlot operator()(const CertificatePost& post) const { return post.certificate.body.slot; }
  RoundSlot operator()(const ChangePost& post) const { return post.slot; }
  RoundSlot operator()(const EvidencePost& post) const { return post.first.slot; }
};

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
    fragments[i].first_steps = static_cast<std::uint32_t>(std::uint64_t{inner_steps} * (i + 1) / parts);
    at = end;
  }
  return fragments;
}

std::optional<RoundSlot> slot_of_call(net::Method method, ByteSpan request) {
  constexpr std::size_t slot_bytes = 5;
  if (method == net::Method::RoundPost) {
    const auto item = decode_item(request);
    return item.ok() ? std::optional(std::visit(SlotOf{}, *item)) : std::nullopt;
  }
  if (method != net::Method::RoundStatus && method != net::Method::RoundChain &&
      method != net::Method::RoundFetch)
    return std::nullopt;
  const auto slot = decode_slot(request.first(std::min(request.size(), slot_bytes)));
  return slot.ok() ? std::optional(*slot) : std::nullopt;
}

}  // namespace neuroshard::rounds
