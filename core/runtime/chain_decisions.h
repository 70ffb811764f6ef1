// A person's decisions about the members of a chain (core/node/member_decisions.h), on the thread of the chain.
#pragma once

#include <functional>
#include <vector>

#include "core/base/executor.h"
#include "core/base/lifetime.h"
#include "core/chain/node.h"
#include "core/node/member_decisions.h"
#include "core/runtime/memory_report.h"

namespace neuroshard::runtime {

class ChainDecisions final : public node::MemberDecisions {
 public:
  // chain: the node with its rules, on the executor, while `life` lasts; null: not yet. Any thread may call the
  // decisions until the executor ends.
  struct Chain {
    chain::ChainNode* node = nullptr;
    chain::ChainRules rules;
    const MemoryReport* memory = nullptr;  // outlives the node
    std::vector<double> part_work;         // what_if.h
    net::NodeId self{};
    WallTime wall{};
  };
  ChainDecisions(Executor& executor, Lifetime::Token life, std::function<Chain()> chain);

  Expected<void> continue_network(const node::ContinuationRequest& request,
                                  node::Reply<node::ContinuationReply> reply) override;
  Expected<void> revoke_node(const node::RevocationRequest& request,
                             node::Reply<node::RevocationReply> reply) override;
  Expected<void> query_what_if(const node::WhatIfQuery& query, node::Reply<node::WhatIf> reply) override;

 private:
  template <class Answer, class Decide>
  Expected<void> decide(node::Reply<Answer> reply, Decide decide);

  Executor& executor_;
  const Lifetime::Token life_;
  const std::function<Chain()> chain_;
};

}  // namespace neuroshard::runtime
