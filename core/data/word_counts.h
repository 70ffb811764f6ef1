// How often each word (pretokenizer.h) occurs in the text that merges are learned from.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/cancel.h"
#include "core/base/expected.h"
#include "core/data/tokenizer.h"

namespace neuroshard::data {

// Longer words are no language (keys, encoded data); they are not learned from. Encoding them works all the
// same.
inline constexpr std::size_t max_learned_word_bytes = 256;
// Distinct words kept. Beyond it, the rarest are dropped, as often as needed.
inline constexpr std::size_t max_distinct_words = 4u << 20;

// A multiset of words.  Threads: one.
class WordCounts {
 public:
  WordCounts() : WordCounts(max_distinct_words) {}
  explicit WordCounts(std::size_t max_distinct);

  // Counts every word of a text. Texts are separate: no word spans two calls.
  void add_text(ByteSpan text);
  void add_word(ByteSpan word, std::uint64_t count);
  void add(const WordCounts& other);

  std::size_t distinct() const { return words_.size(); }
  struct Word {
    std::uint64_t count = 0;
    std::uint64_t hash = 0;
    std::uint32_t at = 0;  // in the arena
    std::uint32_t length = 0;
  };
  Span<const Word> words() const { return {words_.data(), words_.size()}; }
  ByteSpan bytes(const Word& word) const { return {arena_.data() + word.at, word.length}; }
  // 0 for a word that is not there.
  std::uint64_t count(ByteSpan word) const;

 private:
  std::size_t find_slot(ByteSpan word, std::uint64_t hash) const;
  void rebuild_slots(std::size_t capacity);
  void drop_rare();

  std::size_t max_distinct_;
  std::vector<Word> words_;
  std::vector<std::uint32_t> slots_;  // open addressing: 1 + index into words_, 0 = free
  Bytes arena_;
};

// Where text comes from, one document (or piece of a document, cut with find_word_cut) at a time.
// Implementations need no locking: calls never overlap, though they may come from several threads.
class TextSource {
 public:
  virtual ~TextSource() = default;
  // Goes into the tokenizer's record of its sources; see SourceBytes.
  virtual std::string name() const = 0;
  // Replaces *text by the next piece; false at the end.
  virtual Expected<bool> next(Bytes* text) = 0;
};

struct CountedText {
  WordCounts words;
  SourceBytes sources;
  std::uint64_t bytes = 0;
};

// Counts the words of all sources, read in order, on `threads` threads of its own. The result does not depend
// on the number of threads.  on_progress: bytes read so far; called from one thread at a time, seldom.
// Errors: a source's, Cancelled.
Expected<CountedText> count_words(Span<TextSource* const> sources, unsigned threads,
                                  const std::function<void(std::uint64_t bytes)>& on_progress = {},
                                  const CancelToken& cancel = {});

}  // namespace neuroshard::data
