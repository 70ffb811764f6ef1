// The interface of a node's training to outer rounds: its weights as one vector, and a factor on the learning
// rate.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/base/span.h"

namespace neuroshard::engine {

// The progress of the node's own training in a round; in each checkpoint, so that a restart continues there.
// One for each fragment in which the model is synchronised (rounds/fragments.h).
struct RoundPlace {
  std::uint64_t round = 0;  // the current round; 0 = none
  Hash256 anchor{};         // SHA-256 of the fragment's weights at the round's start
  std::uint64_t steps = 0;
  std::uint64_t tokens = 0;
  friend bool operator==(const RoundPlace& a, const RoundPlace& b) {
    return a.round == b.round && a.anchor == b.anchor && a.steps == b.steps && a.tokens == b.tokens;
  }
};

// Threads: the compute thread, between two steps.
class RoundModel {
 public:
  virtual ~RoundModel() = default;
  virtual std::uint64_t parameters() const = 0;  // P: of all slots together that this node holds
  virtual const Hash256& tokenizer_hash() const = 0;
  // Where the members hold parts of the model: the one that is here, from 0 on, and whether the memory plan has room for each
  // of them.
  virtual std::uint32_t part() const { return 0; }
  virtual std::vector<bool> parts_that_fit() const { return {}; }
  // first_too_large() of the network's sizes (member_memory.h).
  virtual std::optional<std::uint32_t> too_large_size() const { return std::nullopt; }
  virtual std::uint64_t memory_limit() const { return 0; }  // bytes that this node may take; 0: not known
  // All weights in slot order are [P] fp32; these calls copy those from `first` on, as many as the span has.
  virtual Expected<void> read_weights(std::uint64_t first, Span<float> target) = 0;
  virtual Expected<void> write_weights(std::uint64_t first, Span<const float> source) = 0;
  // After the last of some write_weights, also of one that failed, and before a step: makes anew what the model keeps beside
  // the weights, such as their copies in bf16.
  virtual void weights_written() {}
  // True while the moments are zero: no step has been trained with them.
  virtual bool fresh_moments() const = 0;
  // The next step's place in the learning rate's schedule, 1-based, and the factor on its rate.
  virtual void set_schedule(std::uint64_t step, double factor) = 0;
  // Call when all weights hold anchors of rounds after the first: a checkpoint is due
  // (docs/protocol/checkpoints.md).
  virtual void synced() = 0;
  // The network's round in progress and its beacon (zeros: not known): they choose the training text from the
  // next step on. Rounds before the newest are ignored.
  virtual void begin_round(std::uint64_t /*round*/, const Hash256& /*beacon*/) {}
  // The batches of the last `steps` steps for a contribution (data/batch_list.h, BatchWork); empty: not known.
  virtual Bytes last_batches(std::uint64_t /*steps*/) { return {}; }
  // Bytes that the memory plan leaves to whoever needs them for a while.
  virtual std::uint64_t spare_memory() const { return 0; }
  // Sets what the next checkpoints record: the places, and the next step's number since the moments were zero
  // (0: they never were in the rounds, train::rewarm_factor()).
  virtual void set_places(std::vector<RoundPlace> places, std::uint64_t since_arrival) = 0;
  // Both as in the checkpoint that it continued from; empty and 0: it had none.
  virtual const std::vector<RoundPlace>& places() const = 0;
  virtual std::uint64_t since_arrival() const { return 0; }
};

}  // namespace neuroshard::engine
