#include "core/data/word_counts.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>

#include "core/base/check.h"
#include "core/data/pretokenizer.h"

namespace neuroshard::data {
namespace {

constexpr std::size_t batch_bytes = 4u << 20;  // text that one thread counts before it hands its counts over
constexpr unsigned max_counting_threads = 64;

std::uint64_t hash_word(ByteSpan word) {
  std::uint64_t hash = 0x9E3779B97F4A7C15ull ^ word.size();
  const std::uint8_t* at = word.data();
  std::size_t left = word.size();
  for (; left >= 8; at += 8, left -= 8) {
    hash = (hash ^ load_le<std::uint64_t>(at)) * 0xC2B2AE3D27D4EB4Full;
    hash ^= hash >> 32;
  }
  std::uint64_t tail = 0;
  std::memcpy(&tail, at, left);
  hash = (hash ^ tail) * 0x165667B19E3779F9ull;
  return hash ^ (hash >> 29);
}

}  // namespace

WordCounts::WordCounts(std::size_t max_distinct) : max_distinct_(max_distinct) {
  NS_CHECK(max_distinct >= 1 && max_distinct <= max_distinct_words);
  rebuild_slots(1024);
}

std::size_t WordCounts::find_slot(ByteSpan word, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  for (; slots_[at] != 0; at = (at + 1) & mask) {
    const Word& known = words_[slots_[at] - 1];
    if (known.hash == hash && known.length == word.size() &&
        std::memcmp(arena_.data() + known.at, word.data(), word.size()) == 0) {
      break;
    }
  }
  return at;
}

void WordCounts::rebuild_slots(std::size_t capacity) {
  slots_.assign(capacity, 0);
  for (std::size_t i = 0; i < words_.size(); ++i) {
    std::size_t at = words_[i].hash & (capacity - 1);
    while (slots_[at] != 0) at = (at + 1) & (capacity - 1);
    slots_[at] = static_cast<std::uint32_t>(i + 1);
  }
}

// Drops the words with the lowest counts until at most half of the bound is left (Manku, Motwani 2002, lossy
// counting).
void WordCounts::drop_rare() {
  std::vector<std::uint64_t> counts;
  counts.reserve(words_.size());
  for (const Word& word : words_) counts.push_back(word.count);
  const std::size_t keep = max_distinct_ / 2;
  std::nth_element(counts.begin(), counts.begin() + (counts.size() - keep - 1), counts.end());
  const std::uint64_t threshold = counts[counts.size() - keep - 1];
  std::vector<Word> kept;
  Bytes arena;
  for (Word word : words_) {
    if (word.count <= threshold) continue;
    const ByteSpan text = bytes(word);
    word.at = static_cast<std::uint32_t>(arena.size());
    arena.insert(arena.end(), text.begin(), text.end());
    kept.push_back(word);
  }
  words_ = std::move(kept);
  arena_ = std::move(arena);
  rebuild_slots(slots_.size());
}

void WordCounts::add_word(ByteSpan word, std::uint64_t count) {
  if (word.empty() || word.size() > max_learned_word_bytes || count == 0) return;
  const std::uint64_t hash = hash_word(word);
  const std::size_t at = find_slot(word, hash);
  if (slots_[at] != 0) {
    words_[slots_[at] - 1].count += count;
    return;
  }
  words_.push_back(
      {count, hash, static_cast<std::uint32_t>(arena_.size()), static_cast<std::uint32_t>(word.size())});
  arena_.insert(arena_.end(), word.begin(), word.end());
  slots_[at] = static_cast<std::uint32_t>(words_.size());
  if (words_.size() > max_distinct_) {
    drop_rare();
  } else if (2 * words_.size() > slots_.size()) {
    rebuild_slots(2 * slots_.size());
  }
}

void WordCounts::add_text(ByteSpan text) {
  for (const std::uint8_t* at = text.begin(); at != text.end();) {
    const std::size_t length = first_word(at, text.end());
    add_word({at, length}, 1);
    at += length;
  }
}

void WordCounts::add(const WordCounts& other) {
  for (const Word& word : other.words()) add_word(other.bytes(word), word.count);
}

std::uint64_t WordCounts::count(ByteSpan word) const {
  const std::size_t at = find_slot(word, hash_word(word));
  return slots_[at] == 0 ? 0 : words_[slots_[at] - 1].count;
}

namespace {

// A numbered share of the text: whichever thread counts it, the counts are added in the order of the numbers,
// so that the table drops the same words whatever the number of threads.
struct Batch {
  std::uint64_t number = 0;
  std::string source;
  std::vector<Bytes> texts;
  std::uint64_t bytes = 0;
};

class Counting {
 public:
  Counting(Span<TextSource* const> sources, const std::function<void(std::uint64_t)>& on_progress,
           const CancelToken& cancel)
      : sources_(sources), on_progress_(on_progress), cancel_(cancel) {}

  void work();
  Expected<CountedText> finish();

 private:
  std::optional<Batch> next_batch();
  void add(const Batch& batch, const WordCounts& counts);
  void stop(Error error);

  Span<TextSource* const> sources_;
  const std::function<void(std::uint64_t)>& on_progress_;
  const CancelToken& cancel_;

  std::mutex reading_;  // guards the sources and the two counters
  std::size_t current_source_ = 0;
  std::uint64_t batches_read_ = 0;

  std::mutex adding_;  // guards what follows
  std::condition_variable turn_;
  std::uint64_t batches_added_ = 0;
  std::optional<Error> error_;
  CountedText total_;
};

std::optional<Batch> Counting::next_batch() {
  const std::lock_guard lock(reading_);
  Batch batch;
  while (current_source_ < sources_.size() && batch.bytes < batch_bytes) {
    if (cancel_.cancelled()) {
      stop(make_error(ErrorCode::Cancelled, "learning the tokenizer was cancelled while it read the text"));
      return std::nullopt;
    }
    TextSource& source = *sources_[current_source_];
    Bytes text;
    auto more = source.next(&text);
    if (!more.ok()) {
      stop(std::move(more).error().with_context("reading text of " + source.name()));
      return std::nullopt;
    }
    if (!*more) {
      ++current_source_;
      if (!batch.texts.empty()) break;  // a batch belongs to one source
      continue;
    }
    batch.source = source.name();
    batch.bytes += text.size();
    batch.texts.push_back(std::move(text));
  }
  if (batch.texts.empty()) return std::nullopt;
  batch.number = batches_read_++;
  return batch;
}

void Counting::stop(Error error) {
  const std::lock_guard lock(adding_);
  if (!error_) error_ = std::move(error);
  turn_.notify_all();
}

void Counting::add(const Batch& batch, const WordCounts& counts) {
  std::unique_lock lock(adding_);
  turn_.wait(lock, [&] { return batches_added_ == batch.number || error_.has_value(); });
  if (error_) return;
  total_.words.add(counts);
  total_.sources[batch.source] += batch.bytes;
  total_.bytes += batch.bytes;
  ++batches_added_;
  if (on_progress_) on_progress_(total_.bytes);
  turn_.notify_all();
}

void Counting::work() {
  while (const auto batch = next_batch()) {
    WordCounts counts;
    for (const Bytes& text : batch->texts) counts.add_text({text.data(), text.size()});
    add(*batch, counts);
  }
}

Expected<CountedText> Counting::finish() {
  if (error_) return std::move(*error_);
  return std::move(total_);
}

}  // namespace

Expected<CountedText> count_words(Span<TextSource* const> sources, unsigned threads,
                                  const std::function<void(std::uint64_t)>& on_progress,
                                  const CancelToken& cancel) {
  Counting counting(sources, on_progress, cancel);
  std::vector<std::thread> helpers;
  for (unsigned i = 1; i < std::min(threads, max_counting_threads); ++i) {
    helpers.emplace_back([&counting] { counting.work(); });
  }
  counting.work();
  for (std::thread& helper : helpers) helper.join();
  return counting.finish();
}

}  // namespace neuroshard::data
