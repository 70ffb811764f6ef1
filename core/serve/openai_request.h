// The bodies of POST /v1/completions, /v1/chat/completions and /v1/embeddings as requests for the node: the fields of OpenAI's
// interface, and top_k, min_p and repetition_penalty. A field that is not known, or whose value this node cannot
// honour, is refused rather than ignored. Pure; any bytes are safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/node/generation.h"

namespace neuroshard::serve {

inline constexpr std::size_t max_body_bytes = 1u << 20;
inline constexpr std::size_t max_prompts = 128;  // of one request
inline constexpr int max_json_depth = 8;
inline constexpr std::size_t max_messages = 1024;

// An error in OpenAI's shape.
struct ApiError {
  int status = 400;
  std::string type = "invalid_request_error";
  std::string code;   // "model_not_found"; empty = null
  std::string param;  // the field; empty = null
  std::string message;
};
std::string render(const ApiError& error);

// Kinds of requests; each has a path of its own.
enum class TextKind { Completion, Chat, Embedding };

struct TextRequest {
  TextKind kind = TextKind::Completion;
  bool stream = false;
  bool include_usage = false;                  // a last event of the stream has the usage
  bool base64 = false;                         // embeddings as base64 of little-endian fp32, else as numbers
  std::string model;                           // never empty
  std::vector<node::GenerateRequest> prompts;  // 1 … max_prompts; they differ in the prompt only
};

// A value, or why there is none.
struct ParsedRequest {
  std::optional<TextRequest> request;
  ApiError error;
};
// The names of the fields that the parser of this kind knows.
std::vector<std::string> request_fields(TextKind kind);

ParsedRequest parse(TextKind kind, const std::string& body);
ParsedRequest parse_completion(const std::string& body);
// The messages become one text, as a base model has learned no roles:
//   {system}\n\nUser: {user}\nAssistant: {assistant}\nUser: {user}\nAssistant:
// and the answer ends before "\nUser:".
ParsedRequest parse_chat(const std::string& body);
// An empty text has no embedding and is refused.
ParsedRequest parse_embeddings(const std::string& body);

}  // namespace neuroshard::serve
