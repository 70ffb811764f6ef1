// Answers of /v1/completions, /v1/chat/completions and /v1/embeddings in OpenAI's shape, whole or as events of a stream.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/node/generation.h"
#include "core/node/queries.h"

namespace neuroshard::serve {

// Fields that every part of one answer has.
struct ReplyHead {
  bool chat = false;
  std::string id;  // "cmpl-…", "chatcmpl-…"
  std::int64_t created = 0;
  std::string model;
  std::string fingerprint;  // names the checkpoint
  bool logprobs = false;
  bool with_usage = false;  // of a stream: each event has "usage", and the last one its value
};

// The answer to one prompt, as far as it is there.
struct Choice {
  std::string text;
  std::vector<node::GeneratedToken> tokens;
  std::size_t characters = 0;  // of the tokens before, for text_offset
  std::optional<std::string> finish;
};

struct Usage {
  std::uint64_t prompt_tokens = 0, completion_tokens = 0;
};

// "stop" or "length", for GenerateResult::stopped_by.
std::string finish_reason(const std::string& stopped_by);
std::size_t characters_of(const std::vector<node::GeneratedToken>& tokens);

std::string render_whole(const ReplyHead& head, const std::vector<Choice>& choices, const Usage& usage);
// One event of a stream, "data: {…}\n\n". first: the role of a chat comes with it.
std::string render_event(const ReplyHead& head, std::size_t index, const Choice& part, bool first);
// One entry of an answer's list.
std::string render_embedding(std::size_t index, const std::vector<float>& embedding, bool base64);
// entries: of render_embedding(), with commas between them.
std::string render_embeddings(const ReplyHead& head, const std::string& entries, const Usage& usage);
std::string render_usage_event(const ReplyHead& head, const Usage& usage);

}  // namespace neuroshard::serve
