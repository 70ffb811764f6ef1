// The training of the network, computed from the reports of its nodes (docs/protocol/status-reports.md). Each
// wallet has the weight one, shared by its nodes. There are no sums and means, only weighted lower medians
// and shares: an absurd loss moves a median by one place at most, and a hundred keys of one wallet weigh as
// much as one. Where the members of the newest certificate are known, only they count. Limit: wallets are
// free, so an owner of many wallets whose nodes are all in the rounds weighs more.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "core/status/network_loss.h"
#include "core/status/table.h"

namespace neuroshard::status {

// Whether nodes hold the right anchor. If more than half of the weight reports a round, the right anchor of
// it is the one with the most weight (among equals the lower hash). For another round it is the certified
// anchor, where that is known, because nodes are not equally far.
struct Agreement {
  std::uint64_t round = 0;             // the newest compared one
  double share = 0;                    // of the comparable weight
  std::map<net::NodeId, bool> agrees;  // the nodes that could be compared
  std::vector<net::NodeId> dissenters() const;
};
// The certified anchor of a round; nothing: not known.
using CertifiedAnchor = std::function<std::optional<Hash256>(std::uint64_t round)>;

struct Summary {
  std::uint32_t reports = 0;   // all fresh ones
  std::uint32_t counted = 0;   // nodes
  std::uint32_t wallets = 0;   // of them; all nodes without one count as one
  std::uint32_t training = 0;  // counted nodes that report training
  std::optional<NetworkLoss> loss;
  std::optional<double> tokens_per_second;
  std::uint64_t round = 0;  // of the median node
  std::uint32_t data_shards = 0;
  std::optional<double> sync_success;  // of the median node, among those that had a round
  std::optional<Agreement> agreement;  // nothing: no node could be compared
};
// The reports that count, with their weights, in the order of ids.
struct Counted {
  const StatusReport* report = nullptr;
  double weight = 0;  // 1 / nodes of its wallet
};
std::vector<Counted> counted_reports(const StatusTable& table);
Summary summarise(const StatusTable& table, const CertifiedAnchor& certified = {});

}  // namespace neuroshard::status
