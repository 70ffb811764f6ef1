#include "tests/unit/outer/attack_battery.h"

#include <cmath>
#include <limits>
#include <memory>

#include "core/base/check.h"
#include "core/outer/error_feedback.h"

namespace neuroshard::outer {
namespace {

double cosine(const std::vector<float>& a, const std::vector<float>& b) {
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t c = 0; c < a.size(); ++c) {
    ab += double{a[c]} * b[c];
    aa += double{a[c]} * a[c];
    bb += double{b[c]} * b[c];
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

double mean_cosine(const std::vector<std::vector<float>>& deltas, std::size_t honest) {
  double sum = 0, pairs = 0;
  for (std::size_t i = 0; i < honest; ++i)
    for (std::size_t j = 0; j < i; ++j) sum += cosine(deltas[i], deltas[j]), ++pairs;
  return pairs > 0 ? sum / pairs : 0;
}

class Battery {
 public:
  explicit Battery(const BatterySettings& settings)
      : settings_(settings),
        rng_(settings.seed ^ 0xa77ac4),
        task_(task_of(settings.seed)),
        honest_(settings.contributors - (settings.attack ? settings.liars : 0)),
        anchor_(task_->initial_weights()),
        momentum_(anchor_),
        aggregate_(anchor_),
        deltas_(settings.contributors, anchor_) {
    for (std::size_t i = 0; i < settings.contributors; ++i) {
      workers_.emplace_back(task_, i, settings.learner);
      feedback_.emplace_back(anchor_.size(), settings.beta, spool_);
    }
  }

  BatteryResult run() {
    BatteryResult result;
    result.first_loss = task_->held_out_loss(anchor_);
    for (std::uint32_t round = 0; round < settings_.rounds && result.finite; ++round) {
      train();
      result.honest_cosine += mean_cosine(deltas_, honest_) / settings_.rounds;
      step();
      for (const float value : anchor_) result.finite = result.finite && std::isfinite(value);
      if ((round + 1) % 10 == 0 && result.finite) result.every_tenth.push_back(task_->held_out_loss(anchor_));
    }
    result.loss = result.finite ? task_->held_out_loss(anchor_) : std::numeric_limits<double>::infinity();
    result.finite = result.finite && std::isfinite(result.loss);
    return result;
  }

 private:
  static std::shared_ptr<const SoftTask> task_of(std::uint64_t seed) {
    SoftTaskOptions options;
    options.seed = seed;
    auto task = SoftTask::make(options);
    NS_CHECK(task.ok());
    return *task;
  }

  void train() {
    tokens_.assign(settings_.contributors, 0);
    for (std::size_t i = 0; i < honest_; ++i) {
      workers_[i].start_from(anchor_);
      tokens_[i] = workers_[i].train(settings_.steps);
      workers_[i].delta(anchor_, deltas_[i]);
    }
  }

  void send(std::size_t from, std::vector<float>& delta) {
    if (!settings_.top_k) return;
    const CodecOptions codec{Codec::TopK, *settings_.top_k};
    const auto payload = feedback_[from].encode(codec, values_of(Span<const float>(delta)));
    if (!payload.ok()) return;  // a NaN has no encoding; the value as it is meets the rule's own check
    NS_CHECK(decode(*read_all(**payload), delta).ok());
  }

  void send_plain(std::vector<float>& delta) {
    const auto payload = encode({Codec::TopK, *settings_.top_k}, delta);
    if (payload.ok()) NS_CHECK(decode(*payload, delta).ok());  // else as in send()
  }

  void step() {
    for (std::size_t i = 0; i < honest_; ++i) send(i, deltas_[i]);
    if (honest_ < deltas_.size()) {
      const std::vector<Span<const float>> seen(deltas_.begin(),
                                                deltas_.begin() + static_cast<std::ptrdiff_t>(honest_));
      std::vector<ForgedDelta> forged =
          forge(*settings_.attack, seen, deltas_.size() - honest_, tokens_[0], settings_.rule, rng_);
      for (std::size_t i = honest_; i < deltas_.size(); ++i) {
        deltas_[i] = std::move(forged[i - honest_].delta);
        // An attacker's delta has to be a payload of the round's codec, too; it keeps no feedback.
        if (settings_.top_k) send_plain(deltas_[i]);
        tokens_[i] = forged[i - honest_].tokens;
      }
    }
    std::vector<Contribution> contributions(deltas_.size());
    for (std::size_t i = 0; i < deltas_.size(); ++i) {
      contributions[i].id[0] = static_cast<std::uint8_t>(i);
      contributions[i].tokens = tokens_[i];
      contributions[i].delta = deltas_[i];
    }
    const std::uint64_t most = std::uint64_t{settings_.steps} * settings_.learner.batch;
    const auto report = aggregate(settings_.rule, contributions, most, aggregate_);
    NS_CHECK(report.ok());
    if (report->counted > 0) NS_CHECK(outer_step(settings_.outer, aggregate_, momentum_, anchor_).ok());
  }

  const BatterySettings& settings_;
  Rng rng_;
  std::shared_ptr<const SoftTask> task_;
  std::size_t honest_;
  std::vector<float> anchor_, momentum_, aggregate_;
  std::vector<std::vector<float>> deltas_;
  std::vector<std::uint64_t> tokens_;
  std::vector<SoftLearner> workers_;
  MemorySpool spool_;
  std::vector<ErrorFeedback> feedback_;
};

}  // namespace

BatteryResult run_battery(const BatterySettings& settings) {
  return Battery(settings).run();
}

}  // namespace neuroshard::outer
