// A person's decisions about the members of a chain (core/node/member_decisions.h), on the thread of the chain.
#pragma once

#include <functional>

#include "core/base/executor.h"
#include "core/base/lifetime.h"
#include "core/chain/node.h"
#include "core/node/member_decisions.h"

namespace neuroshard::runtime {

class ChainDecisions final : public node::MemberDecisions {
 public:
  // chain: the node with its rules, on the executor, while `life` lasts; null: not yet. Any thread may call the
  // decisions until the executor ends.
  struct Chain {
    chain::ChainNode* node = nullptr;
    chain::ChainRules rules;
  };
  ChainDecisions(Executor& executor, Lifetime::Token life, std::function<Chain()> chain);

  Expected<void> continue_network(const node::ContinuationRequest& request,
                                  node::Reply<node::ContinuationReply> reply) override;
  Expected<void> revoke_node(const node::RevocationRequest& request,
                             node::Reply<node::RevocationReply> reply) override;

 private:
  template <class Answer, class Decide>
  Expected<void> decide(node::Reply<Answer> reply, Decide decide);

  Executor& executor_;
  const Lifetime::Token life_;
  const std::function<Chain()> chain_;
};

}  // namespace neuroshard::runtime
