#include "core/runtime/continuation_call.h"

#include <fmt/format.h>

#include <algorithm>

namespace neuroshard::runtime {
namespace {

constexpr std::size_t least_characters = 8, most_characters = 64;

bool is_hex(const std::string& text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

Expected<net::NodeId> member_named(const chain::Registry& registry, const std::string& name) {
  if (name.size() < least_characters || name.size() > most_characters || !is_hex(name))
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("'{}' is no node id: give its first {} or more hex characters",
                                  name.substr(0, most_characters), least_characters));
  const chain::MemberRecord* found = nullptr;
  for (const chain::MemberRecord& member : registry.members()) {
    if (to_hex(member.id).compare(0, name.size(), name) != 0) continue;
    if (found != nullptr)
      return make_error(ErrorCode::InvalidArgument,
                        fmt::format("the ids of several members begin with {}: give more characters", name));
    found = &member;
  }
  if (found != nullptr) return found->id;
  return make_error(ErrorCode::NotFound, fmt::format("no member's id begins with {}; the members are in "
                                                     "\"neuroshardd chain show\"",
                                                     name));
}

Expected<node::ContinuationReply> agree(chain::ChainNode& node, const std::string& block) {
  const chain::BlockPtr& asked = node.continuation().asks();
  if (!asked || to_hex(asked->hash) != block)
    return make_error(ErrorCode::NotFound, "no such proposal waits for this node's person any more");
  node.continuation().agree(asked->hash);
  return node::ContinuationReply{};
}

}  // namespace

Expected<std::vector<net::NodeId>> members_named(const chain::Registry& registry,
                                                 const std::vector<std::string>& names) {
  std::vector<net::NodeId> ids;
  for (const std::string& name : names) {
    NS_ASSIGN_OR_RETURN(const net::NodeId id, member_named(registry, name));
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  }
  return ids;
}

Expected<node::ContinuationReply> go_on(chain::ChainNode& node, const node::ContinuationRequest& request) {
  if (!request.agree.empty()) return agree(node, request.agree);
  if (request.without.empty())
    return make_error(ErrorCode::InvalidArgument, "name the members to go on without: --without NODE");
  if (node.history() == nullptr)
    return make_error(ErrorCode::NotFound, "this node has no history yet that could go on");
  NS_ASSIGN_OR_RETURN(const auto ids, members_named(*node.history()->tip().registry, request.without));
  NS_RETURN_IF_ERROR(node.continuation().continue_without(ids));
  node::ContinuationReply reply;
  for (const net::NodeId& id : ids) reply.without.push_back(to_hex(id));
  return reply;
}

}  // namespace neuroshard::runtime
