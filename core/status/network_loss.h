// The network loss: the lower median of the losses that members report for the newest round that enough of
// them have reached (docs/protocol/status-reports.md, "Network loss"). Its history over the rounds, and the
// trend. Nothing here reads a clock.  Threads: one.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace neuroshard::status {

// One report that counts.
struct ReportedLoss {
  std::uint64_t round = 0;  // of the anchor that the node held
  double loss = 0;          // nats per token
  double weight = 0;        // 1 / nodes of its wallet
};
struct NetworkLoss {
  std::uint64_t round = 0;
  double loss = 0;
};
// A single wallet weighs less than half of what counts, where more than two report.
inline constexpr double least_weight_that_counts = 2;
// The newest round is the newest one that at least half of the weight has reached, and more than
// least_weight_that_counts; where less reports in all, the newest one that all have reached. A report of a
// later round counts, one of an earlier round does not. Nothing: no reports.
std::optional<NetworkLoss> network_loss(const std::vector<ReportedLoss>& reports);

// Keeps a node from reporting an old loss for a new round: a node that does not train holds new anchors, but
// its loss stays that of its last step.
class OwnLoss {
 public:
  // The loss to report now; nothing: the last step is from before the previous round. round: of the anchor
  // that the node holds. steps: trained in total; loss: of the newest step.
  std::optional<double> at(std::uint64_t round, std::uint64_t steps, std::optional<double> loss);

 private:
  std::optional<std::uint64_t> steps_;
  std::uint64_t round_ = 0;  // in which it made the newest step
};

enum class Trend : std::uint8_t { InsufficientData, Improving, Stable, Degrading };
std::string_view to_string(Trend trend);  // "insufficient data", …

struct LossPoint {
  std::uint64_t round = 0;
  double loss = 0;  // the network loss
  double mean = 0;  // exponential mean over the rounds, for the trend
};

// One point for each round that this node has seen.
class LossHistory {
 public:
  static constexpr double smoothing = 0.1;
  static constexpr std::size_t most_points = 512;
  static constexpr std::size_t least_points = 5;   // before there is a trend
  static constexpr std::size_t trend_points = 10;  // that the trend uses
  static constexpr double trend_change = 0.01;     // a smaller change of the mean over them is "stable"
  static constexpr double verified_below = 0.9;    // of the first three points' mean

  // Replaces the point of the newest round, because reports of a round come in one after the other. Ignores
  // an older round.
  void add(const NetworkLoss& now);
  const std::deque<LossPoint>& points() const { return points_; }
  std::optional<double> least() const;
  Trend trend() const;
  // training_verified: there are five points, and the mean of the last three is below 0.9 of the mean of the
  // first three that this node saw.
  struct Verdict {
    bool verified = false;
    std::string reason;  // the rule and its values
  };
  Verdict verdict() const;

 private:
  static constexpr std::size_t compared_points = 3;

  std::deque<LossPoint> points_;  // the newest
  std::vector<double> first_;     // compared_points of them at most
  std::uint64_t count_ = 0;
  std::optional<double> least_before_;  // the newest point
};

}  // namespace neuroshard::status
