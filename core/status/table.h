// The newest report of each node, as many as there is room for: fresh ones only, one per node, a bounded
// number per wallet, and members of the rounds before everybody else.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "core/status/report.h"

namespace neuroshard::status {

// What became of a report.
enum class Taken : std::uint8_t {
  New,     // kept
  Known,   // this node's report is that one, or a later one
  Old,     // past report_life: clocks and slow paths, nobody's fault
  Denied,  // signature, network, date or delegation
  NoRoom,  // of its wallet there are enough, or of all
  Count_
};
std::string_view to_string(Taken taken);

struct TableLimits {
  std::size_t nodes = 1024;
  std::size_t per_wallet = 32;  // likewise of those without a wallet, all together
};

class StatusTable {
 public:
  // Threads: one.
  explicit StatusTable(const Hash256& network, TableLimits limits = {})
      : network_(network), limits_(limits) {}

  Taken take(const StatusReport& report, WallTime now);
  void drop_old(WallTime now);
  // Who makes the rounds, by the newest certificate; empty: not known.
  void set_members(std::set<net::NodeId> members) { members_ = std::move(members); }
  const std::set<net::NodeId>& members() const { return members_; }
  bool is_member(const net::NodeId& id) const { return members_.count(id) != 0; }

  const std::map<net::NodeId, StatusReport>& all() const { return reports_; }
  const StatusReport* find(const net::NodeId& id) const;
  std::uint64_t count(Taken taken) const { return counts_[static_cast<std::size_t>(taken)]; }

 private:
  using Wallet = crypto::PublicKey;  // zeros: none
  static Wallet wallet_of(const StatusReport& report);
  Taken judge(const StatusReport& report, const net::NodeId& id, WallTime now);
  bool make_room(const StatusReport& report, const net::NodeId& id);

  Hash256 network_{};
  TableLimits limits_;
  std::set<net::NodeId> members_;
  std::map<net::NodeId, StatusReport> reports_;
  std::array<std::uint64_t, static_cast<std::size_t>(Taken::Count_)> counts_{};
};

}  // namespace neuroshard::status
