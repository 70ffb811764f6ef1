#include "core/status/summary.h"

#include <algorithm>
#include <functional>

#include "core/status/median.h"

namespace neuroshard::status {
namespace {

std::optional<double> median_of(const std::vector<Counted>& counted,
                                const std::function<std::optional<double>(const OwnStatus&)>& value) {
  std::vector<Weighted> values;
  for (const Counted& one : counted)
    if (const auto given = value(one.report->status)) values.push_back({*given, one.weight});
  return lower_median(std::move(values));
}

// Which round's anchors a report names, the newest first.
std::vector<std::pair<std::uint64_t, Hash256>> anchors_of(const OwnStatus& status) {
  std::vector<std::pair<std::uint64_t, Hash256>> named;
  if (status.round > 0 && status.anchor != Hash256{}) named.emplace_back(status.round, status.anchor);
  if (status.round > 1 && status.previous_anchor != Hash256{})
    named.emplace_back(status.round - 1, status.previous_anchor);
  return named;
}

// Of the rounds that more than half of the weight names.
std::map<std::uint64_t, Hash256> majorities(const std::vector<Counted>& counted) {
  double whole = 0;
  std::map<std::uint64_t, std::map<Hash256, double>> votes;
  for (const Counted& one : counted) {
    whole += one.weight;
    for (const auto& [round, anchor] : anchors_of(one.report->status)) votes[round][anchor] += one.weight;
  }
  std::map<std::uint64_t, Hash256> found;
  for (const auto& [round, anchors] : votes) {
    double said = 0;
    auto most = anchors.begin();
    for (auto at = anchors.begin(); at != anchors.end(); ++at) {
      said += at->second;
      if (at->second > most->second + weight_tolerance) most = at;
    }
    if (2 * said > whole * (1 + weight_tolerance)) found[round] = most->first;
  }
  return found;
}

std::optional<Agreement> agreement_of(const std::vector<Counted>& counted, const CertifiedAnchor& certified) {
  const std::map<std::uint64_t, Hash256> found = majorities(counted);
  const auto right = [&](std::uint64_t round) -> std::optional<Hash256> {
    if (const auto at = found.find(round); at != found.end()) return at->second;
    return certified ? certified(round) : std::nullopt;
  };
  Agreement agreement;
  double compared = 0, agreeing = 0;
  bool all = true;
  for (const Counted& one : counted) {
    for (const auto& [round, anchor] : anchors_of(one.report->status)) {
      const auto expected = right(round);
      if (!expected) continue;
      const bool same = anchor == *expected;
      agreement.agrees[one.report->id()] = same;
      agreement.round = std::max(agreement.round, round);
      compared += one.weight;
      agreeing += same ? one.weight : 0;
      all = all && same;
      break;
    }
  }
  if (compared == 0) return std::nullopt;
  agreement.share = all ? 1 : agreeing / compared;  // sums of thirds are not 1
  return agreement;
}

std::optional<NetworkLoss> network_loss_of(const std::vector<Counted>& counted) {
  std::vector<ReportedLoss> reports;
  for (const Counted& one : counted)
    if (const OwnStatus& status = one.report->status; status.loss)
      reports.push_back({status.round, *status.loss, one.weight});
  return network_loss(reports);
}

}  // namespace

std::vector<Counted> counted_reports(const StatusTable& table) {
  std::vector<Counted> counted;
  std::map<crypto::PublicKey, std::size_t> of_wallet;
  const auto wallet_of = [](const StatusReport& report) {
    return report.delegation ? report.delegation->wallet_key : crypto::PublicKey{};
  };
  for (const auto& [id, report] : table.all()) {
    if (!table.members().empty() && !table.is_member(id)) continue;
    counted.push_back({&report, 0});
    ++of_wallet[wallet_of(report)];
  }
  for (Counted& one : counted) one.weight = 1.0 / static_cast<double>(of_wallet[wallet_of(*one.report)]);
  return counted;
}

std::vector<net::NodeId> Agreement::dissenters() const {
  std::vector<net::NodeId> found;
  for (const auto& [id, same] : agrees)
    if (!same) found.push_back(id);
  return found;
}

Summary summarise(const StatusTable& table, const CertifiedAnchor& certified) {
  const std::vector<Counted> counted = counted_reports(table);
  Summary summary;
  summary.reports = static_cast<std::uint32_t>(table.all().size());
  summary.counted = static_cast<std::uint32_t>(counted.size());
  double wallets = 0;
  std::set<std::uint32_t> shards;
  for (const Counted& one : counted) {
    wallets += one.weight;
    summary.training += one.report->status.training ? 1 : 0;
    if (one.report->status.shard) shards.insert(*one.report->status.shard);
  }
  summary.wallets = static_cast<std::uint32_t>(wallets + 0.5);
  summary.data_shards = static_cast<std::uint32_t>(shards.size());
  summary.loss = network_loss_of(counted);
  summary.tokens_per_second = median_of(counted, [](const OwnStatus& status) -> std::optional<double> {
    return status.training ? std::optional<double>(status.tokens_per_second) : std::nullopt;
  });
  summary.round = static_cast<std::uint64_t>(median_of(counted, [](const OwnStatus& status) {
                                               return static_cast<double>(status.round);
                                             }).value_or(0));
  summary.sync_success = median_of(counted, [](const OwnStatus& status) -> std::optional<double> {
    const int rounds = status.synced + status.missed;
    return rounds > 0 ? std::optional<double>(static_cast<double>(status.synced) / rounds) : std::nullopt;
  });
  summary.agreement = agreement_of(counted, certified);
  return summary;
}

}  // namespace neuroshard::status
