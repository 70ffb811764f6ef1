#include "core/export/vocabulary.h"

#include <fmt/format.h>

#include <array>
#include <unordered_map>

#include "core/data/manifest.h"

namespace neuroshard::exporting {
namespace {

void append_utf8(std::uint32_t code, std::string* text) {  // below U+0800
  if (code < 0x80) {
    text->push_back(static_cast<char>(code));
    return;
  }
  text->push_back(static_cast<char>(0xC0 | code >> 6));
  text->push_back(static_cast<char>(0x80 | (code & 0x3F)));
}

// The characters of GPT-2: a byte that is a printable Latin-1 character stands for itself, the others in order for the
// characters from U+0100 on.
std::array<std::string, 256> make_byte_characters() {
  std::array<std::string, 256> characters;
  std::uint32_t next = 0x100;
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    append_utf8(printable ? byte : next++, &characters[byte]);
  }
  return characters;
}

// With a bar and letters: the split never puts both into one word, so ordinary text has no token of this name.
std::string special_name(data::TokenId id) {
  switch (id) {
    case data::pad_token: return "<|pad|>";
    case data::bos_token: return "<|bos|>";
    case data::eos_token: return "<|endoftext|>";
    case data::unknown_token: return "<|unk|>";
    default: return fmt::format("<|reserved_{}|>", id);
  }
}

std::string spell(ByteSpan bytes, const std::array<std::string, 256>& characters) {
  std::string text;
  for (const std::uint8_t byte : bytes) text += characters[byte];
  return text;
}

Error same_spelling(data::TokenId first, data::TokenId second) {
  return make_error(ErrorCode::InvalidArgument,
                    fmt::format("the tokens {} and {} of this tokenizer stand for the same bytes; GGUF and "
                                "Hugging Face know a token "
                                "by its text, so they can't express this tokenizer. Export as safetensors",
                                first, second));
}

}  // namespace

Expected<Vocabulary> make_vocabulary(const data::Tokenizer& tokenizer, std::uint32_t rows) {
  const std::uint32_t size = tokenizer.vocab_size();
  if (size > rows) {
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("the tokenizer has {} tokens and the model only {}", size, rows));
  }
  const auto characters = make_byte_characters();
  Vocabulary result;
  std::unordered_map<std::string, data::TokenId> seen;
  for (data::TokenId id = 0; id < rows; ++id) {
    const bool special = id < data::first_byte_token;
    std::string text = special     ? special_name(id)
                       : id < size ? spell(tokenizer.token_bytes(id), characters)
                                   : fmt::format("<|unused_{}|>", id);
    const auto [at, is_new] = seen.emplace(text, id);
    if (!is_new) return same_spelling(at->second, id);
    const bool control = id <= data::unknown_token;
    result.kinds.push_back(control                 ? TokenKind::Control
                           : special || id >= size ? TokenKind::Unused
                                                   : TokenKind::Normal);
    result.tokens.push_back(std::move(text));
  }
  for (const data::Merge merge : tokenizer.merges())
    result.merges.push_back(result.tokens[merge.left] + " " + result.tokens[merge.right]);
  return result;
}

Expected<data::Tokenizer> find_tokenizer(storage::FileEnv& env, const std::string& data_path,
                                         const Hash256& hash) {
  for (const char* const folder : {"/", "/published/"}) {
    const std::string path = data_path + folder + data::tokenizer_file_name;
    if (!env.exists(path)) continue;
    NS_ASSIGN_OR_RETURN(const Bytes file, storage::read_file(env, path, data::max_tokenizer_file_bytes));
    Expected<data::Tokenizer> tokenizer = data::parse_tokenizer(file);
    if (tokenizer.ok() && tokenizer->hash() == hash) return tokenizer;
  }
  return make_error(
      ErrorCode::NotFound,
      fmt::format("the tokenizer {} of this checkpoint is not in {}; export it on a node that trains with "
                  "this tokenizer, or as safetensors",
                  to_hex(hash).substr(0, 16), data_path));
}

}  // namespace neuroshard::exporting
