// Connects the outer rounds of a network (core/rounds) with the training of this node. The rounds request a
// start, the delta at the end, and the progress of the training; they never wait. Between two steps the compute
// thread handles these requests: it loads a new anchor, makes the delta, and then trains or rests. A node rests
// before its first anchor and after its H steps until the round's result; where rounds overlap, it rests only
// if the result is still missing after H more steps.
//
// Where the members hold parts of the model, the model here is this node's part, one row of several
// (config/model_part.h). The others need it for their steps. So instead of resting for a result it assists: its weights
// step as often as the others need.
//
// Where the model is synchronised in fragments (rounds/fragments.h), each row has a learner of its own: every
// step trains all fragments, and runs only when none of them has to rest.
//
// No more than a slice of weights, deltas or anchors is in memory beside the model.
//
// One lock, held for short times: weights are read, written and encoded without it.
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
#include "core/base/spool.h"
#include "core/engine/round_model.h"
#include "core/outer/codec.h"
#include "core/rounds/fragments.h"
#include "core/rounds/learner.h"

namespace neuroshard::engine {

struct RoundTrainerOptions {
  std::uint32_t inner_steps = 500;  // H
  std::uint32_t fragments = 1;      // in which the model is synchronised; H at most
  // The parts of the model, of which this node holds one; empty: it holds the whole model.
  std::vector<rounds::Fragment> parts;
  outer::CodecOptions codec;
  std::optional<float> error_feedback_beta;  // none: the codec's error is lost
  // Without a result, a node trains alone for at most this many rounds, then it rests.
  std::uint32_t most_rounds_alone = 64;
  Duration longest_rest = std::chrono::milliseconds(200);  // of one before_step()
};

// The network needs another model than the one that is attached.
struct WantedModel {
  std::optional<Hash256> tokenizer;   // with the text under this tokenizer
  std::optional<std::uint32_t> part;  // of this part
};

// Facts about the model once it is ready.
struct RoundFacts {
  Hash256 tokenizer{};
  std::vector<rounds::Fragment> fragments;      // by row; they cover all parameters
  std::uint32_t own_part = 0;                   // where the members hold parts: the row of the one here
  std::vector<bool> parts_that_fit;             // by part, where they do
  std::optional<std::uint32_t> too_large_size;  // first_too_large() of the network's sizes (member_memory.h)
  std::uint64_t memory_limit = 0;               // bytes that this node may take; 0: not known
  // By row: the weights that this node holds, with zero momentum, and null for others; empty for a model that is made
  // again later.
  std::vector<rounds::Anchor> states;
};

class RoundTrainer final {
 public:
  static constexpr std::size_t slice_values = 256u << 10;  // in memory at once

  // spool: of payloads, and of weights between two steps. clock and logger outlive the trainer.
  RoundTrainer(RoundTrainerOptions options, std::shared_ptr<Spool> spool, const Clock& clock, Logger& logger);
  ~RoundTrainer();

  // ---- The executor of the rounds' nodes.
  struct Listener {
    Executor* executor = nullptr;                  // runs both callbacks
    std::function<void(const RoundFacts&)> ready;  // a model is ready; called after each attach()
    std::function<void()> progressed;              // a fragment has done its steps of the round
  };
  // Notifies the listener at once if a model is ready. Posts nothing to an earlier listener afterwards; calls
  // posted before may still run.  Threads: any.
  void listen(Listener listener);
  // The learner of a fragment's endpoint; lives as long as this object. Each fragment has its own error
  // feedback, where it is on; a learner ignores the memory of another model.
  // By the fragments that this node trains: of its only part, 0.
  rounds::RoundLearner& learner(std::size_t fragment = 0);
  // The network has this tokenizer, and the model's text another one: the model has to be made again with it. A
  // model that is attached without it is not asked again for a minute.  Threads: any.
  void want_tokenizer(const Hash256& tokenizer);
  // The network has chosen this part of the model for this node: the model is made again with it.  Threads: any.
  void want_part(std::uint32_t part);
  // The model could not be made, because it has no room in the memory: the view says so until one is attached.  Threads: any.
  void lacks_memory();
  std::size_t fragments() const { return parts_.size(); }

  // ---- The compute thread.
  // A model is ready; it lives until detach(). The endpoints' last requests apply to it.
  // InvalidArgument: it has fewer values than fragments. Other errors: those of reading its weights.
  Expected<void> attach(RoundModel& model);
  void detach();
  // Assist: a step may be made for others, and none of this node's own accord.
  enum class Turn : std::uint8_t { Train, Assist, Rest, OtherModel };
  // Handles the endpoints' requests. With nothing to train it waits up to longest_rest, then returns Rest if
  // there is still nothing. OtherModel: nothing is trained before the wanted_model() is attached.
  // Errors: those of reading or writing the weights.
  Expected<Turn> before_step();
  // Instead of a step whose text is missing: waits up to longest_rest for a request, which the next before_step() handles.
  void wait_for_request();
  WantedModel wanted_model() const;
  void after_step(std::uint64_t tokens);

  // ---- Any thread.
  // The newest round that a fragment's learner was given, and its anchor; nothing: none yet.
  struct Newest {
    std::uint64_t round = 0;
    rounds::Anchor anchor;
  };
  std::optional<Newest> newest(std::size_t fragment = 0) const;
  std::uint32_t inner_steps() const { return options_.inner_steps; }
  struct View {
    rounds::TrainedWork work;  // in this round, of the fragment with the most steps
    Duration rested{}, trained{};
    bool resting = true;
    bool lacks_memory = false;  // the last model could not be made
  };
  View view() const;
  // Of the model, as of its last step.
  std::uint64_t spare_memory() const { return spare_memory_; }

 private:
  class FragmentTrainer;  // detail/fragment_trainer.h

  bool may_train() const;          // with the lock
  bool may_assist() const;         // with the lock
  bool must_change() const;        // with the lock
  FragmentTrainer* asked() const;  // with the lock; the first with a request
  RoundFacts facts_of(const RoundModel& model) const;
  Expected<void> copy_states(RoundModel& model, RoundFacts& facts);
  rounds::Fragment own_fragment(const RoundFacts& facts, std::size_t i) const;
  void tell_ready();     // with the lock
  void tell_progress();  // with the lock
  Turn rest_without_room(const Error& error);
  void note_places();   // compute thread
  void set_schedule();  // compute thread
  void answer(std::function<void(Expected<rounds::RoundLearner::Boundary>)> done,
              Expected<rounds::RoundLearner::Boundary> result);

  // A fragment's weights, in the spool.
  Expected<ByteSourcePtr> copy_weights(RoundModel& model, const rounds::Fragment& fragment);

  const RoundTrainerOptions options_;
  const std::shared_ptr<Spool> spool_;
  const Clock& clock_;
  Logger& logger_;
  std::vector<std::unique_ptr<FragmentTrainer>> parts_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Listener listener_;
  std::optional<RoundFacts> facts_;
  bool no_memory_ = false;
  struct Told {
    Hash256 tokenizer{};
    std::uint32_t part = 0;
    friend bool operator==(const Told&, const Told&) = default;
  };
  std::optional<Told> told_;  // a listener has received the states of such a model
  bool tell_again_ = false;   // the listener's queue was full
  // The listener knows the model that is attached: what it asks for is of this one.
  std::shared_ptr<std::atomic<bool>> heard_ = std::make_shared<std::atomic<bool>>(true);
  WantedModel wanted_;           // by the network
  MonotonicTime change_from_{};  // to another tokenizer: not before
  Duration rested_{}, trained_{};
  MonotonicTime turned_{};  // the start of the current step

  std::atomic<std::uint64_t> spare_memory_ = 0;

  // Compute thread.
  RoundModel* model_ = nullptr;
  std::string no_room_;              // why a request waits
  std::uint64_t since_arrival_ = 0;  // the next step's number since an anchor reset the moments; 0 = none did
};

}  // namespace neuroshard::engine
