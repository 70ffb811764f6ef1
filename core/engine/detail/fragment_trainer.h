// One fragment of the model in RoundTrainer: holds the requests for the fragment's row and the anchor that its
// values come from.
//
// Threads: stated at each group of methods. "With the lock" means RoundTrainer's lock.
#pragma once

#include "core/engine/round_memory.h"
#include "core/engine/round_trainer.h"
#include "core/outer/error_feedback.h"

namespace neuroshard::engine {

class RoundTrainer::FragmentTrainer final : public rounds::RoundLearner {
 public:
  explicit FragmentTrainer(RoundTrainer& all) : all_(all) {}

  // ---- The executor of the chain's node: RoundLearner.
  void start(Start from) override;
  rounds::TrainedWork progress() const override;
  bool ends_early() const override;
  std::uint32_t extra_steps() const override;
  void closed() override;
  void boundary(rounds::AfterBoundary after, std::function<void(Expected<Boundary>)> done) override;
  void go_on() override;
  void recall(ByteSourcePtr memory) override;

  // ---- The compute thread.
  // restored: of the checkpoint that the model continued from.
  void attach(const rounds::Fragment& fragment, const RoundPlace& restored);  // with the lock
  void detach();                                                              // with the lock
  // Drops what applies to a model with another tokenizer.
  void forget();  // with the lock
  // Handles the requests that asked() reports.
  Expected<void> serve();
  // The next step changes the weights. Exhausted: no room to keep those of the boundary.
  Expected<void> before_training();
  // With the lock; true when this step completes the steps of the round.
  bool after_step(std::uint64_t tokens);
  RoundPlace place() const;  // takes the lock
  // The next step's place in the learning rate's schedule, 1-based: earlier rounds and steps of this one.
  std::uint64_t scheduled() const;  // takes the lock

  // ---- With the lock.
  bool asked() const { return pending_ || (boundary_ && started_); }
  bool may_train() const;
  bool may_assist() const { return started_ && work_.steps < most_steps_alone(); }
  std::optional<Newest> newest() const {
    if (!newest_) return std::nullopt;
    return Newest{newest_->round, newest_->anchor};
  }
  const rounds::TrainedWork& work() const { return work_; }

 private:
  struct Asked {
    rounds::AfterBoundary after = rounds::AfterBoundary::Rest;
    std::function<void(Expected<Boundary>)> done;
  };
  std::uint64_t most_steps_alone() const {
    return std::uint64_t{all_.options_.inner_steps} * all_.options_.most_rounds_alone;
  }
  Expected<void> put_in(Start from);
  // Of its weights, read once while the same start is tried again.
  Expected<Hash256> hash_of(const rounds::Anchor& anchor);
  Expected<void> make_boundary(const Asked& asked);
  Expected<Boundary> boundary_of_model(rounds::AfterBoundary after);
  void forget_boundary();
  // Anchor − local, of the model as it is now.
  outer::ValueSource delta() const;
  Expected<Boundary> encode_delta();
  Expected<Boundary> with_feedback(rounds::TrainedWork work);
  // Writes the new anchor's weights plus this node's carried work; returns the amount of carried work.
  Expected<rounds::TrainedWork> put_new(const Start& from, bool put_back);
  // Writes anchor − (base − local), slice by slice; without a base, the anchor.
  Expected<void> write_weights(const outer::ValueSource& anchor,
                               const std::optional<outer::ValueSource>& base);
  Expected<void> write_slices(const outer::ValueSource& anchor,
                              const std::optional<outer::ValueSource>& base);
  // With the lock: RoundLearner::extra_steps() of a round that begins with this carry and `carried` steps.
  std::uint64_t take_lead(rounds::Carry carry, std::uint64_t carried);
  void take_recalled(std::uint64_t values);
  bool is_open(std::uint64_t round, const Hash256& anchor) const;
  bool goes_on_from_checkpoint(const Start& from, const Hash256& anchor);

  RoundTrainer& all_;

  // With all_.mutex_.
  std::optional<Start> pending_;   // not yet in the model
  std::optional<Start> newest_;    // for a model that is attached later
  std::optional<Asked> boundary_;  // requested, not yet made
  std::optional<RoundMemory> recalled_;
  bool started_ = false;   // an anchor is in the model
  bool alone_ = false;     // go_on()
  std::uint64_t end_ = 0;  // steps until the row's next boundary; after the delta: at which it was made
  std::uint64_t most_steps_ = 0;       // of work_, unless alone
  std::uint64_t extra_ = 0;            // steps of this round beyond the common number
  bool given_ = false;                 // this round's delta was made, after end_ steps
  std::optional<std::uint64_t> lead_;  // steps from then until the other members had finished
  rounds::TrainedWork work_;

  // Compute thread.
  rounds::Fragment fragment_;
  RoundPlace restored_;
  rounds::Anchor anchor_;
  Hash256 anchor_hash_{};
  struct Hashed {
    rounds::Anchor anchor;
    Hash256 hash{};
  };
  std::optional<Hashed> waiting_;  // the anchor of a start that there was no room for
  std::uint64_t round_ = 0;
  ByteSourcePtr at_boundary_;       // the weights behind the payload; null: no boundary, or no step after it
  bool boundary_in_model_ = false;  // no step after it: the model still has its weights
  rounds::TrainedWork boundary_work_;
  std::optional<outer::ErrorFeedback> feedback_;
  RoundMemory sent_;          // payload null: nothing to restore; feedback_ holds its buffer
  bool from_memory_ = false;  // sent_ is of another session: the model here has other batches
  bool first_start_ = false;  // of this model
};

}  // namespace neuroshard::engine
