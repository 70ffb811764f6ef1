// The training of the network, out of what its nodes say (SPEC §16). Nobody's word counts for more than any
// other's: each wallet weighs one, shared by its nodes, and of sums and means there are none, only weighted
// lower medians and shares; so an absurd loss moves a median by one place at most, and a hundred keys of one
// wallet weigh as much as one. Where the members of the newest certificate are known, only they count.
// Wallets cost nothing by themselves: who makes many, and gets each into the rounds, does weigh more.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/status/table.h"

namespace neuroshard::status {

// Whether nodes hold the anchor that they should hold. Of a round that more than half of the weight names it
// is the one with the most weight (of equals the lower hash); of another round, because nodes are not equally
// far, the certified one, where that is known.
struct Agreement {
  std::uint64_t round = 0;             // the newest one that was compared
  double share = 0;                    // of the weight that could be compared
  std::map<net::NodeId, bool> agrees;  // who could be compared
  std::vector<net::NodeId> dissenters() const;
};
// The certified anchor of a round; nothing: not known.
using CertifiedAnchor = std::function<std::optional<Hash256>(std::uint64_t round)>;

struct Summary {
  std::uint32_t reports = 0;   // all fresh ones
  std::uint32_t counted = 0;   // nodes
  std::uint32_t wallets = 0;   // of them; all nodes without one are one together
  std::uint32_t training = 0;  // counted nodes that say they train
  std::optional<double> loss;  // the median; nats per token
  std::optional<double> tokens_per_second;
  std::uint64_t round = 0;  // that the median node has
  std::uint32_t data_shards = 0;
  std::optional<double> sync_success;  // of the median node, among those that had a round
  std::optional<Agreement> agreement;  // nothing: nobody could be compared
};
// Reports that count, with their weights; in the order of ids.
struct Counted {
  const StatusReport* report = nullptr;
  double weight = 0;  // 1 / nodes of its wallet
};
std::vector<Counted> counted_reports(const StatusTable& table);
Summary summarise(const StatusTable& table, const CertifiedAnchor& certified = {});

// How the loss of the network goes: one point for each round, as this node has seen them.
enum class Trend : std::uint8_t { InsufficientData, Improving, Stable, Degrading };
std::string_view to_string(Trend trend);  // "insufficient data", …

struct LossPoint {
  std::uint64_t round = 0;
  double loss = 0;  // exponential mean
};

class LossHistory {
 public:
  static constexpr double smoothing = 0.1;
  static constexpr std::size_t most_points = 512;
  static constexpr std::size_t least_points = 5;   // before anything is said of a trend
  static constexpr std::size_t trend_points = 10;  // that the trend looks at
  static constexpr double trend_change = 0.01;     // less than one percent over them is "stable"
  static constexpr double verified_below = 0.9;    // of the first three points' mean

  // The median loss at the end of a round; rounds that are not newer are left out.
  void add(std::uint64_t round, double loss);
  const std::deque<LossPoint>& points() const { return points_; }
  std::optional<double> loss() const;
  std::optional<double> least() const { return least_; }
  Trend trend() const;
  // training_verified: there are five points, and the last three's mean is below 0.9 of the first three's
  // that this node saw.
  struct Verdict {
    bool verified = false;
    std::string reason;  // the rule and how it came out
  };
  Verdict verdict() const;

 private:
  std::deque<LossPoint> points_;  // the newest
  std::vector<double> first_;     // three points
  std::uint64_t count_ = 0;
  std::optional<double> least_;
};

}  // namespace neuroshard::status
