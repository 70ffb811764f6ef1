#include "core/sim/round_liar.h"

#include <algorithm>
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
    if (lie_ == Lie::FalseVotes) note_index(request);
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
      if (lie_ == Lie::FalseProof) accuse(peer, post->contribution, grouped, deadline);
      if (lie_ == Lie::FalseVotes) flood(peer, post->contribution, grouped, deadline);
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

// With all that can be made of what others have really signed.
void LyingCaller::accuse(const net::Contact& peer, const rounds::Contribution& own, bool grouped,
                         Duration deadline) {
  const auto say = [&](const rounds::Contribution& first, const rounds::Contribution& second) {
    const Bytes item = rounds::encode_item(rounds::EvidencePost{first, second});
    out_.call(peer, net::Method::RoundPost,
              grouped ? rounds::encode_grouped_post(rounds::GroupPost{item}) : item, deadline, forget);
  };
  for (const auto& [round, posts] : heard_.contributions) {
    if (round + 2 < own.round) continue;
    for (std::size_t i = 0; i < std::min<std::size_t>(posts.size(), 6); ++i) {
      const rounds::ContributionPost& post = posts[i];
      const rounds::Contribution& c = post.contribution;
      rounds::Contribution other = c, mine = c;
      other.payload[0] ^= 1;
      rounds::sign_contribution(mine, key_, network_);
      mine.key = c.key;
      say(c, other);
      say(c, mine);
      say(c, c);
      say(c, posts.front().contribution);
      const auto before = heard_.contributions.find(round - 1);
      if (before == heard_.contributions.end()) continue;
      for (const rounds::ContributionPost& old : before->second)
        if (old.contribution.key == c.key) say(c, old.contribution), say(old.contribution, c);
    }
  }
}

void LyingCaller::note_index(ByteSpan post) {
  const auto grouped = rounds::decode_grouped_post(post);
  if (const auto* votes = grouped.ok() ? std::get_if<rounds::CollectedVotes>(&*grouped) : nullptr) {
    // As a speaker it passes on those of others.
    for (const rounds::MemberSignature& s : votes->signatures)
      if (rounds::vote_holds(votes->vote, key_.public_key(), s.signature, network_)) in_all_ = s.member;
    return;
  }
  const auto* wrapped = grouped.ok() ? std::get_if<rounds::GroupPost>(&*grouped) : nullptr;
  const auto item = rounds::decode_item(wrapped != nullptr ? ByteSpan(wrapped->item) : post);
  if (const auto* vote = item.ok() ? std::get_if<rounds::VotePost>(&*item) : nullptr)
    in_group_ = vote->signature.member;
}

// Before anybody votes, in all views that a member may be in soon.
void LyingCaller::flood(const net::Contact& peer, const rounds::Contribution& own, bool grouped,
                        Duration deadline) {
  for (const rounds::VoteStep step : {rounds::VoteStep::Prepare, rounds::VoteStep::Commit})
    for (std::uint32_t view = 0; view < 2; ++view)
      for (std::uint8_t body = 0; body < 20; ++body) {
        rounds::RoundVote vote{step, own.slot, own.round, view, {}};
        vote.body.fill(body);
        const crypto::Signature signature = rounds::sign_vote(vote, key_, network_);
        if (grouped && in_all_)
          out_.call(peer, net::Method::RoundPost,
                    rounds::encode_grouped_post(rounds::CollectedVotes{vote, {{*in_all_, signature}}}),
                    deadline, forget);
        if (!in_group_) continue;
        const Bytes item = rounds::encode_item(rounds::VotePost{vote, {*in_group_, signature}});
        out_.call(peer, net::Method::RoundPost,
                  grouped ? rounds::encode_grouped_post(rounds::GroupPost{item}) : item, deadline, forget);
      }
}

void LyingCaller::change(const net::Contact& peer, rounds::ContributionPost* post) {
  rounds::Contribution& c = post->contribution;
  switch (lie_) {
    case Lie::Replay:
    case Lie::ViewJump:
    case Lie::FalseProof:
    case Lie::FalseVotes: return;
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
