#include "core/sim/round_liar.h"

#include <vector>

#include "core/crypto/hash.h"
#include "core/outer/codec.h"
#include "core/rounds/grouped_messages.h"

namespace neuroshard::sim {
namespace {

constexpr std::uint8_t group_post = 64;  // rounds/grouped_messages.h

}  // namespace

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
    auto* post = item.ok() ? std::get_if<rounds::ContributionPost>(&*item) : nullptr;
    if (post != nullptr && post->contribution.key == key_.public_key()) {
      if (lie_ == Lie::Replay) {
        for (const auto& [round, posts] : heard_.contributions) {
          if (round >= post->contribution.round) break;
          for (const rounds::ContributionPost& old : posts)
            out_.call(peer, method, encode(old), deadline, [](Expected<Bytes>) {});
        }
      }
      change(peer, post);
      request = encode(*post);
    }
  }
  out_.call(peer, method, std::move(request), deadline, std::move(done));
}

void LyingCaller::change(const net::Contact& peer, rounds::ContributionPost* post) {
  rounds::Contribution& c = post->contribution;
  switch (lie_) {
    case Lie::Replay: return;
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
