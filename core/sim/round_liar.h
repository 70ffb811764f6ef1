// Liars in the protocol of rounds, as a way out that changes what an honest node sends: the values of deltas
// are outer/attack.h's matter.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "core/net/peer_caller.h"
#include "core/rounds/messages.h"

namespace neuroshard::sim {

enum class Lie : std::uint8_t {
  TwoPayloads,  // one delta to some, another to the others, both signed
  Replay,       // besides its own, every contribution that it heard, again in later rounds
  StaleBase,    // says that its delta is from an earlier anchor
  CopiedDelta,  // another's payload under its own name
  ViewJump,     // says that it is in views that nobody is in, and proposes nothing when it leads
  FalseProof,   // brings made-up evidence of two payloads against the others
  FalseVotes,   // votes for bodies that nobody proposed, as often as it is listened to
};

// A view that a ViewJump says it is in: to each another one, and another each time.
std::uint32_t false_view(const net::NodeId& to, std::uint64_t times);
// The status that is answered with such a view in it; as it was where it is none.
Bytes with_view(Bytes status, std::uint32_t view);

// What was said on the wire, for those who repeat it.
struct Overheard {
  std::map<std::uint64_t, std::vector<rounds::ContributionPost>> contributions;  // by round, first come first
};

class LyingCaller final : public net::PeerCaller {
 public:
  // out, key, heard outlive it.
  LyingCaller(Lie lie, net::PeerCaller& out, const crypto::KeyPair& key, const Hash256& network,
              outer::CodecOptions codec, std::uint64_t values, const Overheard& heard)
      : lie_(lie), out_(out), key_(key), network_(network), codec_(codec), values_(values), heard_(heard) {}
  void call(const net::Contact& peer, net::Method method, Bytes request, Duration deadline,
            net::CallDone done) override;

 private:
  void change(const net::Contact& peer, rounds::ContributionPost* post);
  bool keeps_quiet(ByteSpan post, const std::optional<rounds::RoundItem>& item) const;
  void claim_views(const net::Contact& peer, const rounds::Contribution& contribution, bool grouped,
                   Duration deadline);
  void accuse(const net::Contact& peer, const rounds::Contribution& own, bool grouped, Duration deadline);
  void flood(const net::Contact& peer, const rounds::Contribution& own, bool grouped, Duration deadline);
  void note_index(ByteSpan post);

  const Lie lie_;
  net::PeerCaller& out_;
  const crypto::KeyPair& key_;
  const Hash256 network_;
  const outer::CodecOptions codec_;
  const std::uint64_t values_;
  const Overheard& heard_;
  std::uint64_t claims_ = 0;
  std::optional<std::uint16_t> in_group_, in_all_;  // its index, as its own votes name it
};

}  // namespace neuroshard::sim
