#include "core/status/table.h"

#include <algorithm>
#include <iterator>

namespace neuroshard::status {

std::string_view to_string(Taken taken) {
  static constexpr std::string_view names[] = {
      "taken", "known already", "too old", "from the future", "a report that does not hold", "no room"};
  static_assert(std::size(names) == static_cast<std::size_t>(Taken::Count_));
  return names[static_cast<std::size_t>(taken)];
}

StatusTable::Wallet StatusTable::wallet_of(const StatusReport& report) {
  return report.delegation ? report.delegation->wallet_key : Wallet{};
}

Taken StatusTable::take(const StatusReport& report, WallTime now) {
  const net::NodeId id = report.id();
  const Taken taken = judge(report, id, now);
  ++counts_[static_cast<std::size_t>(taken)];
  if (taken == Taken::New) reports_[id] = report;
  return taken;
}

// The cheap checks first: only a report that would be kept has its signature checked.
Taken StatusTable::judge(const StatusReport& report, const net::NodeId& id, WallTime now) {
  if (const StatusReport* known = find(id); known != nullptr && report.made <= known->made)
    return Taken::Known;
  if (report.made > now + clock_skew) return Taken::Future;
  const auto victim = find_room(report, id);
  if (!victim) return Taken::NoRoom;
  const auto holds = check_report(report, network_, now);
  if (!holds.ok()) return holds.error().code == ErrorCode::Timeout ? Taken::Old : Taken::Denied;
  if (*victim != reports_.end()) reports_.erase(*victim);
  return Taken::New;
}

std::optional<StatusTable::Reports::iterator> StatusTable::find_room(const StatusReport& report,
                                                                     const net::NodeId& id) {
  if (find(id) != nullptr) return reports_.end();
  const bool member = is_member(id);
  const Wallet wallet = wallet_of(report);
  const auto of_wallet = std::count_if(reports_.begin(), reports_.end(), [&](const auto& entry) {
    return wallet_of(entry.second) == wallet && !is_member(entry.first);
  });
  if (!member && static_cast<std::size_t>(of_wallet) >= limits_.per_wallet) return std::nullopt;
  if (reports_.size() < limits_.nodes) return reports_.end();
  if (!member) return std::nullopt;
  auto oldest = reports_.end();
  for (auto at = reports_.begin(); at != reports_.end(); ++at) {
    if (is_member(at->first)) continue;
    if (oldest == reports_.end() || at->second.made < oldest->second.made) oldest = at;
  }
  return oldest == reports_.end() ? std::nullopt : std::optional(oldest);
}

void StatusTable::drop_old(WallTime now) {
  std::erase_if(reports_, [&](const auto& entry) {
    return entry.second.made < now - report_life || !delegation_lasts(entry.second.delegation, now);
  });
}

const StatusReport* StatusTable::find(const net::NodeId& id) const {
  const auto at = reports_.find(id);
  return at == reports_.end() ? nullptr : &at->second;
}

}  // namespace neuroshard::status
