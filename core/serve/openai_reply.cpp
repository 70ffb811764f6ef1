#include "core/serve/openai_reply.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/base/base64url.h"
#include "core/base/bytes.h"

namespace neuroshard::serve {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no −inf: OpenAI's interface writes this for a token that is as good as impossible.
double finite(double logprob) {
  return std::isfinite(logprob) ? logprob : -9999.0;
}

std::string dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool is_utf8(const std::string& text) {
  Json probe = text;
  const std::string dumped = probe.dump(-1, ' ', false, Json::error_handler_t::ignore);
  return Json::parse(dumped).get<std::string>() == text;
}

// A token as the completions interface names it: bytes that are no text alone as "bytes:\xe2\x82".
std::string name_of(const std::string& bytes) {
  if (is_utf8(bytes)) return bytes;
  std::string name = "bytes:";
  for (const char byte : bytes) name += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  return name;
}

std::size_t characters(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// With padding (RFC 4648 §4).
std::string base64_of(ByteSpan bytes) {
  std::string text = to_base64url(bytes);
  std::replace(text.begin(), text.end(), '-', '+');
  std::replace(text.begin(), text.end(), '_', '/');
  text.append((4 - text.size() % 4) % 4, '=');
  return text;
}

Json completion_logprobs(const Choice& choice) {
  Json tokens = Json::array(), values = Json::array(), tops = Json::array(), offsets = Json::array();
  std::size_t offset = choice.characters;
  for (const node::GeneratedToken& token : choice.tokens) {
    tokens.push_back(name_of(token.text));
    offsets.push_back(offset);
    offset += characters(token.text);
    if (!token.logprob) {
      values.push_back(nullptr);
      tops.push_back(nullptr);
      continue;
    }
    values.push_back(finite(*token.logprob));
    Json top = Json::object();
    for (const node::LikelyToken& likely : token.top) top[name_of(likely.text)] = finite(likely.logprob);
    // The chosen token is always among them.
    if (!token.top.empty()) top[name_of(token.text)] = finite(*token.logprob);
    tops.push_back(std::move(top));
  }
  return {{"tokens", tokens}, {"token_logprobs", values}, {"top_logprobs", tops}, {"text_offset", offsets}};
}

Json chat_token(const std::string& text, double logprob) {
  Json bytes = Json::array();
  for (const char byte : text) bytes.push_back(static_cast<unsigned char>(byte));
  return {{"token", name_of(text)}, {"logprob", finite(logprob)}, {"bytes", bytes}};
}

Json chat_logprobs(const Choice& choice) {
  Json content = Json::array();
  for (const node::GeneratedToken& token : choice.tokens) {
    Json entry = chat_token(token.text, token.logprob.value_or(0));
    entry["top_logprobs"] = Json::array();
    for (const node::LikelyToken& likely : token.top)
      entry["top_logprobs"].push_back(chat_token(likely.text, likely.logprob));
    content.push_back(std::move(entry));
  }
  return {{"content", content}, {"refusal", nullptr}};
}

Json logprobs_of(const ReplyHead& head, const Choice& choice) {
  if (!head.logprobs) return nullptr;
  return head.chat ? chat_logprobs(choice) : completion_logprobs(choice);
}

Json finish_of(const Choice& choice) {
  return choice.finish ? Json(*choice.finish) : Json();
}

Json usage_of(const Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
}

Json begin(const ReplyHead& head, bool event) {
  const char* object = !head.chat ? "text_completion" : event ? "chat.completion.chunk" : "chat.completion";
  return {{"id", head.id},
          {"object", object},
          {"created", head.created},
          {"model", head.model},
          {"system_fingerprint", head.fingerprint}};
}

}  // namespace

std::string finish_reason(const std::string& stopped_by) {
  return stopped_by == "length" ? "length" : "stop";
}

std::size_t characters_of(const std::vector<node::GeneratedToken>& tokens) {
  std::size_t sum = 0;
  for (const node::GeneratedToken& token : tokens) sum += characters(token.text);
  return sum;
}

std::string render_whole(const ReplyHead& head, const std::vector<Choice>& choices, const Usage& usage) {
  Json reply = begin(head, false);
  reply["choices"] = Json::array();
  for (std::size_t i = 0; i < choices.size(); ++i) {
    Json choice = {{"index", i}};
    if (head.chat)
      choice["message"] = {{"role", "assistant"}, {"content", choices[i].text}, {"refusal", nullptr}};
    else
      choice["text"] = choices[i].text;
    choice["logprobs"] = logprobs_of(head, choices[i]);
    choice["finish_reason"] = finish_of(choices[i]);
    reply["choices"].push_back(std::move(choice));
  }
  reply["usage"] = usage_of(usage);
  return dump(reply);
}

std::string render_event(const ReplyHead& head, std::size_t index, const Choice& part, bool first) {
  Json event = begin(head, true);
  Json choice = {{"index", index}};
  if (head.chat) {
    Json delta = Json::object();
    if (first) delta["role"] = "assistant";
    if (first || !part.text.empty()) delta["content"] = part.text;
    choice["delta"] = std::move(delta);
  } else {
    choice["text"] = part.text;
  }
  choice["logprobs"] = head.logprobs && part.tokens.empty() ? Json() : logprobs_of(head, part);
  choice["finish_reason"] = finish_of(part);
  event["choices"] = Json::array({std::move(choice)});
  if (head.with_usage) event["usage"] = nullptr;
  return "data: " + dump(event) + "\n\n";
}

// By hand: as few digits as an fp32 needs, and no tree of a thousand numbers.
std::string render_embedding(std::size_t index, const std::vector<float>& embedding, bool base64) {
  std::string values = "[";
  if (base64) {
    std::vector<std::uint8_t> bytes(embedding.size() * sizeof(float));
    for (std::size_t i = 0; i < embedding.size(); ++i)
      store_le(bytes.data() + i * sizeof(float), std::bit_cast<std::uint32_t>(embedding[i]));
    values = '"' + base64_of(bytes) + '"';
  } else {
    for (const float value : embedding)
      fmt::format_to(std::back_inserter(values), "{}{}", values.size() == 1 ? "" : ",", value);
    values += ']';
  }
  return fmt::format(R"({{"object":"embedding","index":{},"embedding":{}}})", index, values);
}

std::string render_embeddings(const ReplyHead& head, const std::string& entries, const Usage& usage) {
  const Json rest = {
      {"model", head.model},
      {"system_fingerprint", head.fingerprint},
      {"usage", {{"prompt_tokens", usage.prompt_tokens}, {"total_tokens", usage.prompt_tokens}}}};
  return fmt::format(R"({{"object":"list","data":[{}],{})", entries, dump(rest).substr(1));
}

std::string render_usage_event(const ReplyHead& head, const Usage& usage) {
  Json event = begin(head, true);
  event["choices"] = Json::array();
  event["usage"] = usage_of(usage);
  return "data: " + dump(event) + "\n\n";
}

}  // namespace neuroshard::serve
