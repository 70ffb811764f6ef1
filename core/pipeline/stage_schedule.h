// In which order a stage works on its micro-batches, and when its weights change (docs/protocol/pipeline.md#steps).
//
// A batch is a number of tokens. Micro-batches are let in, in the order of their arrival, until those that went
// through and those that are under way fill it; the later ones wait until the weights have changed. So every
// micro-batch meets the same weights on its way to the head and back, whatever the nodes beside do, and a single
// driver's batches are those of training in one process. Nothing waits on an earlier stage, so stages can't wait for
// each other in a circle.
//
// Order: gradients of inputs first, as the stage before waits for them; then forward passes; then gradients of
// weights, for which nobody waits (zero-bubble schedules, Qi et al. 2024, arXiv:2401.10241). They come earlier when
// too many are due, as each holds its activations.
//
// Pure: no time, no thread, no computation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>

namespace neuroshard::pipeline {

enum class JobKind : std::uint8_t {
  Forward,
  Backward,  // gradient of the input
  Weights,   // gradients of the weights
  Step,      // the optimizer's; no micro-batch
};

struct Job {
  JobKind kind = JobKind::Forward;
  std::uint64_t id = 0;
  friend bool operator==(const Job&, const Job&) = default;
};

// Where there is memory for so many.
inline constexpr std::uint32_t default_most_held = 16;
inline constexpr std::uint32_t default_most_due = 4;

class StageSchedule {
 public:
  struct Limits {  // each at least 1
    std::uint64_t batch_tokens = 0;
    std::size_t most_held = default_most_held;  // micro-batches whose activations the stage keeps
    std::size_t most_due = default_most_due;    // of them, those whose weights' gradients wait
  };
  explicit StageSchedule(const Limits& limits);

  // A micro-batch that this stage has not seen; targets: how many of its tokens have one.
  void arrived(std::uint64_t id, std::uint64_t tokens, std::uint64_t targets);
  void gradient_arrived(std::uint64_t id);  // after done(Forward)
  // The job is over. A micro-batch whose Backward is over counts in the step.
  void done(const Job& job);
  // Forgets a micro-batch that does not count yet; others may take its place in the batch. False if it counts.
  bool drop(std::uint64_t id);

  // The job to do now. The same answer until something of the above is called.
  std::optional<Job> next() const;

  struct Counted {
    std::uint64_t tokens = 0, targets = 0, micro_batches = 0;
  };
  // It has arrived and is not let in yet.
  bool waits(std::uint64_t id) const { return waiting_sizes_.contains(id); }
  const Counted& counted() const { return counted_; }      // for the next step
  std::size_t waiting() const { return waiting_.size(); }  // not let in yet
  std::size_t under_way() const { return under_way_.size(); }

 private:
  struct MicroBatch {
    std::uint64_t tokens = 0, targets = 0;
  };
  Limits limits_;
  std::map<std::uint64_t, MicroBatch> waiting_sizes_, under_way_;
  std::deque<std::uint64_t> waiting_, gradients_, due_;
  std::uint64_t under_way_tokens_ = 0;
  Counted counted_;
};

}  // namespace neuroshard::pipeline
