// Shared by the tests of the tokenizer: random text and a slow, plain BPE as oracle.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/rng.h"
#include "core/data/pretokenizer.h"
#include "core/data/tokenizer.h"

namespace neuroshard::data::test {

// Words of a few letters with a skewed distribution, punctuation, some Unicode and some bytes that are no
// text.
inline Bytes random_prose(std::uint64_t seed, std::size_t size) {
  static const std::vector<std::string> parts = {"the", "a",   "in", "er",       "on",           "th", "e",
                                                 "s",   "ing", "re", "\xC3\xA9", "\xE4\xBD\xA0", "42", "x",
                                                 "'s",  "--",  "!",  "\xFF\xFE", "aaaa",         "ab"};
  Rng rng(seed);
  Bytes text;
  while (text.size() < size) {
    const auto letters = 1 + rng.below(3);
    for (std::uint64_t i = 0; i < letters; ++i) {
      const std::string& part = parts[std::min(rng.below(parts.size()), rng.below(parts.size()))];
      text.insert(text.end(), part.begin(), part.end());
    }
    const auto gap = rng.below(12);
    if (gap == 0) text.push_back('\n');
    if (gap != 1) text.push_back(' ');
  }
  text.resize(size);
  return text;
}

inline std::vector<TokenId> bytes_as_tokens(ByteSpan word) {
  std::vector<TokenId> ids;
  for (const std::uint8_t byte : word) ids.push_back(first_byte_token + byte);
  return ids;
}

inline void replace_pair(std::vector<TokenId>* ids, Merge pair, TokenId by) {
  std::vector<TokenId> result;
  for (std::size_t i = 0; i < ids->size(); ++i) {
    if (i + 1 < ids->size() && (*ids)[i] == pair.left && (*ids)[i + 1] == pair.right) {
      result.push_back(by);
      ++i;
    } else {
      result.push_back((*ids)[i]);
    }
  }
  *ids = std::move(result);
}

// Applies every merge in the order of its id to every word: the definition, in quadratic time.
inline std::vector<TokenId> encode_slowly(const Tokenizer& tokenizer, ByteSpan text) {
  std::vector<TokenId> all;
  for (const std::uint8_t* at = text.begin(); at != text.end();) {
    const std::size_t length = first_word(at, text.end());
    std::vector<TokenId> word = bytes_as_tokens({at, length});
    for (std::size_t m = 0; m < tokenizer.merges().size() && word.size() > 1; ++m) {
      replace_pair(&word, tokenizer.merges()[m], static_cast<TokenId>(first_merge_token + m));
    }
    all.insert(all.end(), word.begin(), word.end());
    at += length;
  }
  return all;
}

// Learns merges by counting all pairs anew for each: the definition.
inline std::vector<Merge> learn_slowly(const std::vector<Bytes>& texts, std::vector<Merge> merges,
                                       std::size_t vocab_size) {
  std::vector<std::vector<TokenId>> words;
  for (const Bytes& text : texts) {
    for (const std::uint8_t* at = text.data(); at != text.data() + text.size();) {
      const std::size_t length = first_word(at, text.data() + text.size());
      words.push_back(bytes_as_tokens({at, length}));
      at += length;
    }
  }
  for (std::size_t m = 0; m < merges.size(); ++m) {
    for (auto& word : words) replace_pair(&word, merges[m], static_cast<TokenId>(first_merge_token + m));
  }
  while (first_merge_token + merges.size() < vocab_size) {
    std::map<std::pair<TokenId, TokenId>, std::uint64_t> counts;
    for (const auto& word : words) {
      for (std::size_t i = 0; i + 1 < word.size(); ++i) ++counts[{word[i], word[i + 1]}];
    }
    // The map is in order of ids, so the first of the largest is the one with the lowest.
    const auto best = std::max_element(counts.begin(), counts.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    if (best == counts.end() || best->second < 2) break;
    const Merge merge{best->first.first, best->first.second};
    for (auto& word : words)
      replace_pair(&word, merge, static_cast<TokenId>(first_merge_token + merges.size()));
    merges.push_back(merge);
  }
  return merges;
}

}  // namespace neuroshard::data::test
