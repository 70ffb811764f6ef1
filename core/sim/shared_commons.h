// What all members of a simulated population derive from equal bytes, computed once for all of them
// (rounds/grouped_commons.h): the only difference to nodes on machines of their own, and for populations that
// one machine could not compute otherwise. Signatures are real and each is made by its own key. A quorum that
// a thousand nodes would check is checked once; with thousands of nodes, so is each single signature.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string_view>
#include <unordered_map>

#include "core/rounds/grouped_commons.h"

namespace neuroshard::sim {

class SharedCommons final : public rounds::GroupedCommons {
 public:
  // signatures: whether one that many check is checked once, too.
  SharedCommons(const Hash256& network, std::size_t least, bool signatures)
      : GroupedCommons(network, least), share_signatures_(signatures) {}
  bool holds(const rounds::RoundVote& vote, const crypto::PublicKey& key, const crypto::Signature& signature,
             const Hash256& network) override;
  bool holds(const rounds::Contribution& contribution, const Hash256& network) override;
  std::shared_ptr<const rounds::Deal> deal(const Hash256& previous, std::uint64_t round,
                                           const rounds::RoundSlot& slot,
                                           const rounds::RosterPtr& roster) override;
  Hash256 hash(const Bytes& bytes) override;
  Expected<std::shared_ptr<const rounds::GroupedBody>> body(const Bytes& content,
                                                            const rounds::Deal& deal) override;
  Expected<rounds::QuorumPtr> check(const rounds::RoundQuorum& quorum, rounds::VoteStep step,
                                    const rounds::Deal& deal) override;
  Expected<rounds::GroupedLinkPtr> link(const rounds::RoundQuorum& certificate,
                                        const rounds::Payload& content, const rounds::Deal& deal) override;
  rounds::Payload keep(Bytes bytes) override;
  rounds::SharedStep step(const Hash256& key,
                          const std::function<Expected<rounds::StepResult>()>& job) override;

 private:
  struct Checked {
    rounds::RoundQuorum refused;  // empty where the result has it
    rounds::VoteStep step;
    Hash256 previous;
    Expected<rounds::QuorumPtr> result;
  };
  struct Body {
    rounds::Payload content;
    Hash256 previous;
    Expected<std::shared_ptr<const rounds::GroupedBody>> result;
  };
  struct Link {
    rounds::RoundQuorum certificate;
    rounds::Payload content;
    Expected<rounds::GroupedLinkPtr> result;
  };
  struct CheckedVote {
    rounds::RoundVote vote;
    crypto::PublicKey key;
    crypto::Signature signature;
    bool holds;
  };
  const bool share_signatures_;
  // By the signature's first bytes.
  std::unordered_multimap<std::uint64_t, CheckedVote> votes_;
  std::unordered_multimap<std::uint64_t, std::pair<rounds::Contribution, bool>> contributions_;
  // The newest of each; what is not among them is computed again.
  std::deque<std::shared_ptr<const rounds::Deal>> deals_;
  std::deque<std::pair<rounds::Payload, Hash256>> hashes_;
  std::deque<Checked> checked_;
  std::deque<Body> bodies_;
  std::deque<Link> links_;
  std::deque<std::pair<Hash256, rounds::SharedStep>> steps_;
  std::unordered_multimap<std::size_t, std::weak_ptr<const Bytes>> kept_;
  std::size_t sweep_at_ = 1024;
};

}  // namespace neuroshard::sim
