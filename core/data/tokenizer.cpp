#include "core/data/tokenizer.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>

namespace neuroshard::data {
namespace {

Error bad_merge(std::size_t index, std::string_view what) {
  return make_error(ErrorCode::InvalidArgument, fmt::format("merge {} {}", first_merge_token + index, what));
}

// Printable UTF-8 of a sensible length: it is shown to people and is part of the canonical file.
Expected<void> check_source_name(const std::string& name) {
  if (name.empty() || name.size() > max_source_name_bytes) {
    return make_error(
        ErrorCode::InvalidArgument,
        fmt::format("a source's name must have 1 to {} bytes, not {}", max_source_name_bytes, name.size()));
  }
  const auto* at = reinterpret_cast<const utf8proc_uint8_t*>(name.data());
  auto left = static_cast<utf8proc_ssize_t>(name.size());
  while (left > 0) {
    utf8proc_int32_t code = 0;
    const utf8proc_ssize_t length = utf8proc_iterate(at, left, &code);
    if (length <= 0 || code < 0x20 || (code >= 0x7F && code < 0xA0)) {
      return make_error(ErrorCode::InvalidArgument,
                        "a source's name must be UTF-8 without control characters");
    }
    at += length;
    left -= length;
  }
  return {};
}

Expected<void> check_sources(const SourceBytes& sources) {
  if (sources.size() > max_tokenizer_sources) {
    return make_error(ErrorCode::InvalidArgument, fmt::format("{} text sources are too many: at most {}",
                                                              sources.size(), max_tokenizer_sources));
  }
  for (const auto& [name, bytes] : sources) NS_RETURN_IF_ERROR(check_source_name(name));
  return {};
}

template <class Id>
Expected<void> decode_ids(const Tokenizer& tokenizer, Span<const Id> ids, Bytes* text) {
  for (const Id id : ids) {
    if (id < 0 || static_cast<std::uint64_t>(id) >= tokenizer.vocab_size()) {
      return make_error(
          ErrorCode::InvalidArgument,
          fmt::format("token {} is outside the vocabulary of {}; was it made with another tokenizer?", id,
                      tokenizer.vocab_size()));
    }
    const ByteSpan bytes = tokenizer.token_bytes(static_cast<TokenId>(id));
    text->insert(text->end(), bytes.begin(), bytes.end());
  }
  return {};
}

}  // namespace

Tokenizer::Tokenizer() {
  expansion_at_.assign(first_byte_token + 1, 0);
  for (unsigned byte = 0; byte < 256; ++byte) {
    expansions_.push_back(static_cast<std::uint8_t>(byte));
    expansion_at_.push_back(static_cast<std::uint32_t>(expansions_.size()));
  }
}

Expected<Tokenizer> Tokenizer::from_merges(std::vector<Merge> merges, SourceBytes sources) {
  if (merges.size() > max_vocabulary - first_merge_token) {
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("{} merges are too many: a vocabulary has at most {} tokens", merges.size(),
                                  max_vocabulary));
  }
  NS_RETURN_IF_ERROR(check_sources(sources));
  Tokenizer result;
  result.table_ = detail::PairTable(merges.size());
  result.expansion_at_.reserve(first_merge_token + merges.size() + 1);
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const auto [left, right] = merges[i];
    const auto id = static_cast<TokenId>(first_merge_token + i);
    if (left >= id || right >= id) return bad_merge(i, "refers to a token that comes after it");
    if (left < first_byte_token || right < first_byte_token) return bad_merge(i, "contains a special token");
    const ByteSpan a = result.token_bytes(left);
    const ByteSpan b = result.token_bytes(right);
    if (a.size() + b.size() > max_token_bytes) {
      return bad_merge(i, fmt::format("stands for more than {} bytes", max_token_bytes));
    }
    const std::size_t at = result.expansions_.size();
    const std::size_t size = a.size() + b.size();
    if (at + size > max_vocabulary_bytes) return bad_merge(i, "makes the vocabulary too large");
    const std::size_t from_a = result.expansion_at_[left];
    const std::size_t from_b = result.expansion_at_[right];
    const std::size_t size_a = a.size();
    result.expansions_.resize(at + size);  // a and b dangle from here on
    std::copy_n(result.expansions_.begin() + from_a, size_a, result.expansions_.begin() + at);
    std::copy_n(result.expansions_.begin() + from_b, size - size_a, result.expansions_.begin() + at + size_a);
    result.expansion_at_.push_back(static_cast<std::uint32_t>(at + size));
    bool inserted = false;
    result.table_.find_or_insert(left, right, id, &inserted);
    if (!inserted) return bad_merge(i, "repeats the pair of an earlier merge");
  }
  result.merges_ = std::move(merges);
  result.sources_ = std::move(sources);
  return result;
}

ByteSpan Tokenizer::token_bytes(TokenId id) const {
  NS_CHECK(id + 1 < expansion_at_.size());
  return {expansions_.data() + expansion_at_[id], expansion_at_[id + 1] - expansion_at_[id]};
}

Expected<void> Tokenizer::decode(Span<const TokenId> ids, Bytes* text) const {
  return decode_ids(*this, ids, text);
}

Expected<void> Tokenizer::decode(Span<const std::int64_t> ids, Bytes* text) const {
  return decode_ids(*this, ids, text);
}

Expected<Bytes> Tokenizer::decode(Span<const TokenId> ids) const {
  Bytes text;
  NS_RETURN_IF_ERROR(decode(ids, &text));
  return text;
}

bool Tokenizer::is_prefix_of(const Tokenizer& other) const {
  return merges_.size() <= other.merges_.size() &&
         std::equal(merges_.begin(), merges_.end(), other.merges_.begin());
}

Expected<void> check_growth(const Tokenizer& local, const Tokenizer& received) {
  if (local.is_prefix_of(received)) return {};
  return make_error(
      ErrorCode::Denied,
      "the received tokenizer does not continue the local one, so it would change what existing tokens "
      "mean; it belongs to another network or has been tampered with. The local one is kept");
}

}  // namespace neuroshard::data
