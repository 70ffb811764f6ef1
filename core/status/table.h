// The newest report of each node, as far as there is room: fresh ones only, one per node, a bounded number
// per wallet, and members of the rounds first.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "core/status/report.h"

namespace neuroshard::status {

// The outcome of a report.
enum class Taken : std::uint8_t {
  New,     // kept
  Known,   // the table has this report of the node, or a later one
  Old,     // past report_life or the end of its delegation; no fault, because clocks and paths differ
  Future,  // made later than clock_skew allows; no fault of the node that passes it on, whose clock may differ
  Denied,  // signature, network or delegation
  NoRoom,  // the wallet's places, or all, are taken
  Count_
};
std::string_view to_string(Taken taken);

struct TableLimits {
  std::size_t nodes = 1024;
  std::size_t per_wallet = 32;  // also for all nodes without a wallet together
};

class StatusTable {
 public:
  // Threads: one.
  explicit StatusTable(const Hash256& network, TableLimits limits = {})
      : network_(network), limits_(limits) {}

  Taken take(const StatusReport& report, WallTime now);
  void drop_old(WallTime now);
  void drop(const net::NodeId& id) { reports_.erase(id); }
  // The members of the rounds, by the newest certificate; empty: not known.
  void set_members(std::set<net::NodeId> members) { members_ = std::move(members); }
  const std::set<net::NodeId>& members() const { return members_; }
  bool is_member(const net::NodeId& id) const { return members_.count(id) != 0; }

  using Reports = std::map<net::NodeId, StatusReport>;
  const Reports& all() const { return reports_; }
  const StatusReport* find(const net::NodeId& id) const;
  std::uint64_t count(Taken taken) const { return counts_[static_cast<std::size_t>(taken)]; }

 private:
  using Wallet = crypto::PublicKey;  // zeros: none
  static Wallet wallet_of(const StatusReport& report);
  Taken judge(const StatusReport& report, const net::NodeId& id, WallTime now);
  // The entry that goes for this report; the end where none has to. Nothing: no room.
  std::optional<Reports::iterator> find_room(const StatusReport& report, const net::NodeId& id);

  Hash256 network_{};
  TableLimits limits_;
  std::set<net::NodeId> members_;
  Reports reports_;
  std::array<std::uint64_t, static_cast<std::size_t>(Taken::Count_)> counts_{};
};

}  // namespace neuroshard::status
