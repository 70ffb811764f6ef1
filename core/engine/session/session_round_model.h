// The training session's interface for outer rounds: its slots, one after the other, as one vector, and its
// place in the rounds.
//
// Threads: the compute thread.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/engine/round_model.h"
#include "core/engine/session/session_checkpoints.h"
#include "core/engine/session/session_parts.h"

namespace neuroshard::engine::detail {

class SessionRoundModel final : public RoundModel {
 public:
  // Both outlive the object; `parts` is prepared for training.
  SessionRoundModel(SessionParts& parts, SessionCheckpoints& checkpoints)
      : parts_(parts), checkpoints_(checkpoints) {}

  std::uint64_t parameters() const override {
    return compute::values_of(parts_.info.shape, parts_.info.range).count;
  }
  const Hash256& tokenizer_hash() const override { return parts_.state.tokenizer_hash; }
  std::uint32_t part() const override { return parts_.info.part; }
  std::vector<bool> parts_that_fit() const override { return parts_.info.parts_that_fit; }
  std::optional<std::uint32_t> too_large_size() const override { return parts_.info.too_large_size; }
  std::uint64_t memory_limit() const override { return parts_.info.memory_limit; }
  Expected<void> read_weights(std::uint64_t first, Span<float> target) override;
  Expected<void> write_weights(std::uint64_t first, Span<const float> source) override;
  void weights_written() override { parts_.stage->parameters_changed(); }
  bool fresh_moments() const override { return parts_.state.step == parts_.fresh_at; }
  void set_schedule(std::uint64_t step, double factor) override {
    schedule_step_ = step;
    rate_factor_ = factor;
  }
  void begin_round(std::uint64_t round, const Hash256& beacon) override {
    parts_.loader->begin_round(round, beacon);
  }
  Bytes last_batches(std::uint64_t steps) override;
  std::uint64_t spare_memory() const override;
  void synced() override { checkpoints_.after_sync(); }
  void set_places(std::vector<RoundPlace> places, std::uint64_t since_arrival) override {
    parts_.state.places = std::move(places);
    parts_.state.since_arrival = since_arrival;
  }
  const std::vector<RoundPlace>& places() const override { return parts_.state.places; }
  std::uint64_t since_arrival() const override { return parts_.state.since_arrival; }

  // The learning rate of the model's own step, 1-based; at the rounds' place in the schedule, if they set it.
  double learning_rate(std::uint64_t step) const;

 private:
  // Calls part(slot, place in the slot, place in the range, count) for each slot that has a share of the
  // range; in their order.
  template <class Part>
  Expected<void> each_slot(std::uint64_t first, std::uint64_t count, const Part& part);

  SessionParts& parts_;
  SessionCheckpoints& checkpoints_;
  std::optional<std::uint64_t> schedule_step_;
  double rate_factor_ = 1;
};

}  // namespace neuroshard::engine::detail
