#include "core/export/hugging_face_tokenizer.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/export/detail/json_object.h"
#include "core/export/vocabulary.h"

namespace neuroshard::exporting {
namespace {

using nlohmann::json;

using Ids = std::unordered_map<std::string, data::TokenId>;

Error corrupt(std::string what) {
  return make_error(ErrorCode::Corrupt, fmt::format("{} {}", hugging_face_tokenizer, what));
}

Error unsupported(std::string what) {
  return make_error(ErrorCode::Unsupported,
                    fmt::format("{}: NeuroShard's tokenizer has no {}", hugging_face_tokenizer, what));
}

const json& member(const json& object, const char* key) {
  static const json nothing;
  const auto at = object.find(key);
  return at == object.end() ? nothing : *at;
}

bool on(const json& object, const char* key) {
  const json& value = member(object, key);
  return !value.is_null() && value != json(false) && value != json("") && value != json(0.0);
}

Expected<void> check_split(const json& pre) {
  if (!pre.is_object() || member(pre, "type") != json("ByteLevel"))
    return unsupported("split but ByteLevel (pre_tokenizer)");
  if (on(pre, "add_prefix_space")) return unsupported("space before a text (add_prefix_space)");
  if (pre.contains("use_regex") && pre["use_regex"] != json(true))
    return unsupported("split without words (use_regex)");
  return {};
}

Expected<void> check_kind(const json& object, const json& model) {
  if (on(object, "normalizer")) return unsupported("normalizer");
  NS_RETURN_IF_ERROR(check_split(member(object, "pre_tokenizer")));
  if (!model.is_object() || member(model, "type") != json("BPE")) return unsupported("model but BPE");
  for (const char* const key : {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
                                "fuse_unk", "byte_fallback", "ignore_merges"})
    if (on(model, key)) return unsupported(fmt::format("{} (model)", key));
  return {};
}

Expected<Ids> read_ids(const json& vocabulary, std::uint32_t rows) {
  if (!vocabulary.is_object()) return corrupt("lacks its vocabulary");
  if (vocabulary.size() > rows)
    return unsupported(fmt::format("room for {} tokens in a model of {}", vocabulary.size(), rows));
  Ids ids;
  for (const auto& [text, id] : vocabulary.items()) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= rows)
      return corrupt(fmt::format("has a token whose id is not a row of the model: {:.40}", text));
    ids.emplace(text, static_cast<data::TokenId>(id.get<std::uint64_t>()));
  }
  return ids;
}

// "left right", or [left, right] as newer programs write it.
Expected<data::Merge> read_merge(const json& item, const Ids& ids) {
  std::string left, right;
  if (item.is_string()) {
    const auto& text = item.get_ref<const std::string&>();
    const std::size_t space = text.find(' ');
    if (space == std::string::npos) return corrupt("has a merge without a space");
    left = text.substr(0, space);
    right = text.substr(space + 1);
  } else if (item.is_array() && item.size() == 2 && item[0].is_string() && item[1].is_string()) {
    left = item[0].get<std::string>();
    right = item[1].get<std::string>();
  } else {
    return corrupt("has a merge that is not two tokens");
  }
  const auto first = ids.find(left), second = ids.find(right);
  if (first == ids.end() || second == ids.end())
    return corrupt(fmt::format("has a merge of unknown tokens: {:.40} {:.40}", left, right));
  return data::Merge{first->second, second->second};
}

// Every token has the id that our layout gives it.
Expected<void> check_ids(const data::Tokenizer& tokenizer, const Ids& ids, std::uint32_t rows) {
  NS_ASSIGN_OR_RETURN(const Vocabulary ours, make_vocabulary(tokenizer, rows));
  for (data::TokenId id = 0; id < tokenizer.vocab_size(); ++id) {
    const auto at = ids.find(ours.tokens[id]);
    if (at == ids.end() || at->second != id)
      return unsupported(fmt::format("token {:.40} with another id than {}", ours.tokens[id], id));
  }
  for (const auto& [text, id] : ids)
    if (ours.tokens[id] != text) return unsupported(fmt::format("token {:.40} with the id {}", text, id));
  return {};
}

}  // namespace

Expected<data::Tokenizer> parse_hugging_face_tokenizer(ByteSpan file, std::uint32_t rows) {
  NS_ASSIGN_OR_RETURN(const json object, detail::parse_json_object(file, hugging_face_tokenizer,
                                                                   max_hugging_face_tokenizer_bytes));
  const json& model = member(object, "model");
  NS_RETURN_IF_ERROR(check_kind(object, model));
  NS_ASSIGN_OR_RETURN(const Ids ids, read_ids(member(model, "vocab"), rows));
  const json& merges = member(model, "merges");
  if (!merges.is_array()) return corrupt("lacks its merges");
  std::vector<data::Merge> pairs;
  for (const json& item : merges) {
    NS_ASSIGN_OR_RETURN(const data::Merge merge, read_merge(item, ids));
    pairs.push_back(merge);
  }
  Expected<data::Tokenizer> tokenizer = data::Tokenizer::from_merges(std::move(pairs), {});
  if (!tokenizer.ok()) return std::move(tokenizer).error().with_context(hugging_face_tokenizer);
  NS_RETURN_IF_ERROR(check_ids(*tokenizer, ids, rows));
  return tokenizer;
}

}  // namespace neuroshard::exporting
