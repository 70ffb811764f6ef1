// A node of rounds whatever the number of members (SPEC §7): of one group up to 16, with votes from each to
// each (node.h); of two levels beyond (grouped_node.h). Which one a round has follows from the certificate
// before it, so all members change together, and a chain has rounds of both kinds (chain.h).
//
// At a certificate that changes it, the node of the one sort hands over to one of the other: state, chain,
// wishes, what the training has given and not yet seen counted. The old one stays for two rounds: it
// finishes telling what it has told, and serves payloads to those who are a round behind.
#pragma once

#include <memory>

#include "core/rounds/grouped_node.h"
#include "core/rounds/node.h"

namespace neuroshard::rounds {

struct LevelOptions {
  RoundOptions one;     // group_members decides for both
  GroupedOptions many;  // what both have is taken from `one`
};

class LevelNode final : public RoundEndpoint {
 public:
  // Threads: the executor's, all members.
  LevelNode(RoundServices services, LevelOptions options, KnownState known, std::uint64_t seed,
            RoundCertified certified);
  ~LevelNode() override;
  static bool handles(net::Method method) { return RoundParticipant::handles(method); }
  void start();
  void progressed() { node_->progressed(); }
  // As RoundParticipant's and RoundNode's.
  void leave() { node_->leave(); }
  void rejoin() { node_->rejoin(); }
  bool left() const;
  bool needed() const { return node_->needed(); }
  bool fetches_state() const { return node_->fetches_state(); }

  void on_call(const net::Caller& from, net::Method method, ByteSpan request,
               const net::Respond& respond) override;
  RoundView view() const override { return node_->view(); }
  RoundStatus status() const override { return node_->status(); }
  const Anchor& state() const override { return node_->state(); }
  std::uint64_t state_round() const override { return node_->state_round(); }
  const RoundChain* chain() const override { return node_->chain(); }
  // Rounds have two levels now; how often that has changed.
  bool grouped() const { return one_ == nullptr; }
  std::uint64_t changes() const { return changes_; }

 private:
  void make(bool grouped, KnownState known);
  void change_level();

  RoundServices services_;
  const LevelOptions options_;
  const std::uint64_t seed_;
  const RoundCertified on_certified_;
  GroupedCommons commons_;
  std::unique_ptr<RoundParticipant> node_, before_;
  RoundNode* one_ = nullptr;  // node_, if it is of one group
  std::uint64_t changes_ = 0, changed_at_ = 0;
};

}  // namespace neuroshard::rounds
