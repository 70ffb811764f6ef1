// A cloze task made from any text: the last word of a passage among words of the same length (docs/guide/evaluate.md).
//
//   word       of the tokenizer's pre-split (data/pretokenizer.h): one space, then at least min_cloze_letters bytes that are ASCII
//              letters or part of a character beyond ASCII. Its length is in bytes.
//   question   such a word with at least min_cloze_words words of the pre-split before it, of which the last max_cloze_words are
//              the passage. There must be enough different words of its length in the text.
//   choices    the word and cloze_choices − 1 other words of its length, which the generator draws without replacement from the
//              sorted list of all of them; then the place of the right one.
//
// The questions are drawn without replacement from all that the text has, and are in the order of the text. Everything follows
// from the text and the seed (base/rng.h).  Threads: any.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/bytes.h"

namespace neuroshard::evaluation {

inline constexpr std::uint32_t cloze_choices = 4;
inline constexpr std::size_t min_cloze_letters = 4;
inline constexpr std::size_t min_cloze_words = 16;
inline constexpr std::size_t max_cloze_words = 64;

struct ClozeQuestion {
  std::size_t begin = 0, end = 0;    // the passage in the text; the right word follows it
  std::vector<std::string> choices;  // cloze_choices, with the space before them
  std::uint32_t right = 0;           // index
};

// At most `count`; fewer where the text has fewer.
std::vector<ClozeQuestion> make_cloze(ByteSpan text, std::size_t count, std::uint64_t seed);

}  // namespace neuroshard::evaluation
