#include "core/serve/detail/request_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace neuroshard::serve::detail {

void Reader::fail(const std::string& param, std::string message, std::string code) {
  if (failed_) return;
  failed_ = true;
  error_.param = param;
  error_.code = std::move(code);
  error_.message = std::move(message);
}

double Reader::number(const char* name, const json& value, double least, double most) {
  const double given = value.is_number() ? value.get<double>() : std::nan("");
  if (given >= least && given <= most) return given;
  fail(name, fmt::format("'{}' must be a number from {} to {}.", name, least, most));
  return least;
}

std::uint32_t Reader::integer(const char* name, const json& value, std::uint32_t least, std::uint32_t most) {
  if (value.is_number_unsigned()) {
    const auto given = value.get<std::uint64_t>();
    if (given >= least && given <= most) return static_cast<std::uint32_t>(given);
  }
  fail(name, fmt::format("'{}' must be a whole number from {} to {}.", name, least, most));
  return least;
}

bool Reader::boolean(const char* name, const json& value) {
  if (!value.is_boolean()) fail(name, fmt::format("'{}' must be true or false.", name));
  return value.is_boolean() && value.get<bool>();
}

void Reader::only(const char* name, const json& value, double allowed) {
  if (value.is_number() && value.get<double>() == allowed) return;
  fail(name, fmt::format("This server supports '{}' only as {}.", name, allowed), "unsupported_parameter");
}

void read_model(Reader& to, const json& value) {
  if (value.is_string()) to.request().model = value.get<std::string>();
  if (to.request().model.empty()) to.fail("model", "'model' must be the id of a model; see GET /v1/models.");
}

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

void add_prompt(Reader& to, const char* name, node::GenerateRequest prompt) {
  if (to.request().prompts.size() >= max_prompts)
    return to.fail(name, fmt::format("'{}' has too many texts; at most {} are allowed.", name, max_prompts));
  if (prompt.prompt.size() > node::max_prompt_bytes ||
      prompt.prompt_tokens.size() > node::max_prompt_tokens) {
    return to.fail(name,
                   fmt::format("A text is too long: at most {} bytes or {} tokens are read.",
                               node::max_prompt_bytes, node::max_prompt_tokens),
                   "context_length_exceeded");
  }
  to.request().prompts.push_back(std::move(prompt));
}

namespace {

bool is_token(const json& value) {
  return value.is_number_unsigned() && value.get<std::uint64_t>() <= 0x7fff'ffff;
}

void add_tokens(Reader& to, const char* name, const json& list) {
  if (list.empty() || !std::all_of(list.begin(), list.end(), is_token))
    return to.fail(name, "A list of tokens must have token ids, and at least one.");
  node::GenerateRequest prompt;
  for (const json& token : list) prompt.prompt_tokens.push_back(token.get<std::uint32_t>());
  add_prompt(to, name, std::move(prompt));
}

void add_text(Reader& to, const char* name, const json& text) {
  node::GenerateRequest prompt;
  prompt.prompt = text.get<std::string>();
  add_prompt(to, name, std::move(prompt));
}

}  // namespace

void read_prompts(Reader& to, const char* name, const json& value) {
  const auto refuse = [&to, name] {
    to.fail(name,
            fmt::format("'{}' must be a text, a list of texts, of tokens, or of lists of tokens.", name));
  };
  if (value.is_string()) return add_text(to, name, value);
  if (!value.is_array() || value.empty()) return refuse();
  if (value.front().is_number()) return add_tokens(to, name, value);
  for (const json& one : value) {
    if (one.is_string()) {
      add_text(to, name, one);
    } else if (one.is_array()) {
      add_tokens(to, name, one);
    } else {
      refuse();
    }
    if (!to.ok()) return;
  }
}

}  // namespace neuroshard::serve::detail
