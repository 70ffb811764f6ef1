// Where the outer rounds of a network (core/rounds) and the training of this node meet. The round's node asks
// for a start, for the delta at the end, and how far the training is; it never waits. The compute thread asks
// between two steps what is to be done: it puts a new anchor in, makes the delta, and learns whether to train
// or to rest. A node rests before its first anchor and after its H steps until the round's certificate; where
// rounds overlap, only when H more steps were not enough for that.
//
// Where the model is synchronised in fragments (rounds/fragments.h), there is one training and one learner
// for each fragment's node: every step trains all of them, and is made only when none of them has to rest.
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
#include "core/engine/round_model.h"
#include "core/outer/codec.h"
#include "core/rounds/fragments.h"
#include "core/rounds/learner.h"

namespace neuroshard::engine {

struct RoundTrainerOptions {
  std::uint32_t inner_steps = 500;  // H
  std::uint32_t fragments = 1;      // that the model is synchronised in; H at most
  outer::CodecOptions codec;
  std::optional<float> error_feedback_beta;  // none: what the codec leaves out is lost
  // Without a certificate in sight it trains for as many rounds as this by itself, then it rests.
  std::uint32_t most_rounds_alone = 64;
  Duration longest_rest = std::chrono::milliseconds(200);  // of one before_step()
  // A node that waits this long for one fragment's certificate contributes its other fragments: another node
  // may wait for those, and so each for another. Half of what a leader waits after the close
  // (ParticipantOptions::grace), or it would come as often as not just after the proposal.
  Duration patience = std::chrono::milliseconds(1500);
};

// Facts about the model once it is ready.
struct RoundFacts {
  Hash256 tokenizer{};
  std::vector<rounds::Fragment> fragments;  // of all its parameters
  // Their weights, with zero momentum; empty for a model that is made anew later.
  std::vector<rounds::Anchor> states;
};

class RoundTrainer final {
 public:
  // clock and logger outlive it.
  RoundTrainer(RoundTrainerOptions options, const Clock& clock, Logger& logger);
  ~RoundTrainer();

  // ---- The executor of the rounds' nodes.
  struct Listener {
    Executor* executor = nullptr;                  // where the two are called
    std::function<void(const RoundFacts&)> ready;  // a model stands ready, again after each of its starts
    std::function<void()> progressed;              // a fragment's steps of its round are done
  };
  // Hears at once of a model that is ready. Afterwards nothing is posted to an earlier listener; what was
  // posted may still come.  Threads: any.
  void listen(Listener listener);
  // The learner of a fragment's node; lives as long as this object. Error feedback, where it is on, is each
  // fragment's own; another model's memory of it is not used.
  rounds::RoundLearner& learner(std::size_t fragment = 0);
  std::size_t fragments() const { return parts_.size(); }

  // ---- The compute thread.
  // A model is ready; it outlives the time until detach(). The nodes' last requests apply to it.
  // InvalidArgument: it has fewer values than fragments. Otherwise what reading its weights says.
  Expected<void> attach(RoundModel& model);
  void detach();
  enum class Turn : std::uint8_t { Train, Rest };
  // Does what the nodes asked for. With nothing to train it waits a moment, and says Rest if there is still
  // nothing.  Errors: what reading or writing the weights says.
  Expected<Turn> before_step();
  void after_step(std::uint64_t tokens);

  // ---- Any thread.
  std::uint32_t inner_steps() const { return options_.inner_steps; }
  struct View {
    rounds::TrainedWork work;  // of this round; of the fragment that is furthest in its own
    Duration rested{}, trained{};
    bool resting = true;
  };
  View view() const;

 private:
  class FragmentTrainer;  // detail/fragment_trainer.h

  bool may_train() const;          // with the lock
  FragmentTrainer* asked() const;  // with the lock; the first that something is asked of
  void tell_ready();               // with the lock
  void tell_progress();            // with the lock
  void note_places();              // compute thread
  void set_schedule();             // compute thread
  void answer(std::function<void(Expected<rounds::RoundLearner::Boundary>)> done,
              Expected<rounds::RoundLearner::Boundary> result);

  const RoundTrainerOptions options_;
  const Clock& clock_;
  Logger& logger_;
  std::vector<std::unique_ptr<FragmentTrainer>> parts_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Listener listener_;
  std::optional<RoundFacts> facts_;
  std::atomic<bool> told_{false};  // somebody has had the states
  Duration rested_{}, trained_{};
  MonotonicTime turned_{};  // since when it trains
  std::optional<MonotonicTime> rests_since_;

  // Compute thread.
  RoundModel* model_ = nullptr;
  std::uint64_t since_arrival_ = 0;  // steps since an anchor arrived with zero moments; 0 = it did not
};

}  // namespace neuroshard::engine
