// The content of a chain's blocks: the closes and results of rounds. core/chain orders and certifies them;
// core/rounds makes and judges them. All calls on the executor of the chain's node.
#pragma once

#include <functional>
#include <optional>

#include "core/chain/history.h"
#include "core/chain/messages.h"
#include "core/chain/status.h"

namespace neuroshard::chain {

struct Sections {
  std::optional<CloseSection> close;
  std::optional<ResultSection> result;
  bool empty() const { return !close && !result; }
};

// The chain as the content uses it; implemented by ChainNode.
class ChainPort {
 public:
  virtual ~ChainPort() = default;
  // To all voters, or only to these nodes, until they have it or refuse it; an item with this key is replaced.
  // AskedFor: a voter that lacks it asks for it, so in a large committee one way to each is enough (relay.h).
  enum class Reach : std::uint8_t { Voters, AskedFor, Only };
  virtual void post(std::uint64_t key, const RoundsPost& item, Reach reach,
                    const std::vector<net::NodeId>& only) = 0;
  virtual void drop_post(std::uint64_t key) = 0;
  // Something that the content waited for is here: look now, not at the next tick.
  virtual void advance() = 0;
  // The content holds the state that a voter needs.
  virtual void set_ready(bool ready) = 0;
  virtual void add_evidence(const Evidence& evidence) = 0;
  // False: this node came back in this round and may have signed for it what it does not remember.
  virtual bool may_sign(std::uint64_t round) const = 0;
  // This node's reveal of a round. NotFound: it is no member, or has no commitment.
  virtual Expected<Hash256> beacon_reveal(std::uint64_t round) = 0;
};

class BlockContent {
 public:
  virtual ~BlockContent() = default;
  // A section could be made on this tip now: a block is due.
  virtual bool is_due(const ChainTip& tip) = 0;
  // For this node's proposal: `done` once, later or at once, possibly with no section.
  virtual void make(const ChainTip& tip, std::function<void(Sections)> done) = 0;
  // Whether a proposed block's sections are right as far as this node knows and computes. binding: omissions
  // and needlessly carried rows make it wrong. `done` once, when it is known; never while what it takes is
  // still being fetched. A later judge() of the same block replaces the question.
  virtual void judge(const ChainTip& tip, const BlockPtr& block, bool binding,
                     std::function<void(bool right)> done) = 0;
  // A block was certified; each once, in order. Also while a node catches up: then `live` is false until the
  // newest.
  virtual void on_block(const ChainTip& tip, const CertifiedBlock& block, bool live) = 0;
  // Another history took this one's place.
  virtual void on_history(const ChainTip& tip) = 0;
  // A peer's post of a kind that is the rounds' (RoundsPost). Cheap checks first.
  virtual Verdict on_post(const net::NodeId& from, const RoundsPost& post, const ChainTip& tip) = 0;
  // A peer's evidence of a false result, whose proof this node has not seen: the content fetches the proof from that peer,
  // verifies it, and gives the evidence to the port then. judge() comes for blocks with such evidence, too.
  virtual Verdict on_accusation(const net::NodeId& from, const Evidence& evidence, const ChainTip& tip) = 0;
  // A member's signatures in the round in progress, as this node holds them; its own as it remembers them.
  virtual SignedByMember signed_by(const net::NodeId& member) const = 0;
  // The longest time of a round, as the rounds know it: for the stall rule.
  virtual Duration deadline() const = 0;
};

}  // namespace neuroshard::chain
