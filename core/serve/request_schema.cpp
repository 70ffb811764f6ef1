#include <nlohmann/json.hpp>

#include "core/serve/openai_request.h"
#include "core/serve/openapi.h"

namespace neuroshard::serve {
namespace {

using Json = nlohmann::ordered_json;

Json number(double least, double most) {
  return {{"type", "number"}, {"minimum", least}, {"maximum", most}};
}

Json integer(std::uint64_t least, std::uint64_t most) {
  return {{"type", "integer"}, {"minimum", least}, {"maximum", most}};
}

Json text(std::size_t least, std::size_t most) {
  return {{"type", "string"}, {"minLength", least}, {"maxLength", most}};
}

Json list_of(Json items, std::size_t least, std::size_t most) {
  Json list = {{"type", "array"}, {"minItems", least}, {"maxItems", most}};
  list["items"] = std::move(items);
  return list;
}

// What OpenAI's clients may send, but this node can do in one way only.
Json only(Json value, const char* type) {
  Json schema = {{"type", type}};
  schema["enum"] = Json::array({std::move(value)});
  return schema;
}

Json either(std::vector<Json> choices) {
  Json schema = Json::object();
  schema["anyOf"] = std::move(choices);
  return schema;
}

Json object_of(Json properties, const std::vector<const char*>& required) {
  Json schema = {{"type", "object"}, {"additionalProperties", false}};
  schema["properties"] = std::move(properties);
  if (!required.empty()) schema["required"] = required;
  return schema;
}

// A field that OpenAI's clients may send as null.
Json nothing() {
  return {{"nullable", true}, {"enum", Json::array({nullptr})}};
}

Json boolean() {
  return {{"type", "boolean"}};
}

// least: bytes of a text.
Json prompt_schema(std::size_t least) {
  const Json words = text(least, node::max_prompt_bytes);
  const Json tokens = list_of(integer(0, 0x7fff'ffff), 1, node::max_prompt_tokens);
  return either({words, tokens, list_of(either({words, tokens}), 1, max_prompts)});
}

Json message_schema() {
  Json part = Json::object();
  part["type"] = only("text", "string");
  part["text"] = {{"type", "string"}};
  Json message = {{"type", "object"}};
  Json role = {{"type", "string"}};
  role["enum"] = {"system", "developer", "user", "assistant"};
  message["properties"]["role"] = std::move(role);
  message["properties"]["content"] = either(
      {Json{{"type", "string"}}, list_of(object_of(std::move(part), {"type", "text"}), 0, max_messages)});
  message["required"] = {"role", "content"};
  return message;
}

// least_tokens: without the echo of a prompt, no tokens at all make no sense.
Json common_properties(std::uint32_t least_tokens) {
  Json all = Json::object();
  all["model"] = {{"type", "string"}, {"minLength", 1}};
  for (const char* name : {"max_tokens", "max_completion_tokens"})
    all[name] = integer(least_tokens, node::max_generated_tokens);
  all["temperature"] = number(0, 2);
  all["top_p"] = number(0, 1);
  all["top_k"] = integer(0, 1'000'000);
  all["min_p"] = number(0, 1);
  all["repetition_penalty"] = number(0.01, 100);
  all["seed"] = {{"type", "integer"}};
  const Json stop = text(1, node::max_stop_bytes);
  all["stop"] = either({stop, list_of(stop, 0, node::max_stop_sequences)});
  Json bias = {{"type", "object"}, {"maxProperties", node::max_biases}};
  bias["additionalProperties"] = number(-100, 100);
  all["logit_bias"] = std::move(bias);
  all["stream"] = boolean();
  Json usage = Json::object();
  usage["include_usage"] = boolean();
  all["stream_options"] = object_of(std::move(usage), {});
  all["n"] = only(1, "integer");
  all["presence_penalty"] = only(0, "number");
  all["frequency_penalty"] = only(0, "number");
  all["user"] = Json::object();
  return all;
}

Json embedding_schema() {
  Json all = Json::object();
  all["model"] = {{"type", "string"}, {"minLength", 1}};
  all["input"] = prompt_schema(1);
  all["encoding_format"] = {{"type", "string"}, {"enum", Json::array({"float", "base64"})}};
  all["dimensions"] = nothing();
  all["user"] = Json::object();
  return object_of(std::move(all), {"model", "input"});
}

}  // namespace

std::string request_schema(TextKind kind) {
  if (kind == TextKind::Embedding) return embedding_schema().dump();
  const bool chat = kind == TextKind::Chat;
  Json all = common_properties(chat ? 1 : 0);
  if (chat) {
    all["messages"] = list_of(message_schema(), 1, max_messages);
    all["logprobs"] = boolean();
    all["top_logprobs"] = integer(0, node::max_logprobs);
    Json format = Json::object();
    format["type"] = only("text", "string");
    all["response_format"] = object_of(std::move(format), {"type"});
    return object_of(std::move(all), {"model", "messages"}).dump();
  }
  all["prompt"] = prompt_schema(0);
  all["best_of"] = only(1, "integer");
  all["suffix"] = nothing();
  all["echo"] = boolean();
  all["logprobs"] = integer(0, node::max_logprobs);
  return object_of(std::move(all), {"model", "prompt"}).dump();
}

}  // namespace neuroshard::serve
