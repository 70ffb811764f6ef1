// The interface of a node's training to outer rounds: its weights as one vector, and a say in the learning
// rate.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/base/span.h"

namespace neuroshard::engine {

// How far the node's own training of a round is; in each checkpoint, so that a restart goes on from there.
// One for each fragment that the model is synchronised in (rounds/fragments.h).
struct RoundPlace {
  std::uint64_t round = 0;  // that is being made; 0 = none
  Hash256 anchor{};         // SHA-256 of the fragment's weights that the round began with
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
  virtual std::uint64_t parameters() const = 0;  // P: of all slots together
  virtual const Hash256& tokenizer_hash() const = 0;
  // Of all weights in slot order, [P] fp32, those from `first` on, as many as the span has.
  virtual Expected<void> read_weights(std::uint64_t first, Span<float> target) = 0;
  virtual Expected<void> write_weights(std::uint64_t first, Span<const float> source) = 0;
  // No step has been trained with these moments: they are zero.
  virtual bool fresh_moments() const = 0;
  // The next step's place in the learning rate's schedule, 1-based, and the factor on its rate.
  virtual void set_schedule(std::uint64_t step, double factor) = 0;
  // Anchors of rounds after the first are in all of the weights: worth a checkpoint
  // (docs/protocol/checkpoints.md).
  virtual void synced() = 0;
  // Go into the checkpoints from now on.
  virtual void set_places(std::vector<RoundPlace> places) = 0;
  // Of the checkpoint that it continued from; empty: it had none.
  virtual const std::vector<RoundPlace>& places() const = 0;
};

}  // namespace neuroshard::engine
