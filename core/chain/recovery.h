// The continuation of a chain whose voters are gone so that no quorum is left: a person decides it, with
// `network continue --without NODE`, and all nodes that go on sign a succession block (docs/protocol/chain.md).
// The block names voters that are active, or were dormant for less than 30 days when the chain stopped. They are
// active after it, all others dormant.
//
// A certified block beats any succession of its height. Of two successions the one with more units wins, then
// the one with the lower hash. A node adopts a succession only if it has signed it or its person agrees: so the
// first of two that returns waits for the one that left last, unless its person goes on without that one.
//
// Pure: times in, messages out. Threads: one. Errors: Denied, NotFound, Unavailable; each says what to do.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "core/base/clock.h"
#include "core/chain/messages.h"

namespace neuroshard::chain {

// The ways in which the active voters that are heard can go on.
enum class Outlook {
  Certifies,     // a quorum
  AfterStall,    // a stall quorum: it marks the silent ones dormant once the height is stalled
  NeedsAPerson,  // neither: the missing ones return, or a person decides
};
Outlook outlook(const Committee& committee, std::uint64_t heard_units);

// Whether a succession after this registry's block could name the member. The 30 days count up to that block: a
// chain goes on where it stopped, however long ago that was.
bool may_continue(const Registry& registry, const MemberRecord& member);
// Units that the named members have when they are the only active ones.
std::uint64_t continuing_units(const Registry& registry, const std::vector<std::uint32_t>& continuing);
// Both of the height after `before`, both valid; own is a succession.
bool beats_succession(const Block& other, const Block& own, const Registry& before);

struct RecoveryOptions {
  Duration repeat = std::chrono::seconds(3);
  Duration release = std::chrono::minutes(10);  // after that a node signs another one
};

class Recovery {
 public:
  // key: of this node; all outlive it.
  Recovery(const ChainRules& rules, RecoveryOptions options, const crypto::KeyPair& key,
           SignatureChecks& checks);

  struct Output {
    std::vector<net::NodeId> to;  // the nodes that the block names, without this one
    std::optional<SuccessionProposal> proposal;
    std::optional<CertifiedBlock> complete;  // to be adopted and shown to all
  };
  // This node's knowledge at this moment.
  struct Situation {
    const ChainTip& tip;
    const std::set<std::uint32_t>& heard;  // numbers of members that are not silent, dormant ones too
    MonotonicTime now{};
    WallTime wall{};
  };

  // The person of this node goes on without these. NotFound: no such member. Unavailable: another active voter
  // does not answer and has to be named too. Denied: a named one answers, this node could not go on, or no
  // person is needed.
  Expected<Output> continue_without(const std::vector<net::NodeId>& without, const Situation& situation);
  // Signs at once what a node of the same wallet has signed; else the proposal waits for agree(). Taken, Known,
  // Past, Later, OtherHistory, NotMember (not named), Inadmissible, BadSignature, Busy (a left-out voter was
  // heard lately, or another succession is being signed).
  Verdict take(const SuccessionProposal& proposal, const Situation& situation, Output* output);
  // The newest proposal that waits for this node's person, or else a succession that others have adopted; null: none.
  const BlockPtr& asks() const { return asked_.block ? asked_.block : adopted_; }
  // A succession that others have adopted waits for this node's person.
  bool waits_to_follow() const { return adopted_ != nullptr; }
  // Others have adopted this succession of the next height, which holds. This node may not before its person agrees.
  void others_adopted(const BlockPtr& block, const Registry& before);
  // The person agrees with this succession: to sign it if it waits, to adopt it in any case.
  Output agree(const Hash256& block, const Situation& situation);
  bool may_adopt(const Block& block) const;
  // Repeats and releases.
  Output tick(MonotonicTime now);
  // A new block: proposals for its height are over.
  void on_tip(const ChainTip& tip);

 private:
  struct Signing {
    SuccessionProposal proposal;
    RegistryPtr before;
    MonotonicTime since{}, sent{};
  };
  Expected<std::vector<std::uint32_t>> continuing(const std::set<std::uint32_t>& without,
                                                  const Situation& situation) const;
  Expected<BlockPtr> make_succession(std::vector<std::uint32_t> numbers, const ChainTip& tip,
                                     std::uint64_t time_ms) const;
  Verdict judge(const Block& block, const Situation& situation) const;
  bool has_signature_of_wallet(const Quorum& signatures, const Registry& registry) const;
  bool switches_to(const Block& block) const;
  Output sign(SuccessionProposal proposal, const Situation& situation);
  Verdict merge(const Quorum& signatures, Output* output);
  Output output() const;

  const ChainRules& rules_;
  const RecoveryOptions options_;
  const crypto::KeyPair& key_;
  const net::NodeId self_;
  SignatureChecks& checks_;
  std::optional<Signing> signing_;
  SuccessionProposal asked_;
  BlockPtr adopted_;          // by others
  std::set<Hash256> agreed_;  // signed, or agreed to by the person
};

}  // namespace neuroshard::chain
