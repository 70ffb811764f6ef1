// The part of a connection that answers with generated text.
#include <fmt/format.h>

#include <utility>

#include "core/serve/detail/connection.h"

namespace neuroshard::serve::detail {
namespace {

namespace asio = boost::asio;

ApiError text_error(int status, const char* code, std::string message) {
  ApiError error;
  error.status = status;
  if (status >= 500) error.type = "server_error";
  error.code = code;
  error.message = std::move(message);
  return error;
}

// In memory, roughly.
std::uint64_t bytes_of(const node::TextPiece& piece) {
  std::uint64_t bytes = piece.text.size();
  for (const node::GeneratedToken& token : piece.tokens)
    bytes += sizeof token + token.top.size() * sizeof(node::LikelyToken);
  return bytes;
}

const char* id_of(TextKind kind) {
  return kind == TextKind::Chat ? "chatcmpl" : kind == TextKind::Embedding ? "embd" : "cmpl";
}

}  // namespace

void Connection::handle_text(TextKind kind) {
  ParsedRequest parsed = parse(kind, parser_->get().body());
  parser_.reset();  // and with it the body
  if (!parsed.request) return fail(parsed.error);
  const auto view = state_.node->snapshot();
  const std::string model = model_id(*view);
  if (model.empty()) {
    const bool starting = view->state == node::RunState::Starting;
    return fail(text_error(503, "model_not_ready",
                           starting ? "The model is loading; try again in a moment."
                                    : "This node has no model yet: train it first."));
  }
  if (parsed.request->model != model) {
    ApiError error = text_error(404, "model_not_found",
                                fmt::format("The model '{}' does not exist; this node has '{}'.",
                                            parsed.request->model.substr(0, 100), model));
    error.param = "model";
    return fail(error);
  }
  if (client_->texts >= state_.options.limits.client_texts || state_.texts->is_full()) {
    ++state_.figures.refused;
    return fail(too_many("Too many texts are waiting already; try again later."));
  }
  texts_ = Texts{};
  texts_->lease = Lease<std::size_t>(client_, &ClientUse::texts, 1);
  texts_->request = std::move(*parsed.request);
  ReplyHead& head = texts_->head;
  head.chat = kind == TextKind::Chat;
  const std::int64_t now_ms = to_unix_ms(state_.clock.wall_now());
  head.id = fmt::format("{}-{:x}{:06x}", id_of(kind), now_ms, state_.next_id++);
  head.created = now_ms / 1000;
  head.model = model;
  head.fingerprint = model_fingerprint(*view);
  head.logprobs = texts_->request.prompts.front().logprobs.has_value();
  head.with_usage = texts_->request.stream && texts_->request.include_usage;
  watch_for_disconnect();
  next_text();
}

// Readable without bytes means that the client has closed its side.
void Connection::watch_for_disconnect() {
  const std::uint64_t watch = ++watch_;
  stream_.socket().async_wait(asio::ip::tcp::socket::wait_read,
                              [self = shared_from_this(), watch](boost::beast::error_code failure) {
                                if (failure || self->closed_ || self->watch_ != watch || !self->texts_)
                                  return;
                                boost::beast::error_code problem;
                                const std::size_t there = self->stream_.socket().available(problem);
                                if (problem || there == 0) self->close();
                              });
}

void Connection::next_text() {
  const std::size_t index = texts_->choices.size();
  texts_->request.prompts[index].client = client_->address;
  texts_->choices.emplace_back();
  texts_->has_role = false;
  const auto self = shared_from_this();
  texts_->ticket = state_.texts->add(
      client_->address, std::move(texts_->request.prompts[index]),
      {[self](node::TextPiece piece) { self->on_piece(std::move(piece)); },
       [self](const Expected<node::GenerateResult>& result) { self->on_text_done(result); }});
}

void Connection::on_piece(node::TextPiece piece) {
  if (closed_ || !texts_) return;
  Choice& choice = texts_->choices.back();
  // The prompt of a chat ends with "Assistant:", so its answer begins with a space.
  const bool first_text = choice.text.empty() && !texts_->has_role;
  if (texts_->head.chat && first_text && !piece.text.empty() && piece.text.front() == ' ')
    piece.text.erase(0, 1);
  if (!texts_->request.stream) {
    texts_->bytes += bytes_of(piece);
    if (texts_->bytes > state_.options.limits.answer_bytes) return refuse_answer();
    choice.text += piece.text;
    for (node::GeneratedToken& token : piece.tokens) choice.tokens.push_back(std::move(token));
    return;
  }
  Choice part;
  part.text = std::move(piece.text);
  part.tokens = std::move(piece.tokens);
  part.characters = choice.characters;
  choice.characters += characters_of(part.tokens);
  begin_stream();
  send(render_event(texts_->head, texts_->choices.size() - 1, part, !texts_->has_role));
  if (texts_) texts_->has_role = true;
}

// A few bytes of tokens can ask for gigabytes of log-probabilities.
void Connection::refuse_answer() {
  state_.texts->cancel(texts_->ticket);
  texts_.reset();
  fail(text_error(400, "answer_too_large",
                  "The answer is too large: ask for fewer log-probabilities or texts, or for a stream."));
}

void Connection::on_text_done(const Expected<node::GenerateResult>& result) {
  if (closed_ || !texts_) return;
  if (!result.ok()) {
    const ApiError error = api_error(result.error());
    if (!streaming_) {
      texts_.reset();
      return fail(error);
    }
    send("data: " + render(error) + "\n\n");
    return finish_texts();
  }
  ++state_.figures.texts;
  state_.figures.tokens += result->tokens;
  texts_->usage.prompt_tokens += result->prompt_tokens;
  texts_->usage.completion_tokens += result->tokens;
  Choice& choice = texts_->choices.back();
  if (texts_->request.kind == TextKind::Embedding && !keep_embedding(*result)) return;
  choice.finish = finish_reason(result->stopped_by);
  if (texts_->request.stream) {
    begin_stream();
    Choice end;
    end.finish = choice.finish;
    send(render_event(texts_->head, texts_->choices.size() - 1, end, !texts_->has_role));
    if (!texts_) return;  // cut off
  }
  if (texts_->choices.size() < texts_->request.prompts.size()) return next_text();
  if (!texts_->request.stream) {
    const std::string body = texts_->request.kind == TextKind::Embedding
                                 ? render_embeddings(texts_->head, texts_->embeddings, texts_->usage)
                                 : render_whole(texts_->head, texts_->choices, texts_->usage);
    texts_.reset();
    return answer(200, "application/json", body);
  }
  if (texts_->head.with_usage) send(render_usage_event(texts_->head, texts_->usage));
  send("data: [DONE]\n\n");
  finish_texts();
}

// Rendered at once: a large answer takes the server's thread for one text at a time. False: refused.
bool Connection::keep_embedding(const node::GenerateResult& result) {
  std::string& all = texts_->embeddings;
  if (!all.empty()) all += ',';
  all += render_embedding(texts_->choices.size() - 1, result.embedding, texts_->request.base64);
  if (all.size() <= state_.options.limits.answer_bytes) return true;
  refuse_answer();
  return false;
}

// A stream ends with the connection: its length is not known before.
void Connection::begin_stream() {
  if (std::exchange(streaming_, true)) return;
  keep_alive_ = false;
  send(
      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-store\r\n"
      "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n");
}

void Connection::finish_texts() {
  texts_.reset();
  body_.end();
  busy_ = false;
  write_next();
}

}  // namespace neuroshard::serve::detail
