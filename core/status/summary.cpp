#include "core/status/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

namespace neuroshard::status {
namespace {

constexpr double tolerance = 1e-12;  // of sums of weights

struct Weighed {
  double value = 0, weight = 0;
};

// The least value at or below which half of the weight lies.
std::optional<double> median(std::vector<Weighed> values) {
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end(),
            [](const Weighed& a, const Weighed& b) { return a.value < b.value; });
  double whole = 0;
  for (const Weighed& one : values) whole += one.weight;
  double below = 0;
  for (const Weighed& one : values) {
    below += one.weight;
    if (2 * below >= whole * (1 - tolerance)) return one.value;
  }
  return values.back().value;
}

std::optional<double> median_of(const std::vector<Counted>& counted,
                                const std::function<std::optional<double>(const OwnStatus&)>& value) {
  std::vector<Weighed> values;
  for (const Counted& one : counted)
    if (const auto given = value(one.report->status)) values.push_back({*given, one.weight});
  return median(std::move(values));
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
      if (at->second > most->second + tolerance) most = at;
    }
    if (2 * said > whole * (1 + tolerance)) found[round] = most->first;
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

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
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
  summary.loss = median_of(counted, [](const OwnStatus& status) { return status.loss; });
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

std::string_view to_string(Trend trend) {
  switch (trend) {
    case Trend::InsufficientData: return "insufficient data";
    case Trend::Improving: return "improving";
    case Trend::Stable: return "stable";
    case Trend::Degrading: return "degrading";
  }
  return "unknown";
}

void LossHistory::add(std::uint64_t round, double loss) {
  if (!points_.empty() && round <= points_.back().round) return;
  const double smoothed =
      points_.empty() ? loss : points_.back().loss + smoothing * (loss - points_.back().loss);
  points_.push_back({round, smoothed});
  if (points_.size() > most_points) points_.pop_front();
  if (first_.size() < 3) first_.push_back(smoothed);
  least_ = std::min(least_.value_or(smoothed), smoothed);
  ++count_;
}

std::optional<double> LossHistory::loss() const {
  return points_.empty() ? std::nullopt : std::optional<double>(points_.back().loss);
}

Trend LossHistory::trend() const {
  if (count_ < least_points) return Trend::InsufficientData;
  const std::size_t looked_at = std::min(points_.size(), trend_points);
  const std::size_t half = looked_at / 2;
  std::vector<double> before, after;
  for (std::size_t i = points_.size() - looked_at; i < points_.size(); ++i)
    (i < points_.size() - half ? before : after).push_back(points_[i].loss);
  const double was = mean(before), is = mean(after);
  if (was <= 0) return Trend::Stable;
  const double change = (is - was) / was;
  return change < -trend_change ? Trend::Improving : change > trend_change ? Trend::Degrading : Trend::Stable;
}

LossHistory::Verdict LossHistory::verdict() const {
  if (count_ < least_points) {
    return {false, fmt::format("not known before {} rounds have been seen; {} have", least_points, count_)};
  }
  std::vector<double> last;
  for (std::size_t i = points_.size() - 3; i < points_.size(); ++i) last.push_back(points_[i].loss);
  const double from = mean(first_), to = mean(last);
  const bool verified = to < verified_below * from;
  const char* const rule = "a fall by 10 % counts as shown";
  const double percent = from > 0 ? 100 * (from - to) / from : 0;
  return {verified, fmt::format("the loss went from {:.4f} to {:.4f} ({:+.1f} %) in the {} rounds that this "
                                "node has seen; {}",
                                from, to, -percent, count_, rule)};
}

}  // namespace neuroshard::status
