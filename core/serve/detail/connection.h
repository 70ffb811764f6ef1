// One client of an ApiServer: reads a request, answers it, and so on. While a text is generated, it watches whether
// the client disconnects.  Threads: the server's.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/serve/detail/api_state.h"
#include "core/serve/openai_reply.h"

namespace neuroshard::serve::detail {

class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  Connection(boost::asio::ip::tcp::socket socket, std::shared_ptr<ClientUse> client, ApiState& state);

  void start() { read(); }
  // Ends it; what it generates is cancelled.
  void close();
  // It may make room for another: it sent no right key yet, and no answer is under way.
  bool may_make_room() const { return !has_shown_key_ && !busy_; }
  const ClientUse& client() const { return *client_; }

 private:
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;
  // The texts of one request.
  struct Texts {
    TextRequest request;
    ReplyHead head;
    std::vector<Choice> choices;  // of those begun; the last one grows unless it is streamed
    std::string embeddings;       // of those that are complete, rendered
    Usage usage;
    std::uint64_t ticket = 0;
    bool has_role = false;    // streamed: the first event is sent
    std::uint64_t bytes = 0;  // of the answer so far
    Lease<std::size_t> lease;
  };

  void read();
  void on_head(boost::beast::error_code failure);
  void read_body();
  void on_body(boost::beast::error_code failure);
  void refuse(const ApiError& error);
  void refuse_unread(boost::beast::error_code failure);
  std::optional<ApiError> refusal() const;
  std::optional<ApiError> refusal_of_route();
  std::optional<ApiError> refusal_of_body();
  void handle();
  void handle_status(std::string_view path);
  void handle_text(TextKind kind);
  template <class T, class Ask, class Render>
  void answer_query(const Ask& ask, Render render);
  void query_history();

  void watch_for_disconnect();
  void next_text();
  void on_piece(node::TextPiece piece);
  void on_text_done(const Expected<node::GenerateResult>& result);
  bool keep_embedding(const node::GenerateResult& result);
  void refuse_answer();
  void finish_texts();

  void answer(int status, const char* type, std::string body);
  void fail(const ApiError& error);
  void begin_stream();
  void send(std::string bytes);
  void write_next();
  void on_written(boost::beast::error_code failure);
  void drain();

  ApiState& state_;
  const std::shared_ptr<ClientUse> client_;
  Lease<std::size_t> place_;
  Lease<std::uint64_t> body_;  // of the request that is read or answered
  const Route* route_ = nullptr;
  boost::beast::tcp_stream stream_;
  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  std::string unsent_, sending_;
  std::optional<Texts> texts_;
  std::uint64_t watch_ = 0;  // rises with each watch, so that a late one is known
  bool writing_ = false;
  bool busy_ = false;       // an answer is under way
  bool streaming_ = false;  // its head is sent
  bool keep_alive_ = true;
  bool closed_ = false;
  bool has_unread_ = false;  // of a refused request
  std::size_t drained_ = 0;  // bytes of it
  bool has_shown_key_ = false;
};

// 429, in the shape of OpenAI's interface.
ApiError too_many(std::string message);
// For an error of the node.
ApiError api_error(const Error& error);

}  // namespace neuroshard::serve::detail
