#include "core/data/merge_learning.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "core/data/detail/pair_table.h"
#include "core/data/encoder.h"

namespace neuroshard::data {
namespace {

constexpr std::uint32_t progress_interval = 64;

struct WordSymbols {
  std::size_t at = 0;  // first symbol in the pool
  std::uint32_t length = 0;
  std::int64_t count = 0;
};

struct PairInfo {
  TokenId left = 0, right = 0;
  std::int64_t count = 0;            // occurrences, overlapping ones too, times the word's count
  std::vector<std::uint32_t> words;  // that contain it, or once did
};

// An upper bound of a pair's count: counts of known pairs only fall, so the heap is put right when an entry
// comes up.
struct HeapEntry {
  std::int64_t count = 0;
  TokenId left = 0, right = 0;
  std::uint32_t pair = 0;
  friend bool operator<(const HeapEntry& a, const HeapEntry& b) {
    if (a.count != b.count) return a.count < b.count;
    if (a.left != b.left) return a.left > b.left;
    return a.right > b.right;
  }
};

class Learner {
 public:
  Learner(const Tokenizer& base, const WordCounts& words, std::int64_t min_count);
  // The next merge, applied everywhere; false if no pair is frequent enough.
  bool next(TokenId id, Merge* merge);

 private:
  void change(TokenId left, TokenId right, std::int64_t by, std::uint32_t word);
  void apply(std::uint32_t word, Merge merge, TokenId id);
  void push_changed();

  std::int64_t min_count_;
  std::vector<TokenId> pool_;
  std::vector<WordSymbols> words_;
  detail::PairTable index_;  // pair → position in pairs_
  std::vector<PairInfo> pairs_;
  std::vector<std::uint32_t> new_pairs_;  // not yet in the heap
  std::vector<HeapEntry> heap_;
};

Learner::Learner(const Tokenizer& base, const WordCounts& counts, std::int64_t min_count)
    : min_count_(min_count) {
  // A reference that does not own: the encoder lives in this function only.
  Encoder encoder(std::shared_ptr<const Tokenizer>(std::shared_ptr<void>(), &base));
  std::vector<TokenId> ids;
  words_.reserve(counts.distinct());
  for (const WordCounts::Word& word : counts.words()) {
    ids.clear();
    encoder.encode(counts.bytes(word), &ids);
    if (ids.size() < 2) continue;
    words_.push_back(
        {pool_.size(), static_cast<std::uint32_t>(ids.size()), static_cast<std::int64_t>(word.count)});
    pool_.insert(pool_.end(), ids.begin(), ids.end());
  }
  for (std::uint32_t w = 0; w < words_.size(); ++w) {
    for (std::uint32_t i = 0; i + 1 < words_[w].length; ++i) {
      change(pool_[words_[w].at + i], pool_[words_[w].at + i + 1], words_[w].count, w);
    }
  }
  push_changed();
}

void Learner::change(TokenId left, TokenId right, std::int64_t by, std::uint32_t word) {
  bool inserted = false;
  const std::uint32_t at =
      index_.find_or_insert(left, right, static_cast<std::uint32_t>(pairs_.size()), &inserted);
  if (inserted) {
    pairs_.push_back({left, right, 0, {}});
    new_pairs_.push_back(at);
  }
  PairInfo& pair = pairs_[at];
  pair.count += by;
  if (by > 0 && (pair.words.empty() || pair.words.back() != word)) pair.words.push_back(word);
}

void Learner::push_changed() {
  for (const std::uint32_t at : new_pairs_) {
    const PairInfo& pair = pairs_[at];
    if (pair.count < min_count_) continue;  // it can only fall
    heap_.push_back({pair.count, pair.left, pair.right, at});
    std::push_heap(heap_.begin(), heap_.end());
  }
  new_pairs_.clear();
}

// Replaces the pair in one word, left to right, and adjusts the counts of the pairs around each place.
void Learner::apply(std::uint32_t word, Merge merge, TokenId id) {
  WordSymbols& symbols = words_[word];
  TokenId* const s = pool_.data() + symbols.at;
  std::uint32_t out = 0;
  for (std::uint32_t in = 0; in < symbols.length; ++in) {
    if (in + 1 == symbols.length || s[in] != merge.left || s[in + 1] != merge.right) {
      s[out++] = s[in];
      continue;
    }
    if (out > 0) {
      change(s[out - 1], merge.left, -symbols.count, word);
      change(s[out - 1], id, symbols.count, word);
    }
    if (in + 2 < symbols.length) {
      change(merge.right, s[in + 2], -symbols.count, word);
      change(id, s[in + 2], symbols.count, word);
    }
    s[out++] = id;
    ++in;
  }
  symbols.length = out;
}

bool Learner::next(TokenId id, Merge* merge) {
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end());
    HeapEntry top = heap_.back();
    heap_.pop_back();
    const std::int64_t count = pairs_[top.pair].count;
    if (count < min_count_) continue;
    if (count != top.count) {
      top.count = count;
      heap_.push_back(top);
      std::push_heap(heap_.begin(), heap_.end());
      continue;
    }
    *merge = {top.left, top.right};
    const std::vector<std::uint32_t> words = std::move(pairs_[top.pair].words);
    for (const std::uint32_t word : words) apply(word, *merge, id);
    pairs_[top.pair].count = 0;  // none is left anywhere
    pairs_[top.pair].words = {};
    push_changed();
    return true;
  }
  return false;
}

}  // namespace

Expected<Tokenizer> learn_merges(const Tokenizer& base, const CountedText& text,
                                 const LearningOptions& options,
                                 const std::function<void(std::uint32_t, std::uint32_t)>& on_progress,
                                 const CancelToken& cancel) {
  if (options.vocab_size < base.vocab_size() || options.vocab_size > max_vocabulary) {
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("a vocabulary of {} tokens can't be learned: choose {} to {}",
                                  options.vocab_size, base.vocab_size(), max_vocabulary));
  }
  std::vector<Merge> merges(base.merges().begin(), base.merges().end());
  const std::uint32_t wanted = options.vocab_size - base.vocab_size();
  Learner learner(base, text.words,
                  static_cast<std::int64_t>(std::max<std::uint64_t>(options.min_frequency, 1)));
  for (std::uint32_t done = 0; done < wanted; ++done) {
    if (done % progress_interval == 0) {
      if (cancel.cancelled()) return make_error(ErrorCode::Cancelled, "learning the tokenizer was cancelled");
      if (on_progress) on_progress(done, wanted);
    }
    Merge merge;
    if (!learner.next(static_cast<TokenId>(first_merge_token + merges.size()), &merge)) break;
    merges.push_back(merge);
  }
  if (on_progress)
    on_progress(static_cast<std::uint32_t>(merges.size()) + first_merge_token - base.vocab_size(), wanted);
  SourceBytes sources = base.sources();
  for (const auto& [name, bytes] : text.sources) sources[name] += bytes;
  return Tokenizer::from_merges(std::move(merges), std::move(sources));
}

}  // namespace neuroshard::data
