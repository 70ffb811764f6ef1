// A tokenizer in the notation that GPT-2's formats share: each byte is one printable character, a token is the text of
// its bytes, a merge is two tokens with a space between. Both tokenizer.json of Hugging Face and GGUF store it so.
// Unlike core/data they know a token by its text, so no two tokens may have the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/data/tokenizer.h"
#include "core/storage/file_env.h"

namespace neuroshard::exporting {

// Texts follow one another in training with the end token between them: it also says that a new text begins.
inline constexpr data::TokenId begin_of_text = data::eos_token;

// One chat template for both formats, in Jinja. The model is a base model, which has learned no roles: the messages become the
// text that the local HTTP server makes of them (core/serve/openai_request.h).
inline constexpr const char* plain_chat_template =
    "{% for message in messages %}"
    "{% if message['role'] == 'user' %}{{ 'User: ' + message['content'] + '\\n' }}"
    "{% elif message['role'] == 'assistant' %}{{ 'Assistant: ' + message['content'] + '\\n' }}"
    "{% else %}{{ message['content'] + '\\n\\n' }}{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}";

enum class TokenKind : std::uint8_t { Normal, Control, Unused };

struct Vocabulary {
  std::vector<std::string> tokens;  // one for each row of the embedding, by id
  std::vector<TokenKind> kinds;     // as many
  std::vector<std::string> merges;  // in the order in which they apply
};

// `rows`: of the model's embedding; those beyond the tokenizer get names of their own and are never used.
// InvalidArgument: the tokenizer has more tokens than rows; or two of its merges spell the same bytes, which the
// message names.
Expected<Vocabulary> make_vocabulary(const data::Tokenizer& tokenizer, std::uint32_t rows);

// The tokenizer of a checkpoint, from the data directory's data/ or data/published/.  hash: SHA-256 of its file.
// NotFound: neither has this hash.
Expected<data::Tokenizer> find_tokenizer(storage::FileEnv& env, const std::string& data_path,
                                         const Hash256& hash);

}  // namespace neuroshard::exporting
