// Connects the pipeline of a network whose members hold parts of the model (core/pipeline) with the training of this node.
// The pipeline's executor takes micro-batches in and passes them on. The compute thread computes them while it is in step();
// outside of it, jobs wait. So whatever the compute thread does between two steps, the weights change between two steps.
//
// The compute thread also reads this node's text for the driver, which has no thread of its own, and generates texts
// (pipeline_texts.h).
//
// Threads: stated at each group of methods. One lock, held for short times.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/engine/anchor_stage.h"
#include "core/engine/job_queue.h"
#include "core/engine/pipeline_texts.h"
#include "core/engine/stage_speed.h"
#include "core/pipeline/driver.h"
#include "core/pipeline/stage_lane.h"
#include "core/pipeline/text_lane.h"
#include "core/train/inner_loop.h"

namespace neuroshard::engine {

// A model's part that is ready to be trained. Jobs that use the lane run only while the model is attached.
struct PipelinePart {
  std::shared_ptr<pipeline::StageLane> lane;
  std::shared_ptr<pipeline::TextLane> text_lane;
  std::shared_ptr<AnchorStage> anchor;  // behind text_lane
  std::shared_ptr<JobQueue> jobs;
  compute::StageRange range;
  compute::ModelShape shape;
  std::uint64_t batch_tokens = 0;  // of a step
  std::uint32_t sequences = 1;     // of a micro-batch
  std::uint32_t most_held = 1;     // micro-batches whose activations the memory plan has room for
  std::uint64_t text_bytes = 0;    // for texts, beside their weights; 0: there is no memory for texts
};

class PipelineTrainer final {
 public:
  // clock outlives the trainer.
  explicit PipelineTrainer(const Clock& clock) : clock_(clock) {}

  // ---- The pipeline's executor.
  struct Listener {
    Executor* executor = nullptr;  // runs all callbacks
    std::function<void(const PipelinePart&)> ready;
    std::function<void()>
        gone;  // the part that was ready before: its lane and its jobs are of no use any more
    std::function<void()> text;  // next_text() has something again
  };
  // Notifies the listener at once if a model is ready. Posts nothing to an earlier listener afterwards; calls posted before
  // may still run.  Threads: any.
  void listen(Listener listener);
  // The next micro-batch of this node's text; nothing: the compute thread has read no further yet.
  std::optional<pipeline::MicroBatchText> next_text();
  // How long ago the compute thread was last ready for jobs; 0 while it computes one, however long that takes. Nothing: no
  // model is attached.
  struct Idle {
    Duration training{};
    Duration texts{};  // it computes them also while it rests for its rounds
  };
  std::optional<Idle> idle() const;
  // Of the present part while it computes; nothing: not known yet.  Threads: any.
  std::optional<double> tokens_per_second() const { return speed_.tokens_per_second(); }
  // Of this node.
  PipelineTexts& texts() { return generated_; }

  // ---- The compute thread.
  // stage: of the part's range; it and whatever the rule refers to live until detach().
  struct Model {
    compute::Stage& stage;
    compute::StageRange range;
    compute::ModelShape shape;
    std::uint64_t batch_tokens = 0;
    std::uint32_t sequences = 1, most_held = 1;
    std::uint64_t steps_done = 0;
    pipeline::StepRule rule = nullptr;
    std::function<void()> before_step = nullptr;  // weights and moments are still those of the step before
    AnchorStage::Make make_text_stage = nullptr;
    std::uint64_t text_bytes = 0;
    // A batch of this node's text, as micro-batches. Must not wait for a download: Busy while one goes on.
    std::function<Expected<std::vector<pipeline::MicroBatchText>>(const CancelToken&)> read_text = nullptr;
  };
  void attach(Model model);
  void detach();
  // The node would train, and rests for its rounds: computes the pieces of texts that wait.
  void rest();
  // This node's own text waits, or is missing, and a step is made only if the others' text fills it.
  void set_assisting(bool assisting);
  // Computes until the part has made a step. Its times are those of all calls since the last step. Errors:
  //   Cancelled
  //   Timeout      no micro-batch comes for a second, or it assists and the others need no step soon
  //   Unavailable  the source of the text did not answer, and the others need no step soon; it is asked again when
  //                `text_retry` has passed
  //   Busy         the text is still being fetched, and the others need no step soon; it is asked again when
  //                `text_look` has passed
  //   else those of read_text()
  // After each, what was computed counts in the next call.
  Expected<train::InnerStep> step(const CancelToken& cancel);

  static constexpr Duration text_retry = std::chrono::seconds(5);
  static constexpr Duration text_look = std::chrono::seconds(1);

 private:
  enum class Jobs : std::uint8_t { Texts, All };
  void stepped(const pipeline::StageLane::Stepped& step, std::uint64_t targets, const pipeline::Sums& sums);
  Expected<void> compute_step(const CancelToken& cancel);
  std::optional<JobQueue::Kind> run_job(JobQueue& jobs);
  Expected<void> read_text(const CancelToken& cancel);
  bool lacks_text() const;
  void tell_ready();  // with the lock
  // The compute thread is ready for such jobs. runs: it begins to compute them, until it says otherwise.
  void note(Jobs ready, bool runs);

  const Clock& clock_;
  mutable std::mutex mutex_;
  Listener listener_;
  std::optional<PipelinePart> part_;
  std::deque<pipeline::MicroBatchText> texts_;
  bool assisting_ = false;
  bool tell_again_ = false;             // the listener's queue was full
  MonotonicTime trained_{}, texted_{};  // ready for such jobs, last
  std::optional<Jobs> running_;         // what it computes now

  // Compute thread.
  std::optional<Model> model_;
  std::optional<train::InnerStep> stepped_;
  // For the step that comes, over several calls of step(). spent: all of their time.
  Duration computed_{}, spent_{};
  struct Away {
    Error error;  // Unavailable or Busy
    MonotonicTime again{};
  };
  std::optional<Away> text_away_;  // the source of the text did not answer last, or has not given it yet

  StageSpeed speed_;
  PipelineTexts generated_;
};

}  // namespace neuroshard::engine
