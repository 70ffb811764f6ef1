// Byte-level BPE (Sennrich et al. 2016, on bytes as in GPT-2). Ids: 0 PAD, 1 BOS, 2 EOS, 3 UNK, 4-9 reserved,
// bytes 10-265, then the merges in the order in which they were learned: a lower id is applied first.
// decode(encode(x)) = x for every byte string x (encode: encoder.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/base/span.h"
#include "core/data/detail/pair_table.h"

namespace neuroshard::data {

using TokenId = std::uint32_t;

inline constexpr TokenId pad_token = 0;
inline constexpr TokenId bos_token = 1;
inline constexpr TokenId eos_token = 2;
inline constexpr TokenId unknown_token = 3;
inline constexpr TokenId first_byte_token = 10;
inline constexpr TokenId first_merge_token = first_byte_token + 256;

// Bounds of anything accepted from a file or a peer.
inline constexpr std::uint32_t max_vocabulary = 1u << 20;
inline constexpr std::uint32_t max_token_bytes = 4096;              // one token's expansion
inline constexpr std::uint64_t max_vocabulary_bytes = 64ull << 20;  // all expansions together
inline constexpr std::uint64_t max_tokenizer_file_bytes = 96ull << 20;
inline constexpr std::size_t max_tokenizer_sources = 1024;
inline constexpr std::size_t max_source_name_bytes = 128;

// Two neighbours that become one token. Both ids are lower than the new token's.
struct Merge {
  TokenId left = 0;
  TokenId right = 0;
  friend bool operator==(Merge a, Merge b) { return a.left == b.left && a.right == b.right; }
};

// Name of a text source → bytes of its text that merges were learned from.
using SourceBytes = std::map<std::string, std::uint64_t>;

// Immutable; copies are deep, so share it by shared_ptr.  Threads: any.
class Tokenizer {
 public:
  // Bytes only: vocab_size() = 266.
  Tokenizer();
  // merges[i] makes the token 266 + i.  InvalidArgument names the merge that refers to a later or a special
  // token, repeats a pair or exceeds a bound, or the source whose name is not printable UTF-8.
  static Expected<Tokenizer> from_merges(std::vector<Merge> merges, SourceBytes sources);

  std::uint32_t vocab_size() const { return first_merge_token + static_cast<std::uint32_t>(merges_.size()); }
  Span<const Merge> merges() const { return {merges_.data(), merges_.size()}; }
  const SourceBytes& sources() const { return sources_; }

  // The token that a pair becomes, or no_merge.
  static constexpr TokenId no_merge = detail::PairTable::absent;
  TokenId merged(TokenId left, TokenId right) const { return table_.find(left, right); }

  // The bytes of a token; none for special tokens. id < vocab_size().
  ByteSpan token_bytes(TokenId id) const;
  // Special tokens add nothing.  InvalidArgument names an id outside the vocabulary; *text then holds what
  // came before. Ids are handed in as 32-bit tokens of batches or the 64-bit tokens of shards.
  Expected<void> decode(Span<const TokenId> ids, Bytes* text) const;
  Expected<void> decode(Span<const std::int64_t> ids, Bytes* text) const;
  Expected<Bytes> decode(Span<const TokenId> ids) const;

  // True if every merge of this tokenizer is the same merge of `other`: what this one encoded stays valid
  // there, and growing from this one to `other` leaves all existing ids untouched.
  bool is_prefix_of(const Tokenizer& other) const;

  // tokenizer.json in its one canonical form, and the SHA-256 of exactly these bytes.
  Bytes to_json() const;
  Hash256 hash() const;

 private:
  std::vector<Merge> merges_;
  SourceBytes sources_;
  detail::PairTable table_;
  Bytes expansions_;                         // every token's bytes, one after the other
  std::vector<std::uint32_t> expansion_at_;  // [vocab_size + 1]
};

// Reads tokenizer.json. Any layout of the JSON is accepted, but every field must be there and consistent.
// Corrupt says what is wrong; nothing is allocated beyond the bounds above, whatever the file claims.
Expected<Tokenizer> parse_tokenizer(ByteSpan file);

// A tokenizer received from elsewhere may replace the local one only if it continues it. Denied otherwise.
Expected<void> check_growth(const Tokenizer& local, const Tokenizer& received);

}  // namespace neuroshard::data
