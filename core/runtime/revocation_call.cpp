#include "core/runtime/revocation_call.h"

#include "core/runtime/continuation_call.h"

namespace neuroshard::runtime {
namespace {

// The wallet's revocation of the only key whose node id begins so. Null: there is none, or several.
const chain::RevocationRecord* revocation_of(const chain::Registry& registry, const crypto::PublicKey& wallet,
                                             const std::string& name) {
  const chain::RevocationRecord* found = nullptr;
  for (const chain::RevocationRecord& record : registry.revocations()) {
    if (record.wallet != wallet || to_hex(crypto::node_id(record.node)).compare(0, name.size(), name) != 0)
      continue;
    if (found != nullptr) return nullptr;
    found = &record;
  }
  return found;
}

Expected<chain::Statement> signed_revocation(const node::RevocationRequest& request, const std::string& id) {
  NS_ASSIGN_OR_RETURN(chain::Statement statement, chain::decode_statement(request.statement));
  const bool fits =
      std::holds_alternative<chain::Revoke>(statement.what) && to_hex(crypto::node_id(statement.node)) == id;
  if (!fits) return make_error(ErrorCode::InvalidArgument, "this is no revocation of the named node");
  return statement;
}

}  // namespace

Expected<node::RevocationReply> draft_revocation(const chain::ChainRules& rules, const chain::ChainTip& tip,
                                                 const node::RevocationRequest& request) {
  const chain::Registry& registry = *tip.registry;
  NS_ASSIGN_OR_RETURN(const crypto::PublicKey wallet, hash_from_hex(request.wallet));
  node::RevocationReply reply;
  reply.network = to_hex(rules.network);
  reply.height = tip.height();
  const auto ids = members_named(registry, {request.node});
  if (!ids.ok()) {
    const auto* revoked =
        ids.error().code == ErrorCode::NotFound ? revocation_of(registry, wallet, request.node) : nullptr;
    if (revoked == nullptr) return ids.error();
    reply.node = to_hex(crypto::node_id(revoked->node));
    reply.revoked_at = revoked->height;
    return reply;
  }
  const chain::MemberRecord& member = *registry.find(ids->front());
  chain::Statement draft;
  draft.node = member.key;
  draft.reference = {tip.height(), tip.block->hash};
  draft.what = chain::Revoke{wallet};
  NS_RETURN_IF_ERROR(chain::admissible(rules, registry, tip.block->hash, draft));
  reply.node = to_hex(member.id);
  reply.statement = chain::encode_statement(draft);
  return reply;
}

Expected<node::RevocationReply> revoke_node(chain::ChainNode& node, const chain::ChainRules& rules,
                                            const node::RevocationRequest& request) {
  if (node.history() == nullptr)
    return make_error(ErrorCode::NotFound,
                      "this node has no history of the network yet; try again when it has");
  NS_ASSIGN_OR_RETURN(node::RevocationReply reply, draft_revocation(rules, node.history()->tip(), request));
  if (request.statement.empty() || reply.revoked_at > 0) return reply;
  NS_ASSIGN_OR_RETURN(const chain::Statement statement, signed_revocation(request, reply.node));
  NS_RETURN_IF_ERROR(node.revoke(statement));
  return reply;
}

}  // namespace neuroshard::runtime
