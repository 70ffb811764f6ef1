// One fragment of the model in RoundTrainer: what the fragment's node asks for, and which anchor its values
// come from.
//
// Threads: said at each group of methods. "With the lock" is RoundTrainer's.
#pragma once

#include "core/engine/round_memory.h"
#include "core/engine/round_trainer.h"
#include "core/outer/error_feedback.h"

namespace neuroshard::engine {

class RoundTrainer::FragmentTrainer final : public rounds::RoundLearner {
 public:
  explicit FragmentTrainer(RoundTrainer& all) : all_(all) {}

  // ---- The executor of the fragment's node: RoundLearner.
  void start(Start from) override;
  rounds::TrainedWork progress() const override;
  bool ends_early() const override;
  std::uint32_t extra_steps() const override;
  void closed() override;
  void boundary(rounds::AfterBoundary after, std::function<void(Expected<Boundary>)> done) override;
  void go_on() override;
  void recall(Bytes memory) override;

  // ---- The compute thread.
  // restored: of the checkpoint that the model continued from.
  void attach(const rounds::Fragment& fragment, const RoundPlace& restored);  // with the lock
  void detach();                                                              // with the lock
  // Does what asked() is about.
  Expected<void> serve();
  // With the lock; whether the steps of the round are done with it.
  bool after_step(std::uint64_t tokens);
  RoundPlace place() const;  // takes the lock
  // The next step's place in the learning rate's schedule, 1-based: rounds, and steps in this one.
  std::uint64_t scheduled() const;  // takes the lock

  // ---- With the lock.
  bool asked() const { return pending_ || (boundary_ && started_); }
  bool may_train() const;
  bool begun() const { return started_; }
  bool worth_giving() const;
  const rounds::TrainedWork& work() const { return work_; }

 private:
  struct Asked {
    rounds::AfterBoundary after = rounds::AfterBoundary::Rest;
    std::function<void(Expected<Boundary>)> done;
  };
  std::uint32_t steps_of(std::uint64_t round) const {
    return round == 1 ? fragment_.first_steps : all_.options_.inner_steps;
  }
  // With the lock: of a round that would end after so many steps, those after which it ends.
  std::uint64_t end_apart(std::uint64_t natural) const;
  Expected<void> put_in(Start from);
  Expected<void> make_boundary(const Asked& asked);
  Expected<Boundary> encode_delta(const std::vector<float>& local);
  Expected<Boundary> with_feedback(const std::vector<float>& delta, rounds::TrainedWork work);
  // Of the new anchor's weights, with what goes along of this node's work; and how much that is.
  Expected<rounds::TrainedWork> put_new(const Start& from, bool put_back);
  // With the lock: RoundLearner::extra_steps() of a round that begins with this, of which so much is done.
  std::uint64_t take_lead(rounds::Carry carry, std::uint64_t carried);
  void take_recalled(std::size_t values);
  bool was_sent_before_restart(std::uint64_t round, const Hash256& anchor) const;
  bool goes_on_from_checkpoint(const Start& from, const Hash256& anchor);

  RoundTrainer& all_;

  // With all_.mutex_.
  std::optional<Start> pending_;   // not yet in the model
  std::optional<Start> newest_;    // for a model that is attached later
  std::optional<Asked> boundary_;  // asked for, not yet given
  std::optional<RoundMemory> recalled_;
  bool started_ = false;   // an anchor is in the model
  bool alone_ = false;     // go_on()
  std::uint64_t end_ = 0;  // of the round for this node, in its steps; once it is given: where that was
  std::uint64_t most_steps_ = 0;       // of work_, unless alone
  std::uint64_t extra_ = 0;            // steps of this round beyond those that it has for all
  bool given_ = false;                 // the delta of this round, after end_ steps
  std::optional<std::uint64_t> lead_;  // steps from then until the others had done theirs
  rounds::TrainedWork work_;

  // Compute thread.
  rounds::Fragment fragment_;
  RoundPlace restored_;
  rounds::Anchor anchor_;
  Hash256 anchor_hash_{};
  std::uint64_t round_ = 0;
  std::vector<float> at_boundary_;  // the weights that the payload was made of; empty: no boundary
  rounds::TrainedWork boundary_work_;
  std::optional<outer::ErrorFeedback> feedback_;
  RoundMemory sent_;          // payload empty: nothing that may have to be put back; its buffer is feedback_
  bool from_memory_ = false;  // it is from before a restart
  bool first_start_ = false;  // of this model
};

}  // namespace neuroshard::engine
