#include "core/serve/openai_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

namespace neuroshard::serve {
namespace {

using nlohmann::json;

constexpr std::uint32_t default_completion_tokens = 16;  // as OpenAI's
constexpr std::uint32_t default_chat_tokens = 256;
constexpr const char* turn_of_user = "User:";

// One field of a body: the first error of a request stays.
class Reader {
 public:
  explicit Reader(TextRequest& request) : request_(request) {
    options_.top_k = 0;
    options_.temperature = 1;
  }

  bool ok() const { return !failed_; }
  ApiError error() const { return error_; }
  node::GenerateRequest& options() { return options_; }
  TextRequest& request() { return request_; }

  // Of a chat: whether log-probabilities are asked for, and with how many of the likeliest.
  bool with_logprobs = false;
  std::optional<std::uint32_t> top_logprobs;

  void fail(const std::string& param, std::string message, std::string code = {}) {
    if (failed_) return;
    failed_ = true;
    error_.param = param;
    error_.code = std::move(code);
    error_.message = std::move(message);
  }

  double number(const char* name, const json& value, double least, double most) {
    const double given = value.is_number() ? value.get<double>() : std::nan("");
    if (given >= least && given <= most) return given;
    fail(name, fmt::format("'{}' must be a number from {} to {}.", name, least, most));
    return least;
  }
  std::uint32_t integer(const char* name, const json& value, std::uint32_t least, std::uint32_t most) {
    if (value.is_number_unsigned()) {
      const auto given = value.get<std::uint64_t>();
      if (given >= least && given <= most) return static_cast<std::uint32_t>(given);
    }
    fail(name, fmt::format("'{}' must be a whole number from {} to {}.", name, least, most));
    return least;
  }
  bool boolean(const char* name, const json& value) {
    if (!value.is_boolean()) fail(name, fmt::format("'{}' must be true or false.", name));
    return value.is_boolean() && value.get<bool>();
  }
  void only(const char* name, const json& value, double allowed) {
    if (value.is_number() && value.get<double>() == allowed) return;
    fail(name, fmt::format("This server supports '{}' only as {}.", name, allowed), "unsupported_parameter");
  }

 private:
  TextRequest& request_;
  node::GenerateRequest options_;
  bool failed_ = false;
  ApiError error_;
};

void read_model(Reader& to, const json& value) {
  if (value.is_string()) to.request().model = value.get<std::string>();
  if (to.request().model.empty()) to.fail("model", "'model' must be the id of a model; see GET /v1/models.");
}

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
  const auto seed = static_cast<std::uint64_t>(value.get<std::int64_t>());
  constexpr std::uint64_t for_zero = 0x9E37'79B9'7F4A'7C15;  // 0 asks the node for a new seed each time
  to.options().seed = seed == 0 ? for_zero : seed;
}

void read_stream_options(Reader& to, const json& value) {
  if (!value.is_object()) return to.fail("stream_options", "'stream_options' must be an object.");
  for (const auto& [key, one] : value.items()) {
    if (key != "include_usage") return to.fail("stream_options", "Only 'include_usage' is supported.");
    to.request().include_usage = to.boolean("stream_options", one);
  }
}

using Field = std::function<void(Reader&, const json&)>;
using Fields = std::map<std::string, Field>;

// least_tokens: without the echo of a prompt, no tokens at all make no sense.
Fields common_fields(std::uint32_t least_tokens) {
  const auto tokens = [least_tokens](const char* name) {
    return [name, least = least_tokens](Reader& to, const json& value) {
      to.options().max_tokens = to.integer(name, value, least, node::max_generated_tokens);
    };
  };
  Fields fields;
  fields["model"] = read_model;
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

// The body, or nothing after fail().
std::optional<json> parse_body(Reader& to, const std::string& body) {
  bool too_deep = false;
  const auto watch = [&](int depth, json::parse_event_t, json&) {
    too_deep = too_deep || depth > max_json_depth;
    return !too_deep;
  };
  json parsed = body.size() > max_body_bytes ? json(json::value_t::discarded)
                                             : json::parse(body, watch, /*allow_exceptions=*/false);
  if (!too_deep && parsed.is_object()) return parsed;
  to.fail({}, too_deep ? "The body nests too deeply." : "The body is not a JSON object.");
  return std::nullopt;
}

void read_fields(Reader& to, const json& body, const Fields& fields) {
  for (const auto& [key, value] : body.items()) {
    const auto at = fields.find(key);
    if (at == fields.end()) {
      to.fail(key, fmt::format("Unrecognized request argument: {}", key.substr(0, 64)), "unknown_parameter");
    } else if (!value.is_null()) {
      at->second(to, value);
    }
    if (!to.ok()) return;
  }
  if (to.request().model.empty()) read_model(to, json());
}

void add_prompt(Reader& to, node::GenerateRequest prompt) {
  if (to.request().prompts.size() >= max_prompts)
    return to.fail("prompt",
                   fmt::format("'prompt' has too many texts; at most {} are allowed.", max_prompts));
  if (prompt.prompt.size() > node::max_prompt_bytes ||
      prompt.prompt_tokens.size() > node::max_prompt_tokens) {
    return to.fail("prompt",
                   fmt::format("A prompt is too long: at most {} bytes or {} tokens are read.",
                               node::max_prompt_bytes, node::max_prompt_tokens),
                   "context_length_exceeded");
  }
  to.request().prompts.push_back(std::move(prompt));
}

bool is_token(const json& value) {
  return value.is_number_unsigned() && value.get<std::uint64_t>() <= 0x7fff'ffff;
}

void add_tokens(Reader& to, const json& list) {
  if (list.empty() || !std::all_of(list.begin(), list.end(), is_token))
    return to.fail("prompt", "A list of tokens must have token ids, and at least one.");
  node::GenerateRequest prompt;
  for (const json& token : list) prompt.prompt_tokens.push_back(token.get<std::uint32_t>());
  add_prompt(to, std::move(prompt));
}

void add_text(Reader& to, const json& text) {
  node::GenerateRequest prompt;
  prompt.prompt = text.get<std::string>();
  add_prompt(to, std::move(prompt));
}

void read_prompt(Reader& to, const json& value) {
  if (value.is_string()) return add_text(to, value);
  if (!value.is_array() || value.empty())
    return to.fail("prompt", "'prompt' must be a text, a list of texts, of tokens, or of lists of tokens.");
  if (value.front().is_number()) return add_tokens(to, value);
  for (const json& one : value) {
    if (one.is_string()) {
      add_text(to, one);
    } else if (one.is_array()) {
      add_tokens(to, one);
    } else {
      to.fail("prompt", "'prompt' must be a text, a list of texts, of tokens, or of lists of tokens.");
    }
    if (!to.ok()) return;
  }
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
  add_prompt(to, std::move(prompt));
}

const Fields& completion_fields() {
  static const Fields fields = [] {
    Fields all = common_fields(0);
    all["prompt"] = read_prompt;
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

std::vector<std::string> request_fields(bool chat) {
  std::vector<std::string> names;
  for (const auto& [name, field] : chat ? chat_fields() : completion_fields()) names.push_back(name);
  return names;
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
  request.chat = true;
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

}  // namespace neuroshard::serve
