// A small learner for simulations of outer rounds: softmax regression on a seeded task, thousands of
// parameters, no Torch, the same bits on every machine. It stands in for the model of a node when the rounds
// themselves are what is looked at: honest deltas are noisy and nearly orthogonal (pairwise cosine 0.05 to
// 0.3, as of workers on different text), contributors may see different classes, and the loss has a floor
// that a bad step visibly leaves. It stands beside the rules because `simulate` and their tests both need it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/expected.h"
#include "core/base/rng.h"
#include "core/base/span.h"

namespace neuroshard::outer {

struct SoftTaskOptions {
  std::uint64_t seed = 1;
  std::uint32_t features = 256;   // a multiple of 8, 8 to 4096
  std::uint32_t classes = 10;     // 2 to 256
  std::uint32_t samples = 16384;  // to train on; at least one per class
  std::uint32_t held_out = 2048;
  float separation = 0.13f;  // standard deviation of a class's mean in each feature; the noise has 1
};

// The learning task: samples around one mean for each class.  Immutable after make, shared by all
// learners of a simulation.
class SoftTask {
 public:
  // InvalidArgument for sizes out of range.
  static Expected<std::shared_ptr<const SoftTask>> make(const SoftTaskOptions& options);

  const SoftTaskOptions& options() const { return options_; }
  // classes · (features + 1): a row of weights and a bias for each class.
  std::size_t parameters() const;
  // Where training starts: zeros, so that the first loss is log(classes).
  std::vector<float> initial_weights() const { return std::vector<float>(parameters(), 0.0f); }
  // Mean cross-entropy over the held-out samples, in nats. weights: [parameters()].
  double held_out_loss(Span<const float> weights) const;

 private:
  friend class SoftLearner;
  explicit SoftTask(const SoftTaskOptions& options) : options_(options) {}

  SoftTaskOptions options_;
  std::vector<float> train_, held_out_;  // sample s is of class s mod classes
};

struct SoftLearnerOptions {
  enum class Inner : std::uint8_t { Sgd, AdamW };
  Inner inner = Inner::AdamW;
  float lr = 1e-3f;
  float weight_decay = 0.01f;  // AdamW only
  std::uint32_t batch = 32;    // samples of a step; a sample counts as one token
  // Share of a learner's samples that come from its own two classes: 0 all alike, 1 two classes only.
  float non_iid = 0.3f;
};

// One worker. Its batches follow from (task's seed, worker, step).  Threads: one.
class SoftLearner {
 public:
  // first_step: where the batches go on after a restart; moments begin at zero then, as after a real one.
  SoftLearner(std::shared_ptr<const SoftTask> task, std::uint64_t worker, const SoftLearnerOptions& options,
              std::uint64_t first_step = 0);

  // Local weights become the anchor; moments stay. [parameters()]
  void start_from(Span<const float> anchor);
  // Inner steps; returns the tokens they trained.
  std::uint64_t train(std::uint32_t steps);
  Span<const float> weights() const { return weights_; }
  std::uint64_t step() const { return step_; }
  // anchor − local.
  void delta(Span<const float> anchor, Span<float> out) const;

  // Mean gradient of the batch of `step` at `weights` into out; returns the batch's loss.
  double gradient(Span<const float> weights, std::uint64_t step, Span<float> out) const;

 private:
  void apply(Span<const float> gradient);

  std::shared_ptr<const SoftTask> task_;
  std::uint64_t worker_;
  SoftLearnerOptions options_;
  std::uint64_t step_;
  std::uint64_t updates_ = 0;  // since the moments were zero
  std::vector<float> weights_, gradient_, first_moment_, second_moment_;
};

}  // namespace neuroshard::outer
