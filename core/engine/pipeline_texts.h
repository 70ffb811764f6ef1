// Texts of this node from a model of which it holds a part: the compute thread samples, and the holders of all parts give
// the logits (core/pipeline/text_driver.h). While the compute thread waits for them it computes pieces of texts for this
// node's part, its own and those of others, and does not train.
//
// The pipeline's executor opens sessions with the weights of the newest round. When the round ends, so do they; the texts
// go on in new ones.
//
// Threads: stated at each group of methods. One lock, held for short times.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/base/cancel.h"
#include "core/base/executor.h"
#include "core/engine/job_queue.h"
#include "core/engine/text_model.h"
#include "core/pipeline/driver.h"
#include "core/pipeline/text_driver.h"

namespace neuroshard::engine {

class PipelineTexts final : public TextModel {
 public:
  // ---- The pipeline's executor.
  // Once, there. Cancelled: the session ended with its round.
  using Answer = std::function<void(Expected<pipeline::TextDriver::Answer>)>;
  // Of sequences by themselves, all with the weights of one round.
  struct Losses {
    std::uint32_t length = 0;                            // tokens of a sequence
    std::vector<pipeline::MicroBatchText> pieces;        // the first one has the most sequences
    std::function<void(Expected<pipeline::Sums>)> done;  // as an Answer
  };
  struct Listener {
    Executor* executor = nullptr;  // runs all callbacks, in order
    std::function<void(std::uint64_t session, std::uint32_t positions, const Scores& scores)> open;
    // targets: of the tokens, in a session with scores. answer null: no result is wanted.
    struct Piece {
      std::vector<std::int32_t> tokens, targets;
    };
    std::function<void(std::uint64_t session, const Piece& piece, Answer answer)> extend;
    std::function<void(std::uint64_t session)> close;
    std::function<void(Losses)> evaluate;  // null: it computes none
  };
  // Posts nothing to an earlier listener afterwards. A wait for it ends with an error.  Threads: any.
  void listen(Listener listener);
  // Nobody waits for it. False: no pipeline, or it computes no losses.  Threads: any.
  bool evaluate(Losses losses);
  // Changes with the listener: what the one before was asked has no answer any more.  Threads: any.
  std::uint64_t connection() const { return listeners_; }
  // The round whose weights new sessions have.  Threads: any.
  void set_round(std::uint64_t round) { round_ = round; }
  std::uint64_t round() const { return round_; }

  // ---- The compute thread.
  // The jobs that this thread computes while it waits. Before all below.
  void set_jobs(std::shared_ptr<JobQueue> jobs) { jobs_ = std::move(jobs); }
  // Ends the wait of extend_sessions() with Cancelled.
  void set_interrupt(CancelToken interrupt) { interrupt_ = std::move(interrupt); }
  // Called while it waits, before each job that it computes, and once it waits no more. Null: nobody listens.
  void set_waiting(std::function<void()> waiting, std::function<void()> waited = nullptr) {
    waiting_ = std::move(waiting);
    waited_ = std::move(waited);
  }

  Expected<void> open_session(std::uint64_t session, std::uint32_t capacity, const Scores& scores) override;
  // Unavailable: no pipeline, or a part of the model does not answer. Unsupported: hidden states.
  Expected<void> extend_sessions(std::uint32_t count, const compute::SessionPart* parts) override;
  void close_session(std::uint64_t session) override;

 private:
  struct Wait;
  Listener::Piece piece_of(const compute::SessionPart& part) const;
  Expected<void> wait_for(Wait& wait);
  bool post(const std::function<Executor::Task(const Listener&)>& make);

  mutable std::mutex mutex_;
  Listener listener_;
  std::atomic<std::uint64_t> round_ = 0, listeners_ = 0;

  // Compute thread.
  std::map<std::uint64_t, Scores> open_;  // by session
  std::shared_ptr<JobQueue> jobs_;
  CancelToken interrupt_;
  std::function<void()> waiting_, waited_;
};

}  // namespace neuroshard::engine
