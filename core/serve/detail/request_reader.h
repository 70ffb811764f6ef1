// Reads the JSON bodies of openai_request.h: a table has a function for each field that a body may have.
//
// Private to the folder. Threads: any, one object at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/serve/openai_request.h"

namespace neuroshard::serve::detail {

using nlohmann::json;

// The request so far, from the fields of a body. The first error of a request stays.
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

  void fail(const std::string& param, std::string message, std::string code = {});

  // A value within its bounds, or else an error and some such value.
  double number(const char* name, const json& value, double least, double most);
  std::uint32_t integer(const char* name, const json& value, std::uint32_t least, std::uint32_t most);
  bool boolean(const char* name, const json& value);
  // The field is known, but this server can honour one value only.
  void only(const char* name, const json& value, double allowed);

 private:
  TextRequest& request_;
  node::GenerateRequest options_;
  bool failed_ = false;
  ApiError error_;
};

using Field = std::function<void(Reader&, const json&)>;
using Fields = std::map<std::string, Field>;

// The body, or nothing after fail().
std::optional<json> parse_body(Reader& to, const std::string& body);
// Each field by its function; null is as good as no field. A field that is not in the table, and a body without a
// model, is an error.
void read_fields(Reader& to, const json& body, const Fields& fields);

void read_model(Reader& to, const json& value);
// A text, a list of texts, of tokens, or of lists of tokens: the prompts of the request. name: of the field.
void read_prompts(Reader& to, const char* name, const json& value);
void add_prompt(Reader& to, const char* name, node::GenerateRequest prompt);

}  // namespace neuroshard::serve::detail
