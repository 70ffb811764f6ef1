// What a network's profile says about its chain and its rounds, as core/chain and core/rounds take it.
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
};

chain::ChainRules chain_rules(const config::ConsensusPart& consensus, const Hash256& network,
                              std::size_t fragments);
// anchors: hashes of the initial weights, by row.
chain::ChainOptions chain_options(const ChainFacts& facts, const crypto::Delegation& delegation,
                                  std::vector<Hash256> anchors);
rounds::TrainingOptions training_options(const ChainFacts& facts);

}  // namespace neuroshard::runtime
