// Blocks and members of a chain, as "neuroshardd chain" prints and exports them. docs/guide/headless-server.md
// has the keys.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>
#include "core/chain/history.h"
#include "core/node/snapshot.h"

namespace neuroshard::app {

nlohmann::ordered_json block_json(const chain::CertifiedBlock& block);
std::vector<std::string> block_lines(const chain::CertifiedBlock& block);
// Where a chain stands: its newest block, members, voters and the next committee.
nlohmann::ordered_json tip_json(const chain::History& history);
std::vector<std::string> tip_lines(const chain::History& history);
// The members that work for this wallet, and the nodes that it has revoked.
nlohmann::ordered_json wallet_nodes_json(const chain::History& history, const crypto::PublicKey& wallet);
std::vector<std::string> wallet_nodes_lines(const chain::History& history, const crypto::PublicKey& wallet);

// The chain of a running node, for "status".
nlohmann::ordered_json chain_view_json(const node::ChainView& chain);
std::string chain_view_text(const node::ChainView& chain);
// This node's standing, and how far a candidate is from a vote. Empty: no member.
std::string standing_text(const node::ChainView& chain);

}  // namespace neuroshard::app
