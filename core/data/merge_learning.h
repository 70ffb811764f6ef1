// Learning the merges of a byte-level BPE: again and again the most frequent pair of neighbours within words
// becomes a token (Sennrich et al. 2016). A pure function of the word counts: same counts, same merges,
// everywhere.
#pragma once

#include <cstdint>
#include <functional>

#include "core/base/cancel.h"
#include "core/base/expected.h"
#include "core/data/tokenizer.h"
#include "core/data/word_counts.h"

namespace neuroshard::data {

struct LearningOptions {
  std::uint32_t vocab_size = 4096;  // stop here, or earlier when no pair is frequent enough
  std::uint64_t min_frequency = 2;  // of a pair that becomes a token
};

// Continues from `base`, whose merges all stay (Tokenizer{} to start from bytes). Of pairs equally frequent,
// the one with the lower left, then the lower right id comes first. on_progress: merges learned so far and
// wanted; called from this thread about every 64 merges. Errors: InvalidArgument (vocab_size smaller than the
// base's or beyond max_vocabulary), Cancelled. Memory: about 12 bytes per byte of distinct words. Time: a
// second or two for 4,096 merges over any amount of prose.
Expected<Tokenizer> learn_merges(
    const Tokenizer& base, const CountedText& text, const LearningOptions& options,
    const std::function<void(std::uint32_t done, std::uint32_t wanted)>& on_progress = {},
    const CancelToken& cancel = {});

}  // namespace neuroshard::data
