// Measures a model and an n-gram baseline on the same text: loss, bits per byte, cloze (docs/guide/evaluate.md).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/base/cancel.h"
#include "core/base/expected.h"
#include "core/compute/stage.h"
#include "core/data/encoder.h"
#include "core/evaluation/cloze.h"
#include "core/evaluation/ngram.h"

namespace neuroshard::evaluation {

inline constexpr std::uint64_t max_text_bytes = std::uint64_t{256} << 20;

struct Options {
  std::uint32_t window = 0;  // tokens that the model sees at once; its sequence
  std::uint32_t stride = 0;  // from one window to the next, 1 … window
  std::size_t questions = 200;
  std::uint64_t seed = 1;  // of the cloze task
};

struct Score {
  double nats = 0;  // over all tokens of the text
  std::uint32_t cloze_right = 0;
};
struct Result {
  std::uint64_t bytes = 0, tokens = 0;  // of the text
  std::uint32_t questions = 0;
  Score model, baseline;

  double loss(const Score& score) const { return score.nats / static_cast<double>(tokens); }
  double bits_per_byte(const Score& score) const;
};

// done and total forward passes; may be null.
using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

// The whole model, with embedding and head. The text of a model begins after the token that ends a text. Every token of
// it is predicted exactly once: windows of `window` tokens begin `stride` tokens apart, and each scores what the one before has
// not, so all but the first window's tokens have at least window − stride tokens before them.
// The baseline predicts the same tokens, each from the two before it.
// Errors: InvalidArgument (no text, more than max_text_bytes, options), Corrupt (the loss is not finite), Cancelled, those
// of the stage.  Threads: the stage's.
Expected<Result> evaluate(compute::Stage& stage, const NGram& baseline, data::Encoder& encoder, ByteSpan text,
                          const Options& options, const Progress& progress = {},
                          const CancelToken& cancel = {});

// The tokens of a text as training sees them: the end token, then the text.
std::vector<data::TokenId> stream_of(data::Encoder& encoder, ByteSpan text);

}  // namespace neuroshard::evaluation
