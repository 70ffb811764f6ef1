// This node's posts of the round in progress: its contribution, vector and attestation. They leave with the round; the
// chain carries them. Threads: one.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "core/chain/attestation.h"
#include "core/chain/content.h"
#include "core/rounds/held_items.h"

namespace neuroshard::rounds {

class OwnPosts {
 public:
  // Outlives it, as all calls on that port do. Before all else.
  void attach(chain::ChainPort& port) { port_ = &port; }

  // A round begins: nothing of the one before goes on its way.
  void open();
  // The round is closed: the vector has no use any more.
  void closed();

  // With the payloads, if they are small enough (round_posts.h).
  void contribution(const chain::Contribution& contribution, const std::vector<Payload>& payloads);
  // To this one node, without payloads, once a round.
  void contribution_to(std::uint32_t member, const net::NodeId& id, const chain::Contribution& contribution);
  void vector(const chain::Vector& vector);
  void attestation(const chain::Attestation& attestation);

 private:
  chain::ChainPort* port_ = nullptr;
  std::set<std::uint32_t> shown_to_;  // members that got the contribution for themselves
};

}  // namespace neuroshard::rounds
