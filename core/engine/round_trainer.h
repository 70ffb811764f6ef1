// Where the outer rounds of a network (core/rounds) and the training of this node meet. The round's node asks
// for a start, for the delta at the end, and how far the training is; it never waits. The compute thread asks
// between two steps what is to be done: it puts a new anchor in, makes the delta, and learns whether to train
// or to rest. A node rests before its first anchor and after its H steps until the round's certificate; where
// rounds overlap, only when H more steps were not enough for that.
//
// One lock, held for moments: weights are read, written and encoded outside of it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/base/log.h"
#include "core/engine/round_memory.h"
#include "core/engine/round_model.h"
#include "core/outer/error_feedback.h"
#include "core/rounds/learner.h"

namespace neuroshard::engine {

struct RoundTrainerOptions {
  std::uint32_t inner_steps = 500;  // H
  outer::CodecOptions codec;
  std::optional<float> error_feedback_beta;  // none: what the codec leaves out is lost
  // Without a certificate in sight it trains for as many rounds as this by itself, then it rests.
  std::uint32_t most_rounds_alone = 64;
  Duration longest_rest = std::chrono::milliseconds(200);  // of one before_step()
};

// What is known once a model stands ready.
struct RoundFacts {
  std::uint64_t parameters = 0;
  Hash256 tokenizer{};
  rounds::Anchor state;  // its weights, with zero momentum; null for a model that is made anew later
};

class RoundTrainer final : public rounds::RoundLearner {
 public:
  // clock and logger outlive it.
  RoundTrainer(RoundTrainerOptions options, const Clock& clock, Logger& logger);

  // ---- The executor of the round's node.
  struct Listener {
    Executor* executor = nullptr;                  // where the two are called
    std::function<void(const RoundFacts&)> ready;  // a model stands ready, again after each of its starts
    std::function<void()> progressed;              // H steps are done
  };
  // Hears at once of a model that is ready. Afterwards nothing is posted to an earlier listener; what was
  // posted may still come.  Threads: any.
  void listen(Listener listener);
  void start(Start from) override;
  rounds::TrainedWork progress() const override;
  void boundary(rounds::AfterBoundary after, std::function<void(Expected<Boundary>)> done) override;
  void go_on() override;
  // What error feedback goes on with, where it is on. Another model's is not used.
  void recall(Bytes memory) override;

  // ---- The compute thread.
  // A model is ready; it outlives the time until detach(). What the node asked for last holds for it.
  Expected<void> attach(RoundModel& model);
  void detach();
  enum class Turn : std::uint8_t { Train, Rest };
  // Does what the node asked for. With nothing to train it waits a moment, and says Rest if there is still
  // nothing.  Errors: what reading or writing the weights says.
  Expected<Turn> before_step();
  void after_step(std::uint64_t tokens);

  // ---- Any thread.
  std::uint32_t inner_steps() const { return options_.inner_steps; }
  struct View {
    rounds::TrainedWork work;  // of this round
    Duration rested{}, trained{};
    bool resting = true;
  };
  View view() const;

 private:
  bool may_train() const;  // with the lock
  bool asked() const;      // with the lock
  Expected<void> put_in(Start from);
  struct Asked {
    rounds::AfterBoundary after = rounds::AfterBoundary::Rest;
    std::function<void(Expected<Boundary>)> done;
  };
  Expected<void> make_boundary(const Asked& asked);
  Expected<Boundary> encode_delta(const std::vector<float>& local);
  Expected<Boundary> with_feedback(const std::vector<float>& delta, rounds::TrainedWork work);
  void take_recalled(std::size_t values);
  bool was_sent_before_restart(std::uint64_t round, const Hash256& anchor) const;
  bool goes_on_from_checkpoint(const Start& from, const Hash256& anchor);
  void answer(std::function<void(Expected<Boundary>)> done, Expected<Boundary> result);
  void set_schedule();
  void tell_ready();     // with the lock
  void tell_progress();  // with the lock

  const RoundTrainerOptions options_;
  const Clock& clock_;
  Logger& logger_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Listener listener_;
  std::optional<RoundFacts> facts_;
  std::atomic<bool> told_{false};  // somebody has had the state
  std::optional<Start> pending_;   // not yet in the model
  std::optional<Start> newest_;    // for a model that is attached later
  std::optional<Asked> boundary_;  // asked for, not yet given
  std::optional<RoundMemory> recalled_;
  bool started_ = false;          // an anchor is in the model
  bool alone_ = false;            // go_on()
  std::uint64_t most_steps_ = 0;  // of work_, unless alone
  rounds::TrainedWork work_;
  Duration rested_{}, trained_{};
  MonotonicTime turned_{};  // since when it trains

  // Compute thread.
  RoundModel* model_ = nullptr;
  rounds::Anchor anchor_;
  Hash256 anchor_hash_{};
  std::uint64_t round_ = 0;
  std::vector<float> at_boundary_;  // the weights that the payload was made of; empty: no boundary
  rounds::TrainedWork boundary_work_;
  std::optional<outer::ErrorFeedback> feedback_;
  RoundMemory sent_;          // payload empty: nothing that may have to be put back; its buffer is feedback_
  bool from_memory_ = false;  // it is from before a restart
  bool first_start_ = false;  // of this model
  std::uint64_t since_arrival_ = 0;  // steps since an anchor arrived with zero moments; 0 = it did not
};

}  // namespace neuroshard::engine
