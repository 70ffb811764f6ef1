#include "core/status/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

namespace neuroshard::status {
namespace {

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
    if (2 * below >= whole * (1 - 1e-12)) return one.value;
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

// What a report says of a round's anchor.
std::optional<Hash256> anchor_of(const OwnStatus& status, std::uint64_t round) {
  const Hash256* anchor = nullptr;
  if (status.round == round) anchor = &status.anchor;
  if (round + 1 == status.round) anchor = &status.previous_anchor;
  if (anchor == nullptr || *anchor == Hash256{}) return std::nullopt;
  return *anchor;
}

std::optional<Agreement> agreement_of(const std::vector<Counted>& counted) {
  double whole = 0;
  std::set<std::uint64_t> rounds;
  for (const Counted& one : counted) {
    whole += one.weight;
    if (one.report->status.round > 0) rounds.insert(one.report->status.round);
    if (one.report->status.round > 1) rounds.insert(one.report->status.round - 1);
  }
  for (auto round = rounds.rbegin(); round != rounds.rend(); ++round) {
    std::map<Hash256, double> votes;
    double said = 0;
    for (const Counted& one : counted) {
      if (const auto anchor = anchor_of(one.report->status, *round)) {
        votes[*anchor] += one.weight;
        said += one.weight;
      }
    }
    if (votes.empty() || 2 * said < whole * (1 - 1e-12)) continue;
    const auto most = std::max_element(votes.begin(), votes.end(), [](const auto& a, const auto& b) {
      return a.second < b.second - 1e-12;  // the first of equals stays
    });
    Agreement agreement{*round, most->first, most->second / said, {}};
    for (const Counted& one : counted) {
      const auto anchor = anchor_of(one.report->status, *round);
      if (anchor && *anchor != most->first) agreement.dissenters.push_back(one.report->id());
    }
    if (agreement.dissenters.empty()) agreement.share = 1;  // sums of thirds are not
    return agreement;
  }
  return std::nullopt;
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

Summary summarise(const StatusTable& table) {
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
  summary.agreement = agreement_of(counted);
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
