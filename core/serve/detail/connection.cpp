#include "core/serve/detail/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/write.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/read.hpp>
#include <utility>

#include "core/serve/openapi.h"
#include "core/serve/request_guard.h"

namespace neuroshard::serve::detail {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using beast::error_code;

constexpr const char* json_type = "application/json";
constexpr std::size_t history_points = 200;
constexpr std::size_t checkpoints_shown = 100;
constexpr std::size_t most_drained = 4u << 20;
constexpr std::size_t most_drained_without_key = 64u << 10;
constexpr auto drain_limit = std::chrono::seconds(2);

std::string_view view_of(beast::string_view text) {
  return {text.data(), text.size()};
}

const char* reason_of(int status) {
  const beast::string_view reason = http::obsolete_reason(static_cast<http::status>(status));
  return reason.data();
}

bool is_post(const Route& route) {
  return std::string_view(route.method) == "POST";
}

ApiError error_of(int status, const char* code, std::string message) {
  ApiError error;
  error.status = status;
  error.type = status >= 500 ? "server_error" : "invalid_request_error";
  error.code = code;
  error.message = std::move(message);
  return error;
}

}  // namespace

ApiError too_many(std::string message) {
  ApiError error = error_of(429, "too_many_requests", std::move(message));
  error.type = "rate_limit_error";
  return error;
}

ApiError api_error(const Error& error) {
  switch (error.code) {
    case ErrorCode::InvalidArgument: return error_of(400, "", error.message);
    case ErrorCode::Denied: return error_of(400, "context_length_exceeded", error.message);
    case ErrorCode::Unsupported:
      return error_of(400, "unsupported", error.message);  // clients try a 5xx again
    case ErrorCode::NotFound: return error_of(503, "model_not_ready", error.message);
    case ErrorCode::Busy: return error_of(503, "node_busy", error.message);
    case ErrorCode::Unavailable: return error_of(503, "node_unavailable", error.message);
    case ErrorCode::Cancelled: return error_of(503, "cancelled", error.message);
    default: return error_of(500, "", error.message);
  }
}

Connection::Connection(asio::ip::tcp::socket socket, std::shared_ptr<ClientUse> client, ApiState& state)
    : state_(state),
      client_(std::move(client)),
      place_(client_, &ClientUse::connections, 1),
      stream_(std::move(socket)) {}

void Connection::close() {
  if (std::exchange(closed_, true)) return;
  if (texts_) state_.texts->cancel(texts_->ticket);
  texts_.reset();
  body_.end();
  place_.end();
  error_code ignored;
  stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
  stream_.close();
  const auto self = shared_from_this();  // the list may hold the last reference
  state_.connections.remove(self);
}

void Connection::read() {
  parser_.emplace();
  parser_->header_limit(state_.options.limits.header_bytes);
  parser_->body_limit(max_body_bytes);
  stream_.expires_after(std::chrono::duration_cast<std::chrono::milliseconds>(state_.options.limits.request));
  http::async_read_header(
      stream_, buffer_, *parser_,
      [self = shared_from_this()](error_code failure, std::size_t) { self->on_head(failure); });
}

// All that can be refused is refused before a byte of the body is kept.
void Connection::on_head(error_code failure) {
  if (closed_) return;
  if (failure) {
    // The head is there: whoever has the key may send a body to its end, and so hears why it is refused.
    if (failure == http::error::body_limit) (void)refusal_of_route();
    return refuse_unread(failure);
  }
  ++state_.figures.requests;
  keep_alive_ = parser_->get().keep_alive();
  auto refused = refusal();
  if (!refused) refused = refusal_of_route();
  // Clients with the key wait for the work of those without it, which therefore get one answer for each connection.
  if (!has_shown_key_) keep_alive_ = false;
  if (!refused) refused = refusal_of_body();
  if (refused) return refuse(*refused);
  if (parser_->is_done()) return on_body({});
  read_body();
}

void Connection::refuse(const ApiError& error) {
  busy_ = true;
  stream_.expires_never();
  has_unread_ = !parser_->is_done();
  keep_alive_ = keep_alive_ && !has_unread_;
  ++state_.figures.refused;
  fail(error);
}

void Connection::read_body() {
  static constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
  const auto expects = parser_->get()[http::field::expect];
  if (beast::iequals(expects, "100-continue")) {
    error_code ignored;  // a client without it sends the body all the same
    stream_.socket().non_blocking(true, ignored);
    stream_.socket().write_some(asio::buffer(go_on), ignored);
  }
  http::async_read(stream_, buffer_, *parser_,
                   [self = shared_from_this()](error_code failure, std::size_t) { self->on_body(failure); });
}

void Connection::on_body(error_code failure) {
  if (closed_) return;
  if (failure) return refuse_unread(failure);
  busy_ = true;
  stream_.expires_never();
  handle();
}

void Connection::refuse_unread(error_code failure) {
  std::optional<ApiError> error;
  const bool is_http = failure.category() == http::make_error_code(http::error::bad_value).category();
  if (failure == http::error::body_limit)
    error = error_of(413, "body_too_large", fmt::format("The body is larger than {} bytes.", max_body_bytes));
  else if (failure == http::error::header_limit)
    error = error_of(431, "headers_too_large", "The headers are too large.");
  else if (is_http && failure != http::error::end_of_stream && failure != http::error::partial_message)
    error = error_of(400, "bad_request", "This is not a request of HTTP/1.1.");
  if (!error) return close();  // the client has left, or is too slow
  busy_ = true;
  keep_alive_ = false;
  has_unread_ = true;
  ++state_.figures.refused;
  fail(*error);
}

// Why the request is not looked at.
std::optional<ApiError> Connection::refusal() const {
  const auto& request = parser_->get();
  const auto one = [&request](http::field name) -> std::optional<std::string_view> {
    if (request.count(name) != 1) return std::nullopt;
    return view_of(request[name]);
  };
  const auto host = one(http::field::host);
  if (!host || !is_own_host(*host, state_.port))
    return error_of(403, "wrong_host", "The Host header must be this server's own address.");
  if (request.count(http::field::origin) > 0) {
    const auto origin = one(http::field::origin);
    if (!origin || !is_own_origin(*origin, state_.port))
      return error_of(403, "wrong_origin", "Web pages of other origins may not use this server.");
  }
  return std::nullopt;
}

std::optional<ApiError> Connection::refusal_of_route() {
  const auto& request = parser_->get();
  const std::string_view target = view_of(request.target());
  const std::string_view path = target.substr(0, target.find('?'));
  route_ = nullptr;
  for (const Route& route : routes())
    if (path == route.path) route_ = &route;
  const bool has_right_key = request.count(http::field::authorization) == 1 &&
                             has_key(view_of(request[http::field::authorization]), state_.key);
  has_shown_key_ = has_shown_key_ || has_right_key;
  if ((route_ == nullptr || route_->needs_key) && !has_right_key)
    return error_of(401, "invalid_api_key",
                    "The API key is missing or wrong: send \"Authorization: Bearer KEY\".");
  if (route_ == nullptr)
    return error_of(404, "unknown_url",
                    fmt::format("Unknown request URL: {}. See GET /openapi.json.", path.substr(0, 100)));
  if (request.method() != (is_post(*route_) ? http::verb::post : http::verb::get))
    return error_of(405, "method_not_allowed", fmt::format("{} answers to {} only.", path, route_->method));
  return std::nullopt;
}

std::optional<ApiError> Connection::refusal_of_body() {
  if (parser_->is_done()) return std::nullopt;
  if (!is_post(*route_)) return error_of(400, "unexpected_body", "A GET request has no body.");
  const auto length = parser_->content_length();  // without one it may be of any length
  const std::uint64_t bytes = length ? *length : max_body_bytes;
  if (bytes > max_body_bytes)
    return error_of(413, "body_too_large", fmt::format("The body is larger than {} bytes.", max_body_bytes));
  if (client_->body_bytes + bytes > state_.options.limits.client_body_bytes)
    return too_many("Too many bytes of requests are waiting for their answers already; try again later.");
  body_ = Lease<std::uint64_t>(client_, &ClientUse::body_bytes, bytes);
  return std::nullopt;
}

void Connection::handle() {
  if (is_post(*route_)) return handle_text(route_->kind);
  handle_status(route_->path);
}

template <class T, class Ask, class Render>
void Connection::answer_query(const Ask& ask, Render render) {
  const auto asked = ask([gate = state_.gate, self = shared_from_this(), render](Expected<T> value) {
    gate->post([self, render, value = std::move(value)] {
      if (self->closed_) return;
      if (!value.ok()) return self->fail(api_error(value.error()));
      self->answer(200, json_type, render(*value));
    });
  });
  if (!asked.ok()) fail(api_error(asked.error()));
}

void Connection::query_history() {
  const auto query = [this](const char* name, node::Reply<node::Series> reply) {
    return state_.node->query_series({name, 0, 0, history_points}, std::move(reply));
  };
  // The second question is put when the first is answered.
  const auto asked =
      query("loss", [gate = state_.gate, self = shared_from_this()](Expected<node::Series> loss) {
        gate->post([self, loss = std::move(loss)] {
          if (self->closed_) return;
          if (!loss.ok()) return self->fail(api_error(loss.error()));
          self->answer_query<node::Series>(
              [&self](node::Reply<node::Series> reply) {
                return self->state_.node->query_series({"val_loss", 0, 0, history_points}, std::move(reply));
              },
              [node = self->state_.node, loss = *loss](const node::Series& held_out) {
                return history_page(*node->snapshot(), loss, held_out);
              });
        });
      });
  if (!asked.ok()) fail(api_error(asked.error()));
}

void Connection::handle_status(std::string_view path) {
  node::Node& node = *state_.node;
  const auto view = node.snapshot();
  if (path == "/health") return answer(200, json_type, health_page(*view));
  if (path == "/openapi.json") return answer(200, json_type, openapi_page());
  if (path == "/v1/models") return answer(200, json_type, models_page(*view));
  if (path == "/api/stats") return answer(200, json_type, stats_page(*view));
  if (path == "/api/training/global") return answer(200, json_type, training_page(*view));
  if (path == "/api/training/history") return query_history();
  if (path == "/metrics") {
    state_.figures.connections = state_.connections.size();
    state_.figures.texts_running = state_.texts->running();
    state_.figures.texts_waiting = state_.texts->waiting();
    return answer(200, "text/plain; version=0.0.4; charset=utf-8", metrics_page(*view, state_.figures));
  }
  if (path == "/api/network")
    return answer_query<node::NetworkView>(
        [&node](node::Reply<node::NetworkView> reply) { return node.query_network(std::move(reply)); },
        network_page);
  if (path == "/api/layers")
    return answer_query<std::vector<node::SlotEntry>>(
        [&node](node::Reply<std::vector<node::SlotEntry>> reply) {
          return node.query_slots(std::move(reply));
        },
        layers_page);
  if (path == "/api/experts")
    return answer_query<std::vector<node::ExpertLoad>>(
        [&node](node::Reply<std::vector<node::ExpertLoad>> reply) {
          return node.query_experts(std::move(reply));
        },
        experts_page);
  answer_query<node::CheckpointPage>(
      [&node](node::Reply<node::CheckpointPage> reply) {
        return node.query_checkpoints({{}, checkpoints_shown}, std::move(reply));
      },
      checkpoints_page);
}

void Connection::answer(int status, const char* type, std::string body) {
  const char* extra = status == 429 || status == 503 ? "Retry-After: 2\r\n"
                      : status == 401                ? "WWW-Authenticate: Bearer\r\n"
                                                     : "";
  send(fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n"
                   "X-Content-Type-Options: nosniff\r\n{}Connection: {}\r\n\r\n",
                   status, reason_of(status), type, body.size(), extra,
                   keep_alive_ ? "keep-alive" : "close") +
       body);
  body_.end();
  busy_ = false;
  write_next();
}

void Connection::fail(const ApiError& error) {
  answer(error.status, json_type, render(error));
}

void Connection::send(std::string bytes) {
  if (closed_) return;
  unsent_ += bytes;
  // A client that does not read a stream is cut off; a whole answer is bounded by what it was asked for.
  if (streaming_ && unsent_.size() > state_.options.limits.unsent_bytes) return close();
  write_next();
}

void Connection::write_next() {
  if (writing_ || closed_) return;
  if (unsent_.empty()) {
    if (busy_) return;
    if (keep_alive_) return read();
    return has_unread_ || buffer_.size() > 0 ? drain() : close();
  }
  writing_ = true;
  sending_ = std::exchange(unsent_, {});
  stream_.expires_after(std::chrono::duration_cast<std::chrono::milliseconds>(state_.options.limits.write));
  asio::async_write(
      stream_, asio::buffer(sending_),
      [self = shared_from_this()](error_code failure, std::size_t) { self->on_written(failure); });
}

void Connection::on_written(error_code failure) {
  writing_ = false;
  if (closed_) return;
  if (failure) return close();
  stream_.expires_never();
  write_next();
}

// Closing with unread bytes would reset the connection, and the client might lose the answer.
void Connection::drain() {
  error_code ignored;
  stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  buffer_.clear();
  stream_.expires_after(drain_limit);
  stream_.async_read_some(
      buffer_.prepare(16u << 10), [self = shared_from_this()](error_code failure, std::size_t read) {
        if (self->closed_) return;
        self->drained_ += read;
        const std::size_t most = self->has_shown_key_ ? most_drained : most_drained_without_key;
        if (failure || self->drained_ > most) return self->close();
        self->drain();
      });
}

}  // namespace neuroshard::serve::detail
