#include "core/serve/openai_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/serve/detail/request_reader.h"

namespace neuroshard::serve {
namespace {

using detail::add_prompt;
using detail::Fields;
using detail::parse_body;
using detail::read_fields;
using detail::Reader;
using nlohmann::json;

constexpr std::uint32_t default_completion_tokens = 16;  // as OpenAI's
constexpr std::uint32_t default_chat_tokens = 256;
constexpr const char* turn_of_user = "User:";

void read_stop(Reader& to, const json& value) {
  const auto add = [&](const json& one) {
    const std::string text = one.is_string() ? one.get<std::string>() : std::string();
    if (text.empty() || text.size() > node::max_stop_bytes ||
        to.options().stop.size() >= node::max_stop_sequences) {
      return to.fail("stop", fmt::format("'stop' must be a text, or at most {} texts, of 1 to {} bytes.",
                                         node::max_stop_sequences, node::max_stop_bytes));
    }
    to.options().stop.push_back(text);
  };
  if (value.is_array()) {
    for (const json& one : value) add(one);
  } else {
    add(value);
  }
}

void read_bias(Reader& to, const json& value) {
  if (!value.is_object() || value.size() > node::max_biases)
    return to.fail("logit_bias",
                   fmt::format("'logit_bias' must be an object of at most {} tokens.", node::max_biases));
  for (const auto& [key, bias] : value.items()) {
    std::uint32_t token = 0;
    const auto [end, failed] = std::from_chars(key.data(), key.data() + key.size(), token);
    if (failed != std::errc() || end != key.data() + key.size() || key.empty())
      return to.fail("logit_bias", "The keys of 'logit_bias' must be token ids.");
    to.options().logit_bias.push_back({token, to.number("logit_bias", bias, -100, 100)});
  }
}

void read_seed(Reader& to, const json& value) {
  if (!value.is_number_integer()) return to.fail("seed", "'seed' must be a whole number.");
  to.options().seed = node::fixed_seed(static_cast<std::uint64_t>(value.get<std::int64_t>()));
}

void read_stream_options(Reader& to, const json& value) {
  if (!value.is_object()) return to.fail("stream_options", "'stream_options' must be an object.");
  for (const auto& [key, one] : value.items()) {
    if (key != "include_usage") return to.fail("stream_options", "Only 'include_usage' is supported.");
    to.request().include_usage = to.boolean("stream_options", one);
  }
}

// least_tokens: without the echo of a prompt, no tokens at all make no sense.
Fields common_fields(std::uint32_t least_tokens) {
  const auto tokens = [least_tokens](const char* name) {
    return [name, least = least_tokens](Reader& to, const json& value) {
      to.options().max_tokens = to.integer(name, value, least, node::max_generated_tokens);
    };
  };
  Fields fields;
  fields["model"] = detail::read_model;
  fields["stop"] = read_stop;
  fields["logit_bias"] = read_bias;
  fields["seed"] = read_seed;
  fields["stream_options"] = read_stream_options;
  fields["max_tokens"] = tokens("max_tokens");
  fields["max_completion_tokens"] = tokens("max_completion_tokens");
  fields["temperature"] = [](Reader& to, const json& v) {
    to.options().temperature = to.number("temperature", v, 0, 2);
  };
  fields["top_p"] = [](Reader& to, const json& v) {
    to.options().top_p = std::max(1e-6, to.number("top_p", v, 0, 1));
  };
  fields["top_k"] = [](Reader& to, const json& v) {
    to.options().top_k = to.integer("top_k", v, 0, 1'000'000);
  };
  fields["min_p"] = [](Reader& to, const json& v) { to.options().min_p = to.number("min_p", v, 0, 1); };
  fields["repetition_penalty"] = [](Reader& to, const json& v) {
    to.options().repetition_penalty = to.number("repetition_penalty", v, 0.01, 100);
  };
  fields["stream"] = [](Reader& to, const json& v) { to.request().stream = to.boolean("stream", v); };
  fields["n"] = [](Reader& to, const json& v) { to.only("n", v, 1); };
  fields["presence_penalty"] = [](Reader& to, const json& v) { to.only("presence_penalty", v, 0); };
  fields["frequency_penalty"] = [](Reader& to, const json& v) { to.only("frequency_penalty", v, 0); };
  fields["user"] = [](Reader&, const json&) {};
  return fields;
}

// The text of a message: a string, or parts of type "text".
std::optional<std::string> content_of(const json& message) {
  const auto content = message.find("content");
  if (content == message.end()) return std::nullopt;
  if (content->is_string()) return content->get<std::string>();
  if (!content->is_array()) return std::nullopt;
  std::string text;
  for (const json& part : *content) {
    if (!part.is_object() || part.value("type", json()) != "text") return std::nullopt;
    const auto words = part.find("text");
    if (words == part.end() || !words->is_string()) return std::nullopt;
    text += words->get<std::string>();
  }
  return text;
}

void read_messages(Reader& to, const json& value) {
  if (!value.is_array() || value.empty() || value.size() > max_messages)
    return to.fail("messages", fmt::format("'messages' must be a list of 1 to {} messages.", max_messages));
  node::GenerateRequest prompt;
  for (const json& message : value) {
    const auto text = message.is_object() ? content_of(message) : std::nullopt;
    const json role = message.is_object() ? message.value("role", json()) : json();
    if (!text || !role.is_string())
      return to.fail("messages", "Each message must have a 'role' and a 'content' of text.");
    if (role == "system" || role == "developer") {
      prompt.prompt += *text + "\n\n";
    } else if (role == "user") {
      prompt.prompt += fmt::format("{} {}\n", turn_of_user, *text);
    } else if (role == "assistant") {
      prompt.prompt += fmt::format("Assistant: {}\n", *text);
    } else {
      return to.fail("messages", "The role of a message must be system, developer, user or assistant.");
    }
  }
  prompt.prompt += "Assistant:";
  add_prompt(to, "messages", std::move(prompt));
}

const Fields& completion_fields() {
  static const Fields fields = [] {
    Fields all = common_fields(0);
    all["prompt"] = [](Reader& r, const json& v) { detail::read_prompts(r, "prompt", v); };
    all["best_of"] = [](Reader& r, const json& v) { r.only("best_of", v, 1); };
    all["suffix"] = [](Reader& r, const json&) {
      r.fail("suffix", "This server does not support 'suffix'.", "unsupported_parameter");
    };
    all["echo"] = [](Reader& r, const json& v) { r.options().echo = r.boolean("echo", v); };
    all["logprobs"] = [](Reader& r, const json& v) {
      r.options().logprobs = r.integer("logprobs", v, 0, node::max_logprobs);
    };
    return all;
  }();
  return fields;
}

const Fields& chat_fields() {
  static const Fields fields = [] {
    Fields all = common_fields(1);
    all["messages"] = read_messages;
    all["logprobs"] = [](Reader& r, const json& v) { r.with_logprobs = r.boolean("logprobs", v); };
    all["top_logprobs"] = [](Reader& r, const json& v) {
      r.top_logprobs = r.integer("top_logprobs", v, 0, node::max_logprobs);
    };
    all["response_format"] = [](Reader& r, const json& v) {
      if (v != json{{"type", "text"}})
        r.fail("response_format", "This server answers with text only.", "unsupported_parameter");
    };
    return all;
  }();
  return fields;
}

const Fields& embedding_fields() {
  static const Fields fields = [] {
    Fields all;
    all["model"] = detail::read_model;
    all["input"] = [](Reader& r, const json& v) { detail::read_prompts(r, "input", v); };
    all["encoding_format"] = [](Reader& r, const json& v) {
      if (v != "float" && v != "base64")
        r.fail("encoding_format", "'encoding_format' must be \"float\" or \"base64\".");
      r.request().base64 = v == "base64";
    };
    all["dimensions"] = [](Reader& r, const json&) {
      r.fail("dimensions", "This server does not support 'dimensions': embeddings are as wide as the model.",
             "unsupported_parameter");
    };
    all["user"] = [](Reader&, const json&) {};
    return all;
  }();
  return fields;
}

const Fields& fields_of(TextKind kind) {
  switch (kind) {
    case TextKind::Chat: return chat_fields();
    case TextKind::Embedding: return embedding_fields();
    case TextKind::Completion: break;
  }
  return completion_fields();
}

ParsedRequest finish(Reader& to) {
  const node::GenerateRequest& options = to.options();
  if (to.ok() && options.max_tokens == 0 && !options.echo)
    to.fail("max_tokens", "'max_tokens' must be at least 1, unless 'echo' is true.");
  if (!to.ok()) return {std::nullopt, to.error()};
  for (node::GenerateRequest& prompt : to.request().prompts) {
    node::GenerateRequest whole = options;
    whole.prompt = std::move(prompt.prompt);
    whole.prompt_tokens = std::move(prompt.prompt_tokens);
    whole.whole_prompt = true;
    prompt = std::move(whole);
  }
  return {std::move(to.request()), {}};
}

}  // namespace

std::string render(const ApiError& error) {
  const auto or_null = [](const std::string& text) { return text.empty() ? json() : json(text); };
  const json body = {{"error",
                      {{"message", error.message},
                       {"type", error.type},
                       {"param", or_null(error.param)},
                       {"code", or_null(error.code)}}}};
  return body.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::vector<std::string> request_fields(TextKind kind) {
  std::vector<std::string> names;
  for (const auto& [name, field] : fields_of(kind)) names.push_back(name);
  return names;
}

ParsedRequest parse(TextKind kind, const std::string& body) {
  switch (kind) {
    case TextKind::Chat: return parse_chat(body);
    case TextKind::Embedding: return parse_embeddings(body);
    case TextKind::Completion: break;
  }
  return parse_completion(body);
}

ParsedRequest parse_completion(const std::string& body) {
  TextRequest request;
  Reader to(request);
  to.options().max_tokens = default_completion_tokens;
  const auto parsed = parse_body(to, body);
  if (!parsed) return {std::nullopt, to.error()};
  read_fields(to, *parsed, completion_fields());
  if (to.ok() && request.prompts.empty()) to.fail("prompt", "'prompt' is missing.");
  return finish(to);
}

ParsedRequest parse_chat(const std::string& body) {
  TextRequest request;
  request.kind = TextKind::Chat;
  Reader to(request);
  to.options().max_tokens = default_chat_tokens;
  const auto parsed = parse_body(to, body);
  if (!parsed) return {std::nullopt, to.error()};
  read_fields(to, *parsed, chat_fields());
  if (to.ok() && request.prompts.empty()) to.fail("messages", "'messages' is missing.");
  if (to.ok() && to.top_logprobs && !to.with_logprobs)
    to.fail("top_logprobs", "'top_logprobs' needs 'logprobs' to be true.");
  if (to.with_logprobs) to.options().logprobs = to.top_logprobs.value_or(0);
  if (to.options().stop.size() < node::max_stop_sequences)
    to.options().stop.push_back(std::string("\n") + turn_of_user);
  return finish(to);
}

ParsedRequest parse_embeddings(const std::string& body) {
  TextRequest request;
  request.kind = TextKind::Embedding;
  Reader to(request);
  const auto parsed = parse_body(to, body);
  if (!parsed) return {std::nullopt, to.error()};
  read_fields(to, *parsed, embedding_fields());
  if (to.ok() && request.prompts.empty()) to.fail("input", "'input' is missing.");
  for (node::GenerateRequest& input : request.prompts) {
    if (input.prompt.empty() && input.prompt_tokens.empty())
      to.fail("input", "'input' has an empty text, which has no embedding.");
    input.embedding = true;
    input.max_tokens = 0;
  }
  if (!to.ok()) return {std::nullopt, to.error()};
  return {std::move(request), {}};
}

}  // namespace neuroshard::serve
