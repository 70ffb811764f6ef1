// Byzantine nodes of scenarios run the honest node and lie on its way out: about contributions, views, votes
// and proofs. Attacks on values are in scenario_values.h.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "core/chain/messages.h"
#include "core/net/peer_caller.h"
#include "core/outer/codec.h"

namespace neuroshard::sim {

enum class Lie : std::uint8_t {
  TwoPayloads,  // different contributions to different members
  Replay,       // what was heard in earlier rounds, again
  StaleBase,    // contributions that name another opening block
  CopiedDelta,  // another member's payload under the own name
  ViewJump,     // views that nobody is in; no proposals
  FalseProof,   // evidence against others, made of what they have really signed
  FalseVotes,   // votes for blocks that nobody proposed
};
std::optional<Lie> lie_of(std::string_view scenario);

// The view that a Byzantine node claims to this peer: another one each time.
std::uint32_t false_view(const net::NodeId& to, std::uint64_t times);

// A contribution with its payload, as honest nodes send it.
struct HeardContribution {
  chain::Contribution contribution;
  Bytes payload;
};
// Contributions that Byzantine nodes overheard from honest ones.
struct Overheard {
  std::map<std::uint64_t, std::vector<HeardContribution>> contributions;  // by round
  // Of a post that an honest node sends.
  void listen(ByteSpan post);
};

// A Byzantine node's way out. It adds its lies when the node sends its contribution.
class ByzantineCaller final : public net::PeerCaller {
 public:
  struct Facts {
    Hash256 network{};
    outer::CodecOptions codec;
    std::size_t values = 0;                               // of a delta
    std::function<std::optional<chain::ChainTip>()> tip;  // of the node's own history
    std::function<void(chain::Verdict)> answered;         // what became of a lie
  };
  // out, key and heard outlive it.
  ByzantineCaller(Lie lie, net::PeerCaller& out, const crypto::KeyPair& key, const Overheard& heard,
                  Facts facts)
      : lie_(lie), out_(out), key_(key), heard_(heard), facts_(std::move(facts)) {}
  void call(const net::Contact& peer, net::Method method, Bytes request, Duration deadline,
            net::CallDone done) override;

 private:
  void say(const net::Contact& peer, Bytes post);
  void add_to(const net::Contact& peer, const HeardContribution& own);
  void accuse(const net::Contact& peer, const HeardContribution& own);
  void vote_falsely(const net::Contact& peer);
  HeardContribution changed(const net::Contact& peer, HeardContribution own) const;

  const Lie lie_;
  net::PeerCaller& out_;
  const crypto::KeyPair& key_;
  const Overheard& heard_;
  const Facts facts_;
  std::uint64_t claims_ = 0;
};

}  // namespace neuroshard::sim
