// The state of a run beside its tensors, and the part of it that a checkpoint's manifest holds for the engine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/engine/round_model.h"

namespace neuroshard::engine {

// Everything but the tensors that influences the next step.
struct TrainerState {
  std::uint64_t step = 0;
  std::uint64_t tokens_seen = 0;
  std::uint32_t micro_batch = 0;
  std::string loader_position;
  Hash256 tokenizer_hash{};
  // The settings that micro_batch was chosen for: it stays while they stay. Of a session, those in force.
  std::uint64_t memory_limit = 0;
  std::uint64_t max_micro_batch = 0;
  std::optional<double> training_loss;
  std::optional<double> held_out_loss;  // the newest; not necessarily of this step
  std::vector<RoundPlace> places;       // in outer rounds, by fragment
  std::uint64_t since_arrival = 0;      // RoundModel::since_arrival()
};

// The opaque text of a manifest that holds the engine's part: tokenizer_hash, the two settings, and the
// places in rounds if there are any: "round" of the whole model, "fragments" where it has several. During the
// warm-up after zero moments it has since_arrival, too.
std::string encode_trainer_state(const TrainerState& state);
// Sets these fields. Corrupt names the field; any text is safe.
Expected<void> decode_trainer_state(const std::string& text, TrainerState* state);

}  // namespace neuroshard::engine
