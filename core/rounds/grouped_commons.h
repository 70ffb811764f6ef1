// What a node of a round of two levels derives from bytes that all members get equal: a pure function of its
// arguments each. A node computes it for itself, as here; a simulation of thousands of nodes in one process
// computes it once for equal arguments (sim/shared_commons.h) and says so.
#pragma once

#include <functional>
#include <memory>

#include "core/rounds/agreement.h"
#include "core/rounds/contributions.h"
#include "core/rounds/grouped_body.h"
#include "core/rounds/grouped_step.h"

namespace neuroshard::rounds {

// A certified round of a chain.  Immutable, shared.
struct GroupedLink {
  RoundQuorum certificate;  // of the body's name
  Payload content;
  std::shared_ptr<const GroupedBody> body;
  Hash256 tip{};  // hash of the name
  RosterPtr made_by;
  RosterPtr roster;  // who makes the next round
  // All of it as if the members were one group: with the anchor of the weights, and nothing of sub-groups.
  std::shared_ptr<const RoundBody> flat;
};
using GroupedLinkPtr = std::shared_ptr<const GroupedLink>;
using SharedStep = std::shared_ptr<const Expected<StepResult>>;

class GroupedCommons : public SignatureChecks {
 public:
  // least: signatures that a name needs; 0: more than two thirds. Another number is for tests.
  // group_members: of a sub-group, at most (dealing.h).
  explicit GroupedCommons(const Hash256& network, std::size_t least = 0,
                          std::size_t group_members = max_group_members)
      : network_(network), least_(least), group_members_(group_members) {}

  virtual std::shared_ptr<const Deal> deal(const Hash256& previous, std::uint64_t round,
                                           const RoundSlot& slot, const RosterPtr& roster);
  virtual Hash256 hash(const Bytes& bytes);  // SHA-256
  // Decoded, and all that is signed in it checked.
  virtual Expected<std::shared_ptr<const GroupedBody>> body(const Bytes& content, const Deal& deal);
  // What was checked, held once where nodes share it.
  virtual Expected<QuorumPtr> check(const RoundQuorum& quorum, VoteStep step, const Deal& deal);
  // A certificate with its content, checked: it follows what was dealt.
  virtual Expected<GroupedLinkPtr> link(const RoundQuorum& certificate, const Payload& content,
                                        const Deal& deal);
  virtual Payload keep(Bytes bytes) { return std::make_shared<const Bytes>(std::move(bytes)); }
  // key: hash of all that the job depends on.  Threads: any.
  virtual SharedStep step(const Hash256& key, const std::function<Expected<StepResult>()>& job);

  const Hash256& network() const { return network_; }
  std::size_t least() const { return least_; }
  std::size_t group_members() const { return group_members_; }

 private:
  const Hash256 network_;
  const std::size_t least_;
  const std::size_t group_members_;
};

// The same as link(), without a look at what is signed: of bytes from this node's own disk.
Expected<GroupedLinkPtr> read_grouped_link(const RoundQuorum& certificate, const Payload& content,
                                           std::shared_ptr<const GroupedBody> body, const Deal& deal);

}  // namespace neuroshard::rounds
