#include <utility>

#include "core/chain/detail/block_application.h"
#include "core/chain/detail/errors.h"
#include "core/chain/registry.h"

namespace neuroshard::chain {
namespace {

BlockHeader header_of(const Registry& registry, const Hash256& previous, const Hash256& body) {
  return {registry.height(), previous, registry.time_ms(), body, registry.root()};
}

}  // namespace

Expected<Proposed> apply_genesis(const ChainRules& rules, std::uint64_t time_ms, const BlockBody& body,
                                 SignatureChecks& checks) {
  const Registry none;
  NS_ASSIGN_OR_RETURN(RegistryPtr registry,
                      BlockApplication(rules, none, {}, 0, time_ms, &checks).apply_genesis(body));
  return Proposed{header_of(*registry, {}, body_root(body, {})), registry};
}

Expected<RegistryPtr> genesis_registry(const ChainRules& rules, const Block& genesis,
                                       SignatureChecks& checks) {
  NS_ASSIGN_OR_RETURN(Proposed right, apply_genesis(rules, genesis.header.time_ms, genesis.body, checks));
  if (genesis.header != right.header || genesis.opening != Hash256{})
    return denied("the genesis's header does not belong to its founders");
  return std::move(right.registry);
}

Expected<RegistryPtr> apply_block(const ChainRules& rules, const Registry& before, const Hash256& before_hash,
                                  const Block& block, SignatureChecks& checks) {
  const BlockHeader& header = block.header;
  if (header.height != before.height() + 1 || header.previous != before_hash)
    return denied("the block does not follow the one before");
  const Hash256 opening = before.opening(before_hash);
  if (block.opening != opening) return denied("the block is for another round");
  if (body_root(block.body, opening) != header.body) return denied("the block's body is not the header's");
  NS_ASSIGN_OR_RETURN(
      RegistryPtr registry,
      BlockApplication(rules, before, before_hash, header.height, header.time_ms, &checks).apply(block.body));
  if (registry->root() != header.registry) return denied("the block's registry is not the one that results");
  return registry;
}

Expected<Proposed> apply_body(const ChainRules& rules, const Registry& before, const Hash256& before_hash,
                              std::uint64_t time_ms, const BlockBody& body, SignatureChecks& checks) {
  NS_ASSIGN_OR_RETURN(
      RegistryPtr registry,
      BlockApplication(rules, before, before_hash, before.height() + 1, time_ms, &checks).apply(body));
  const BlockHeader header = header_of(*registry, before_hash, body_root(body, before.opening(before_hash)));
  return Proposed{header, std::move(registry)};
}

Expected<void> admissible(const ChainRules& rules, const Registry& before, const Hash256& before_hash,
                          const Statement& statement) {
  return admissible_at(rules, before, before_hash, before.time_ms() + 1, statement);
}

Expected<void> admissible_at(const ChainRules& rules, const Registry& before, const Hash256& before_hash,
                             std::uint64_t time_ms, const Statement& statement) {
  return check_statement({rules, before, before_hash, time_ms, before.is_restricted()}, before, statement);
}

Expected<void> admissible(const ChainRules& rules, const Registry& before, const Hash256& before_hash,
                          const Evidence& evidence) {
  return check_evidence({rules, before, before_hash, before.time_ms() + 1, before.is_restricted()}, before,
                        evidence);
}

BlockBody applicable(const ChainRules& rules, const Registry& before, const Hash256& before_hash,
                     std::uint64_t time_ms, const BlockBody& body) {
  return BlockApplication(rules, before, before_hash, before.height() + 1, time_ms, nullptr).applicable(body);
}

}  // namespace neuroshard::chain
