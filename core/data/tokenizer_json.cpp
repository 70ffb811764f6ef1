// tokenizer.json, written and read. Canonical form: no spaces, the five fields in the order of
// docs/protocol/data.md, merges in order of id, sources in order of name, a line feed at the end.
#include <fmt/format.h>

#include <charconv>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/limits.h"
#include "core/crypto/hash.h"
#include "core/data/tokenizer.h"

namespace neuroshard::data {
namespace {

using nlohmann::json;

Error corrupt(std::string what) {
  return make_error(ErrorCode::Corrupt, "tokenizer.json " + std::move(what));
}

// A decimal number as we write it: digits only, no leading zero.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value = 0;
  if (text.empty() || (text.size() > 1 && text[0] == '0') || text[0] == '-') return std::nullopt;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

// Takes the file apart as nlohmann's parser walks it, without a tree in memory: a state per place where a
// value may stand. Returning false stops the parser; error() then says why.
class Reader final : public nlohmann::json_sax<json> {
 public:
  Expected<Tokenizer> finish();
  const std::optional<Error>& error() const { return error_; }

  bool null() override { return fail("contains a null"); }
  bool boolean(bool) override { return fail("contains a true or false"); }
  bool number_integer(number_integer_t) override { return fail("contains a negative number"); }
  bool number_float(number_float_t, const string_t&) override {
    return fail("contains a number with a fraction");
  }
  bool string(string_t&) override { return fail("contains a text where a number belongs"); }
  bool binary(binary_t&) override { return fail("contains binary data"); }

  bool number_unsigned(number_unsigned_t value) override;
  bool start_object(std::size_t) override;
  bool end_object() override;
  bool start_array(std::size_t) override;
  bool end_array() override;
  bool key(string_t& name) override;
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    return fail(fmt::format("is not valid JSON at byte {}", position));
  }

 private:
  enum class Place { Start, Top, Merges, MergeToTokens, Pair, Sources, End };
  enum Field : unsigned { VocabSize, NextMergeId, MergesField, MergeToTokensField, SourcesField, FieldCount };
  static constexpr const char* field_names[FieldCount] = {"vocab_size", "next_merge_id", "merges",
                                                          "merge_to_tokens", "sources_contributed"};

  bool fail(std::string what) {
    if (!error_) error_ = corrupt(std::move(what));
    return false;
  }
  bool top_key(const std::string& name);
  bool merge_key(const std::string& name);
  bool set_merge(std::uint64_t id);
  // The place of token `id` in a list of merges, grown as far as needed; null if the id can't be a merge.
  static Merge* place_of(std::vector<Merge>* list, std::uint64_t id);

  Place place_ = Place::Start;
  unsigned seen_ = 0;  // bit per Field
  Field field_ = FieldCount;
  std::uint64_t vocab_size_ = 0;
  std::uint64_t next_merge_id_ = 0;
  Merge pair_{};                   // of the key just read
  std::vector<Merge> merges_;      // by id; {0, 0} where none was read
  std::vector<Merge> expansions_;  // the same, from merge_to_tokens
  Merge* target_ = nullptr;
  unsigned pair_length_ = 0;
  std::uint64_t merge_count_ = 0;
  SourceBytes sources_;
  std::string source_;
  std::optional<Error> error_;
};

Merge* Reader::place_of(std::vector<Merge>* list, std::uint64_t id) {
  if (id < first_merge_token || id >= max_vocabulary) return nullptr;
  const std::size_t index = id - first_merge_token;
  if (index >= list->size()) list->resize(index + 1);  // at most max_vocabulary entries of 8 bytes
  return &(*list)[index];
}

bool Reader::set_merge(std::uint64_t id) {
  Merge* merge = place_of(&merges_, id);
  if (merge == nullptr) return fail(fmt::format("has a merge with the impossible id {}", id));
  if (!(*merge == Merge{})) return fail(fmt::format("has two merges with the id {}", id));
  *merge = pair_;
  ++merge_count_;
  return true;
}

bool Reader::number_unsigned(number_unsigned_t value) {
  switch (place_) {
    case Place::Top:
      if (field_ == VocabSize) {
        vocab_size_ = value;
      } else if (field_ == NextMergeId) {
        next_merge_id_ = value;
      } else {
        return fail("has a number where an object belongs");
      }
      field_ = FieldCount;
      return true;
    case Place::Merges: return set_merge(value);
    case Place::Pair:
      if (value >= max_vocabulary || pair_length_ >= 2) return fail("has a bad pair in merge_to_tokens");
      (pair_length_++ == 0 ? target_->left : target_->right) = static_cast<TokenId>(value);
      return true;
    case Place::Sources: sources_[source_] = value; return true;
    default: return fail("has a number where it does not belong");
  }
}

bool Reader::start_object(std::size_t) {
  if (place_ == Place::Start) {
    place_ = Place::Top;
    return true;
  }
  if (place_ != Place::Top) return fail("has an object where a number belongs");
  switch (field_) {
    case MergesField: place_ = Place::Merges; return true;
    case MergeToTokensField: place_ = Place::MergeToTokens; return true;
    case SourcesField: place_ = Place::Sources; return true;
    default: return fail("has an object where a number belongs");
  }
}

bool Reader::end_object() {
  place_ = place_ == Place::Top ? Place::End : Place::Top;
  field_ = FieldCount;
  return true;
}

bool Reader::start_array(std::size_t) {
  if (place_ != Place::MergeToTokens) return fail("has a list where it does not belong");
  place_ = Place::Pair;
  pair_length_ = 0;
  return true;
}

bool Reader::end_array() {
  if (pair_length_ != 2) return fail("has a bad pair in merge_to_tokens");
  place_ = Place::MergeToTokens;
  return true;
}

bool Reader::top_key(const std::string& name) {
  for (unsigned field = 0; field < FieldCount; ++field) {
    if (name != field_names[field]) continue;
    if (seen_ & (1u << field)) return fail(fmt::format("has the field {} twice", name));
    seen_ |= 1u << field;
    field_ = static_cast<Field>(field);
    return true;
  }
  return fail("has an unknown field; a newer version may be needed to read it");
}

bool Reader::merge_key(const std::string& name) {
  const std::size_t middle = name.find('_');
  if (middle == std::string::npos) return fail("has a merge whose key is not of the form a_b");
  const auto left = parse_number<TokenId>(std::string_view(name).substr(0, middle));
  const auto right = parse_number<TokenId>(std::string_view(name).substr(middle + 1));
  if (!left || !right || *left < first_byte_token || *right < first_byte_token) {
    return fail("has a merge whose key is not a pair of ordinary tokens");
  }
  pair_ = {*left, *right};
  return true;
}

bool Reader::key(string_t& name) {
  switch (place_) {
    case Place::Top: return top_key(name);
    case Place::Merges: return merge_key(name);
    case Place::MergeToTokens: {
      const auto id = parse_number<TokenId>(name);
      target_ = id ? place_of(&expansions_, *id) : nullptr;
      if (target_ == nullptr) return fail("has a bad id in merge_to_tokens");
      if (!(*target_ == Merge{})) return fail(fmt::format("has the id {} twice in merge_to_tokens", name));
      return true;
    }
    case Place::Sources:
      if (sources_.size() >= max_tokenizer_sources) return fail("has too many sources");
      if (name.size() > max_source_name_bytes) return fail("has a source with too long a name");
      if (sources_.count(name) != 0) return fail("has a source twice");
      source_ = name;
      return true;
    default: return fail("has a key where it does not belong");
  }
}

Expected<Tokenizer> Reader::finish() {
  for (unsigned field = 0; field < FieldCount; ++field) {
    if (!(seen_ & (1u << field))) return corrupt(fmt::format("lacks the field {}", field_names[field]));
  }
  if (vocab_size_ != first_merge_token + merges_.size() || next_merge_id_ != vocab_size_ ||
      merge_count_ != merges_.size()) {
    return corrupt(fmt::format(
        "has {} merges, but vocab_size {} and next_merge_id {}; the ids must run from {} without a gap",
        merge_count_, vocab_size_, next_merge_id_, first_merge_token));
  }
  if (expansions_ != merges_) return corrupt("has merge_to_tokens that differ from merges");
  auto tokenizer = Tokenizer::from_merges(std::move(merges_), std::move(sources_));
  if (!tokenizer.ok()) return corrupt("is inconsistent: " + tokenizer.error().message);
  return tokenizer;
}

}  // namespace

Bytes Tokenizer::to_json() const {
  std::string text;
  text.reserve(64 + 56 * merges_.size());
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "{{\"vocab_size\":{},\"next_merge_id\":{},\"merges\":{{", vocab_size(), vocab_size());
  for (std::size_t i = 0; i < merges_.size(); ++i) {
    fmt::format_to(out, "{}\"{}_{}\":{}", i == 0 ? "" : ",", merges_[i].left, merges_[i].right,
                   first_merge_token + i);
  }
  fmt::format_to(out, "}},\"merge_to_tokens\":{{");
  for (std::size_t i = 0; i < merges_.size(); ++i) {
    fmt::format_to(out, "{}\"{}\":[{},{}]", i == 0 ? "" : ",", first_merge_token + i, merges_[i].left,
                   merges_[i].right);
  }
  fmt::format_to(out, "}},\"sources_contributed\":{{");
  bool first = true;
  for (const auto& [name, bytes] : sources_) {
    // The name was checked when the tokenizer was made; ASCII escapes keep the bytes independent of the
    // writer.
    fmt::format_to(out, "{}{}:{}", first ? "" : ",",
                   json(name).dump(-1, ' ', true, json::error_handler_t::replace), bytes);
    first = false;
  }
  text += "}}\n";
  const ByteSpan bytes = as_bytes(text);
  return Bytes(bytes.begin(), bytes.end());
}

Hash256 Tokenizer::hash() const {
  const Bytes file = to_json();
  return crypto::sha256({file.data(), file.size()});
}

Expected<Tokenizer> parse_tokenizer(ByteSpan file) {
  if (file.size() > max_tokenizer_file_bytes) {
    return corrupt(
        fmt::format("has {} bytes; at most {} are accepted", file.size(), max_tokenizer_file_bytes));
  }
  Reader reader;
  const bool read = json::sax_parse(file.begin(), file.end(), &reader);
  if (reader.error()) return *reader.error();
  if (!read) return corrupt("is not valid JSON");
  return reader.finish();
}

}  // namespace neuroshard::data
