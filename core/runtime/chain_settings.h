// The options of core/chain and core/rounds that follow from a network's profile.
#pragma once

#include <vector>

#include "core/chain/node.h"
#include "core/config/network_profile.h"
#include "core/rounds/fragments.h"
#include "core/rounds/training_rounds.h"

namespace neuroshard::runtime {

struct ChainFacts {
  const config::ConsensusPart& consensus;
  const Hash256& network;
  const std::vector<rounds::Fragment>& fragments;  // by row
  const Hash256& tokenizer;
  chain::RowSet rows;         // that this node holds
  bool follows_plan = false;  // the network chose them
  bool one_lan = false;       // all nodes are on one computer or one local network
};

// Of the sizes after the first.
std::vector<chain::SizeNeeds> size_needs(const config::ConsensusPart& consensus);
chain::ChainRules chain_rules(const config::ConsensusPart& consensus, const Hash256& network);
// anchors: hashes of the initial weights, by row.
chain::ChainOptions chain_options(const ChainFacts& facts, const crypto::Delegation& delegation,
                                  std::vector<Hash256> anchors);
rounds::TrainingOptions training_options(const ChainFacts& facts);

}  // namespace neuroshard::runtime
