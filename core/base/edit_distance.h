// How far apart two words are, for "did you mean …?".
#pragma once

#include <cstddef>
#include <string_view>

namespace neuroshard {

// The Levenshtein distance: so many letters have to be put in, left out or replaced to make `b` of `a`. Of bytes,
// so a letter outside ASCII counts for more than one. Takes time and memory as the product of the lengths: the caller
// bounds them.
std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace neuroshard
