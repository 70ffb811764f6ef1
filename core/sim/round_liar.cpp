#include "core/sim/round_liar.h"

#include <array>
#include <limits>
#include <vector>

#include "core/crypto/hash.h"
#include "core/outer/codec.h"
#include "core/rounds/grouped_messages.h"

namespace neuroshard::sim {
namespace {

constexpr std::uint8_t group_post = 64;  // rounds/grouped_messages.h

void forget(Expected<Bytes>) {}

}  // namespace

std::uint32_t false_view(const net::NodeId& to, std::uint64_t times) {
  constexpr std::array<std::uint32_t, 5> views = {std::numeric_limits<std::uint32_t>::max(), 1u << 30,
                                                  1u << 31, 70, 3};
  return views[(to[0] + times) % views.size()];
}

Bytes with_view(Bytes bytes, std::uint32_t view) {
  auto status = rounds::decode_status(bytes);
  if (!status.ok()) return bytes;
  status->view = view;
  return rounds::encode_status(*status);
}

void LyingCaller::call(const net::Contact& peer, net::Method method, Bytes request, Duration deadline,
                       net::CallDone done) {
  if (method == net::Method::RoundPost) {
    // In a round of two levels, what is said within a sub-group is wrapped.
    const bool grouped = !request.empty() && request[0] == group_post;
    const auto encode = [grouped](const rounds::RoundItem& item) {
      return grouped ? rounds::encode_grouped_post(rounds::GroupPost{rounds::encode_item(item)})
                     : rounds::encode_item(item);
    };
    auto item = rounds::decode_item(ByteSpan(request).subspan(grouped ? 1 : 0));
    if (lie_ == Lie::ViewJump && keeps_quiet(request, item.ok() ? std::optional(*item) : std::nullopt))
      return;
    auto* post = item.ok() ? std::get_if<rounds::ContributionPost>(&*item) : nullptr;
    if (post != nullptr && post->contribution.key == key_.public_key()) {
      if (lie_ == Lie::Replay) {
        for (const auto& [round, posts] : heard_.contributions) {
          if (round >= post->contribution.round) break;
          for (const rounds::ContributionPost& old : posts)
            out_.call(peer, method, encode(old), deadline, forget);
        }
      }
      if (lie_ == Lie::ViewJump) claim_views(peer, post->contribution, grouped, deadline);
      change(peer, post);
      request = encode(*post);
    }
  }
  out_.call(peer, method, std::move(request), deadline, std::move(done));
}

// Proposals, and where it really is.
bool LyingCaller::keeps_quiet(ByteSpan post, const std::optional<rounds::RoundItem>& item) const {
  if (item)
    return std::holds_alternative<rounds::ProposalPost>(*item) ||
           std::holds_alternative<rounds::NewViewPost>(*item);
  const auto grouped = rounds::decode_grouped_post(post);
  return grouped.ok() && (std::holds_alternative<rounds::GroupedProposal>(*grouped) ||
                          std::holds_alternative<rounds::NewViewPost>(*grouped));
}

// In its sub-group and above.
void LyingCaller::claim_views(const net::Contact& peer, const rounds::Contribution& c, bool grouped,
                              Duration deadline) {
  const rounds::NewViewPost claim{c.slot, c.round, false_view(peer.id, claims_++), std::nullopt};
  const Bytes item = rounds::encode_item(claim);
  if (grouped) {
    out_.call(peer, net::Method::RoundPost, rounds::encode_grouped_post(rounds::GroupPost{item}), deadline,
              forget);
    out_.call(peer, net::Method::RoundPost, rounds::encode_grouped_post(claim), deadline, forget);
  } else {
    out_.call(peer, net::Method::RoundPost, item, deadline, forget);
  }
}

void LyingCaller::change(const net::Contact& peer, rounds::ContributionPost* post) {
  rounds::Contribution& c = post->contribution;
  switch (lie_) {
    case Lie::Replay:
    case Lie::ViewJump: return;
    case Lie::StaleBase: c.base[0] ^= 1; break;
    case Lie::TwoPayloads: {
      if (peer.id[0] % 2 == 0) return;
      std::vector<float> delta(values_);
      if (!outer::decode(codec_, post->payload, delta).ok()) return;
      for (float& value : delta) value = -value;
      const auto other = outer::encode(codec_, delta);
      if (!other.ok()) return;
      post->payload = *other;
      break;
    }
    case Lie::CopiedDelta: {
      const auto at = heard_.contributions.find(c.round);
      if (at == heard_.contributions.end()) return;
      post->payload = at->second.front().payload;
      break;
    }
  }
  c.payload_bytes = post->payload.size();
  c.payload = crypto::sha256(post->payload);
  rounds::sign_contribution(c, key_, network_);
}

}  // namespace neuroshard::sim
