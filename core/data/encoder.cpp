#include "core/data/encoder.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/base/check.h"
#include "core/data/pretokenizer.h"

namespace neuroshard::data {
namespace {

// Words up to this many bytes and tokens fit a cache entry. 24 bytes cover 99.9 % of the words of prose.
constexpr std::size_t cached_bytes = 24;
constexpr std::size_t cached_tokens = 9;
constexpr std::size_t cache_entries = 1u << 15;  // 2 MB; more gains little
// Up to here looking at every pair is quicker than a heap.
constexpr std::size_t scanned_bytes = 48;
// Scratch space beyond this is given back.
constexpr std::size_t kept_symbols = 1u << 16;

struct WordKey {
  std::array<std::uint64_t, 3> part{};

  std::uint64_t hash(std::size_t length) const {
    std::uint64_t h = (part[0] ^ length) * 0x9E3779B97F4A7C15ull;
    h = (h ^ (h >> 32) ^ part[1]) * 0xC2B2AE3D27D4EB4Full;
    h = (h ^ (h >> 29) ^ part[2]) * 0x165667B19E3779F9ull;
    return h ^ (h >> 32);
  }
};

struct alignas(64) CacheEntry {
  WordKey key;
  std::uint8_t length = 0;  // 0: free
  std::uint8_t count = 0;
  std::array<TokenId, cached_tokens> ids{};
};
static_assert(sizeof(CacheEntry) == 64);

// keep[n]: all ones over the first n of eight bytes, in little-endian order.
constexpr std::array<std::uint64_t, 9> keep = {
    0, 0xFF, 0xFFFF, 0xFFFFFF, 0xFFFFFFFF, 0xFFFFFFFFFF, 0xFFFFFFFFFFFF, 0xFFFFFFFFFFFFFF, ~0ull};

// The word's bytes, zero-filled. Reads ahead of the word where the text allows it.
WordKey load_key(const std::uint8_t* word, std::size_t length, const std::uint8_t* text_end) {
  WordKey key;
  std::array<std::uint8_t, cached_bytes> padded;
  if (static_cast<std::size_t>(text_end - word) < cached_bytes) {
    padded.fill(0);
    std::memcpy(padded.data(), word, length);
    word = padded.data();
  }
  key.part[0] = load_le<std::uint64_t>(word) & keep[std::min<std::size_t>(length, 8)];
  if (length > 8) {
    key.part[1] = load_le<std::uint64_t>(word + 8) & keep[std::min<std::size_t>(length - 8, 8)];
    if (length > 16) key.part[2] = load_le<std::uint64_t>(word + 16) & keep[length - 16];
  }
  return key;
}

// Candidate of the heap: the token that the pair at `position` becomes.
struct Candidate {
  TokenId id = 0;
  std::uint32_t position = 0;
  TokenId left = 0, right = 0;  // stale once the symbols there are others
  // The standard heap keeps the largest on top: lowest id first, then leftmost.
  friend bool operator<(const Candidate& a, const Candidate& b) {
    return a.id != b.id ? a.id > b.id : a.position > b.position;
  }
};

constexpr std::uint32_t none = 0xFFFFFFFFu;
struct Symbol {
  TokenId id = 0;  // none: merged into its left neighbour
  std::uint32_t previous = none;
  std::uint32_t next = none;
};

}  // namespace

class Encoder::State {
 public:
  explicit State(std::shared_ptr<const Tokenizer> tokenizer)
      : tokenizer_(std::move(tokenizer)), cache_(cache_entries) {}

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  void encode(ByteSpan text, std::vector<TokenId>* ids);

 private:
  std::size_t merge_short(const std::uint8_t* word, std::size_t length, TokenId* symbols) const;
  void merge_long(const std::uint8_t* word, std::size_t length, std::vector<TokenId>* ids);
  void push_candidate(std::uint32_t position);

  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<CacheEntry> cache_;
  std::vector<Symbol> symbols_;
  std::vector<Candidate> heap_;
};

// Merges a word of at most scanned_bytes in place, lowest id first; returns the number of tokens.
std::size_t Encoder::State::merge_short(const std::uint8_t* word, std::size_t length,
                                        TokenId* symbols) const {
  std::array<TokenId, scanned_bytes> pairs;  // pairs[i]: what symbols i and i + 1 become
  for (std::size_t i = 0; i < length; ++i) symbols[i] = first_byte_token + word[i];
  for (std::size_t i = 0; i + 1 < length; ++i) pairs[i] = tokenizer_->merged(symbols[i], symbols[i + 1]);
  while (length > 1) {
    const auto best = std::min_element(pairs.begin(), pairs.begin() + (length - 1));
    if (*best == Tokenizer::no_merge) break;
    const auto at = static_cast<std::size_t>(best - pairs.begin());
    symbols[at] = *best;
    std::copy(symbols + at + 2, symbols + length, symbols + at + 1);
    std::copy(pairs.begin() + at + 1, pairs.begin() + (length - 1), pairs.begin() + at);
    --length;
    if (at > 0) pairs[at - 1] = tokenizer_->merged(symbols[at - 1], symbols[at]);
    if (at + 1 < length) pairs[at] = tokenizer_->merged(symbols[at], symbols[at + 1]);
  }
  return length;
}

void Encoder::State::push_candidate(std::uint32_t position) {
  const Symbol& left = symbols_[position];
  if (left.next == none) return;
  const TokenId right = symbols_[left.next].id;
  const TokenId id = tokenizer_->merged(left.id, right);
  if (id == Tokenizer::no_merge) return;
  heap_.push_back({id, position, left.id, right});
  std::push_heap(heap_.begin(), heap_.end());
}

// The same for words of any length: a list of symbols and a heap of possible merges, each at most pushed once
// per change of its symbols, so O(n log n).
void Encoder::State::merge_long(const std::uint8_t* word, std::size_t length, std::vector<TokenId>* ids) {
  symbols_.resize(length);
  heap_.clear();
  for (std::uint32_t i = 0; i < length; ++i) {
    symbols_[i] = {first_byte_token + word[i], i - 1, i + 1 < length ? i + 1 : none};
  }
  for (std::uint32_t i = 0; i < length; ++i) push_candidate(i);
  while (!heap_.empty()) {
    const Candidate best = heap_.front();
    std::pop_heap(heap_.begin(), heap_.end());
    heap_.pop_back();
    Symbol& left = symbols_[best.position];
    if (left.id != best.left || left.next == none || symbols_[left.next].id != best.right) continue;
    Symbol& right = symbols_[left.next];
    left.id = best.id;
    left.next = right.next;
    right.id = none;
    if (left.next != none) symbols_[left.next].previous = best.position;
    if (left.previous != none) push_candidate(left.previous);
    push_candidate(best.position);
  }
  for (std::uint32_t i = 0; i != none; i = symbols_[i].next) ids->push_back(symbols_[i].id);
  if (symbols_.capacity() > kept_symbols) {  // one huge word must not hold its memory for ever
    symbols_ = {};
    heap_ = {};
  }
}

void Encoder::State::encode(ByteSpan text, std::vector<TokenId>* ids) {
  // Tokens gather here and move to the caller's vector in blocks.
  std::array<TokenId, 1024> block;
  std::size_t filled = 0;
  const auto flush = [&] {
    ids->insert(ids->end(), block.begin(), block.begin() + filled);
    filled = 0;
  };
  const std::uint8_t* const end = text.end();
  for (const std::uint8_t* word = text.begin(); word != end;) {
    const std::size_t length = first_word(word, end);
    if (length == 1) {
      block[filled++] = first_byte_token + *word;
    } else if (length <= cached_bytes) {
      const WordKey key = load_key(word, length, end);
      CacheEntry& entry = cache_[key.hash(length) & (cache_entries - 1)];
      if (entry.length == length && entry.key.part == key.part) {
        std::copy(entry.ids.begin(), entry.ids.end(),
                  block.begin() + filled);  // all of them: a fixed size is quicker
        filled += entry.count;
      } else {
        const std::size_t count = merge_short(word, length, block.data() + filled);
        if (count <= cached_tokens) {
          entry.key = key;
          entry.length = static_cast<std::uint8_t>(length);
          entry.count = static_cast<std::uint8_t>(count);
          std::copy_n(block.begin() + filled, count, entry.ids.begin());
        }
        filled += count;
      }
    } else if (length <= scanned_bytes) {
      filled += merge_short(word, length, block.data() + filled);
    } else {
      flush();
      merge_long(word, length, ids);
    }
    if (filled > block.size() - scanned_bytes) flush();
    word += length;
  }
  flush();
}

Encoder::Encoder(std::shared_ptr<const Tokenizer> tokenizer)
    : state_(std::make_unique<State>(std::move(tokenizer))) {}
Encoder::~Encoder() = default;
Encoder::Encoder(Encoder&&) noexcept = default;
Encoder& Encoder::operator=(Encoder&&) noexcept = default;

const Tokenizer& Encoder::tokenizer() const {
  return state_->tokenizer();
}

void Encoder::encode(ByteSpan text, std::vector<TokenId>* ids) {
  NS_CHECK(text.size() < none);
  state_->encode(text, ids);
}

std::vector<TokenId> Encoder::encode(ByteSpan text) {
  std::vector<TokenId> ids;
  encode(text, &ids);
  return ids;
}

}  // namespace neuroshard::data
