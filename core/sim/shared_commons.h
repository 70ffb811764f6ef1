// What all members of a simulated population derive from equal bytes, computed once for all of them
// (rounds/grouped_commons.h): the only difference to nodes on machines of their own, and for populations that
// one machine could not compute otherwise. Signatures are real and each is made by its own key; one that a
// thousand nodes would check is checked once.
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
  using GroupedCommons::GroupedCommons;
  std::shared_ptr<const rounds::Deal> deal(const Hash256& previous, std::uint64_t round,
                                           const rounds::RoundSlot& slot,
                                           const rounds::RosterPtr& roster) override;
  Hash256 hash(const Bytes& bytes) override;
  Expected<std::shared_ptr<const rounds::GroupedBody>> body(const Bytes& content,
                                                            const rounds::Deal& deal) override;
  Expected<void> check(const rounds::RoundQuorum& quorum, rounds::VoteStep step,
                       const rounds::Deal& deal) override;
  Expected<rounds::GroupedLinkPtr> link(const rounds::RoundQuorum& certificate,
                                        const rounds::Payload& content, const rounds::Deal& deal) override;
  rounds::Payload keep(Bytes bytes) override;
  rounds::SharedStep step(const Hash256& key,
                          const std::function<Expected<rounds::StepResult>()>& job) override;

 private:
  struct Checked {
    rounds::RoundQuorum quorum;
    rounds::VoteStep step;
    Hash256 previous;
    Expected<void> result;
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
