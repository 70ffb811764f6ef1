#include "core/sim/byzantine_caller.h"

#include <algorithm>
#include <array>
#include <limits>

#include "core/rounds/round_posts.h"

namespace neuroshard::sim {
namespace {

constexpr std::uint8_t proposal_kind = 1, new_view_kind = 3;  // core/chain/messages.h
constexpr Duration patience = std::chrono::seconds(5);

std::optional<HeardContribution> contribution_in(ByteSpan post) {
  if (post.empty() || post[0] != rounds::contribution_kind) return std::nullopt;
  auto read = rounds::decode_contribution_post(post.subspan(1), 1);
  if (!read || read->contribution.rows.empty() || read->payloads.empty()) return std::nullopt;
  return HeardContribution{std::move(read->contribution), std::move(read->payloads.front().second)};
}

Bytes post_of(const HeardContribution& heard) {
  const rounds::Payload payload = in_memory(heard.payload);
  return chain::encode_item(chain::RoundsPost{
      rounds::contribution_kind, rounds::encode_contribution_post(heard.contribution, {payload})});
}

void tell(const std::function<void(chain::Verdict)>& answered, const Expected<Bytes>& answer) {
  if (!answer.ok()) return;
  if (const auto read = chain::decode_answer(*answer); read.ok()) answered(read->verdict);
}

}  // namespace

std::optional<Lie> lie_of(std::string_view scenario) {
  if (scenario == "two-payloads") return Lie::TwoPayloads;
  if (scenario == "replay") return Lie::Replay;
  if (scenario == "stale-base") return Lie::StaleBase;
  if (scenario == "copied-delta") return Lie::CopiedDelta;
  if (scenario == "view-jump") return Lie::ViewJump;
  if (scenario == "false-proof") return Lie::FalseProof;
  if (scenario == "false-votes") return Lie::FalseVotes;
  return std::nullopt;
}

std::uint32_t false_view(const net::NodeId& to, std::uint64_t times) {
  constexpr std::array<std::uint32_t, 5> views = {std::numeric_limits<std::uint32_t>::max(), 1u << 30,
                                                  1u << 31, 70, 3};
  return views[(to[0] + times) % views.size()];
}

void Overheard::listen(ByteSpan post) {
  auto heard = contribution_in(post);
  if (!heard) return;
  auto& all = contributions[heard->contribution.round];
  const auto known = std::any_of(all.begin(), all.end(), [&](const HeardContribution& one) {
    return one.contribution == heard->contribution;
  });
  if (!known) all.push_back(std::move(*heard));
}

void ByzantineCaller::call(const net::Contact& peer, net::Method method, Bytes request, Duration deadline,
                           net::CallDone done) {
  if (method == net::Method::ChainPost && !request.empty()) {
    const bool leads = request[0] == proposal_kind || request[0] == new_view_kind;
    if (lie_ == Lie::ViewJump && leads) return;
    const auto own = contribution_in(request);
    if (own && own->contribution.node == key_.public_key()) {
      add_to(peer, *own);
      request = post_of(changed(peer, *own));
      done = [answered = facts_.answered, then = std::move(done)](Expected<Bytes> answer) {
        tell(answered, answer);
        then(std::move(answer));
      };
    }
  }
  out_.call(peer, method, std::move(request), deadline, std::move(done));
}

void ByzantineCaller::say(const net::Contact& peer, Bytes post) {
  out_.call(peer, net::Method::ChainPost, std::move(post), patience,
            [answered = facts_.answered](Expected<Bytes> answer) { tell(answered, answer); });
}

void ByzantineCaller::add_to(const net::Contact& peer, const HeardContribution& own) {
  const auto tip = facts_.tip();
  switch (lie_) {
    case Lie::Replay:
      for (const auto& [round, all] : heard_.contributions) {
        if (round >= own.contribution.round) break;
        for (const HeardContribution& old : all) say(peer, post_of(old));
      }
      break;
    case Lie::ViewJump: {
      if (!tip) break;
      chain::NewView claim;
      claim.height = tip->height() + 1;
      claim.previous = tip->block->hash;
      claim.view = false_view(peer.id, claims_++);
      say(peer, chain::encode_item(claim));
      break;
    }
    case Lie::FalseProof: accuse(peer, own); break;
    case Lie::FalseVotes: vote_falsely(peer); break;
    case Lie::TwoPayloads:
    case Lie::StaleBase:
    case Lie::CopiedDelta: break;
  }
}

// With all that can be made of what others have really signed.
void ByzantineCaller::accuse(const net::Contact& peer, const HeardContribution& own) {
  const auto claim = [&](const chain::Contribution& first, const chain::Contribution& second) {
    chain::Evidence evidence = chain::evidence_of(first, second);
    evidence.node = first.node;
    say(peer, chain::encode_item(chain::EvidencePost{evidence}));
  };
  for (const auto& [round, all] : heard_.contributions) {
    if (round + 2 < own.contribution.round) continue;
    for (std::size_t i = 0; i < std::min<std::size_t>(all.size(), 6); ++i) {
      const chain::Contribution& theirs = all[i].contribution;
      chain::Contribution other = theirs, mine = theirs;
      other.rows[0].payload[0] ^= 1;
      mine.rows[0].payload[0] ^= 1;
      chain::sign_contribution(mine, key_, facts_.network);
      mine.node = theirs.node;
      claim(theirs, other);
      claim(theirs, mine);
      claim(theirs, theirs);
      claim(theirs, all.front().contribution);
      const auto before = heard_.contributions.find(round - 1);
      if (before == heard_.contributions.end()) continue;
      for (const HeardContribution& old : before->second)
        if (old.contribution.node == theirs.node) claim(theirs, old.contribution);
    }
  }
}

// Before anybody votes, in all views that a member may be in soon.
void ByzantineCaller::vote_falsely(const net::Contact& peer) {
  const auto tip = facts_.tip();
  const chain::MemberRecord* member = tip ? tip->registry->find(crypto::node_id(key_.public_key())) : nullptr;
  if (member == nullptr) return;
  for (const chain::VoteStep step : {chain::VoteStep::Prepare, chain::VoteStep::Commit})
    for (std::uint32_t view = 0; view < 2; ++view)
      for (std::uint8_t block = 0; block < 20; ++block) {
        chain::Vote vote{step, tip->height() + 1, tip->block->hash, view, {}};
        vote.block.fill(block);
        say(peer, chain::encode_item(chain::sign_vote(vote, member->number, key_, facts_.network)));
      }
}

HeardContribution ByzantineCaller::changed(const net::Contact& peer, HeardContribution own) const {
  chain::Contribution& c = own.contribution;
  switch (lie_) {
    case Lie::Replay:
    case Lie::ViewJump:
    case Lie::FalseProof:
    case Lie::FalseVotes: return own;
    case Lie::StaleBase: c.opening[0] ^= 1; break;
    case Lie::TwoPayloads: {
      if (peer.id[0] % 2 == 0) return own;
      std::vector<float> delta(facts_.values);
      if (!outer::decode(facts_.codec, own.payload, delta).ok()) return own;
      for (float& value : delta) value = -value;
      auto other = outer::encode(facts_.codec, delta);
      if (!other.ok()) return own;
      own.payload = std::move(*other);
      c.rows[0].payload_bytes = own.payload.size();
      c.rows[0].payload = rounds::payload_root(crypto::node_id(c.node), own.payload);
      break;
    }
    case Lie::CopiedDelta: {
      // Of the round before: the same one for all recipients.
      const auto at = heard_.contributions.find(c.round - 1);
      if (at == heard_.contributions.end()) return own;
      c.rows = at->second.front().contribution.rows;
      own.payload = at->second.front().payload;
      break;
    }
  }
  chain::sign_contribution(c, key_, facts_.network);
  return own;
}

}  // namespace neuroshard::sim
