// How likely the head holds the tokens of a text: a route asks for it, and each result has it beside the logits.
//
// Bytes of n positions: log-probability fp64 of each target, then for each position `top` times: token i32 ·
// log-probability fp64.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/compute/stage.h"

namespace neuroshard::pipeline {

// As a route asks for them.
struct TextScores {
  std::uint32_t top = 0;         // likeliest tokens beside each target, at most compute::max_top_logprobs
  std::uint32_t vocabulary = 0;  // they are among so many first tokens of the model's
  friend bool operator==(const TextScores&, const TextScores&) = default;
};

// Of consecutive positions, as compute::TokenScores has them.
struct PositionScores {
  std::vector<double> logprobs;          // [n]; 0 where nothing is scored
  std::vector<std::int32_t> top_tokens;  // [n,top]
  std::vector<double> top_logprobs;      // [n,top]

  PositionScores() = default;
  PositionScores(std::size_t positions, const TextScores& asked)
      : logprobs(positions), top_tokens(positions * asked.top, -1), top_logprobs(positions * asked.top) {}
  // For a stage to fill in. targets [n] and this outlive it.
  compute::TokenScores view(const std::int32_t* targets, const TextScores& asked);
  void copy_to(std::size_t position, PositionScores& all) const;
};

std::size_t scores_bytes(std::size_t positions, const TextScores& asked);
void append_scores(const PositionScores& scores, Bytes& bytes);
// bytes: exactly scores_bytes(positions). Corrupt: a token is not among those asked for, or a log-probability is not a
// number or above 0.
Expected<PositionScores> read_scores(ByteSpan bytes, std::size_t positions, const TextScores& asked);

}  // namespace neuroshard::pipeline
