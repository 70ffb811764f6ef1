// Splits text into the words within which merges apply, as the GPT-2 pattern does (Radford et al. 2019):
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// Written by hand, because the standard library's regular expressions know neither Unicode nor linear time.
// Every byte of any input, valid UTF-8 or not, belongs to exactly one word.  Threads: any.
#pragma once

#include <cstddef>

#include "core/base/bytes.h"

namespace neuroshard::data {

// Bytes of the first word of [at, end); 0 exactly when at == end. The words that follow are found by calling
// again at at + length with the same end.  Linear time over a whole text: no word is looked at more than
// twice.
std::size_t first_word(const std::uint8_t* at, const std::uint8_t* end);

// The largest position ≤ limit at which text may be cut so that the words of both parts together are the
// words of the whole: before white space that follows an ASCII character that is none. text.size() if limit
// reaches it; 0 if there is no such place.
std::size_t find_word_cut(ByteSpan text, std::size_t limit);

}  // namespace neuroshard::data
