#include "core/runtime/chain_decisions.h"

#include <utility>

#include "core/runtime/continuation_call.h"
#include "core/runtime/revocation_call.h"
#include "core/runtime/what_if.h"

namespace neuroshard::runtime {

ChainDecisions::ChainDecisions(Executor& executor, Lifetime::Token life, std::function<Chain()> chain)
    : executor_(executor), life_(std::move(life)), chain_(std::move(chain)) {}

template <class Answer, class Decide>
Expected<void> ChainDecisions::decide(node::Reply<Answer> reply, Decide decide) {
  const bool posted = executor_.post([life = life_, chain = chain_, reply, decide = std::move(decide)] {
    const Chain now = life.alive() ? chain() : Chain{};
    if (now.node == nullptr)
      return reply(make_error(ErrorCode::Unavailable, "this node is still preparing its model, or ends"));
    reply(decide(now));
  });
  if (posted) return {};
  return make_error(ErrorCode::Busy, "this node is busy; try again in a moment");
}

Expected<void> ChainDecisions::continue_network(const node::ContinuationRequest& request,
                                                node::Reply<node::ContinuationReply> reply) {
  if (request.without.size() > node::max_without)
    return make_error(ErrorCode::InvalidArgument, "too many members are named");
  return decide(std::move(reply), [request](const Chain& chain) { return go_on(*chain.node, request); });
}

Expected<void> ChainDecisions::revoke_node(const node::RevocationRequest& request,
                                           node::Reply<node::RevocationReply> reply) {
  return decide(std::move(reply), [request](const Chain& chain) {
    return runtime::revoke_node(*chain.node, chain.rules, request);
  });
}

Expected<void> ChainDecisions::query_what_if(const node::WhatIfQuery& query,
                                             node::Reply<node::WhatIf> reply) {
  return decide(std::move(reply), [query](const Chain& chain) -> Expected<node::WhatIf> {
    const chain::History* const history = chain.node->history();
    if (history == nullptr)
      return make_error(ErrorCode::Unavailable,
                        "this node has no history of its network yet; try again in a minute");
    const chain::RegistryPtr registry = history->tip().registry;
    return what_if(query, {chain.rules, *registry, *chain.memory, chain.part_work, chain.self, chain.wall});
  });
}

}  // namespace neuroshard::runtime
