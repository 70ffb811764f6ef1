#include "core/serve/api_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <vector>

#include "core/base/executor.h"
#include "core/serve/detail/connection.h"

namespace neuroshard::serve {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr auto retry_accept = std::chrono::milliseconds(200);  // without free file descriptors
// Accepted before their requests are read. Fewer than the connections of one address, so a client is not pushed out
// before its key is read by those that came with it.
constexpr int accepted_at_once = 32;

class Server final : public ApiServer {
 public:
  Server(const ApiOptions& options, const Clock& clock, Logger& logger)
      : acceptor_(io_), timer_(io_), state_(options, clock, logger, io_) {}

  ~Server() override {
    state_.gate->close();
    asio::post(io_, [this] {
      error_code ignored;
      acceptor_.close(ignored);
      const auto open = state_.connections;
      for (const auto& connection : open) connection->close();
      io_.stop();
    });
    thread_.reset();  // joins
    state_.texts.reset();
  }

  Expected<void> listen() {
    error_code failure;
    const tcp::endpoint at(asio::ip::address_v4::loopback(), state_.options.port);
    acceptor_.open(at.protocol(), failure);
    if (!failure) acceptor_.set_option(tcp::acceptor::reuse_address(true), failure);
    if (!failure) acceptor_.bind(at, failure);
    // The system refuses connections beyond its queue without a word, and a client then waits for seconds.
    if (!failure) acceptor_.listen(asio::socket_base::max_listen_connections, failure);
    if (!failure) acceptor_.non_blocking(true, failure);
    if (failure) {
      return make_error(
          ErrorCode::Unavailable,
          fmt::format("the port {} of 127.0.0.1 can't be used ({}); set http_port to another one",
                      state_.options.port, failure.message()));
    }
    state_.port = acceptor_.local_endpoint(failure).port();
    return {};
  }

  void start(node::Node& node) override {
    state_.node = &node;
    state_.texts = std::make_unique<TextQueue>(
        node, [gate = state_.gate](std::function<void()> task) { gate->post(std::move(task)); },
        state_.options.limits.texts_running);
    accept();
    thread_ = make_thread_executor("ns-http", 1);
    static_cast<void>(thread_->post([this] { io_.run(); }));
  }

  void set_key(std::string key) override {
    state_.gate->post([this, key = std::move(key)]() mutable { state_.key = std::move(key); });
  }
  std::uint16_t port() const override { return state_.port; }
  std::string url() const override { return fmt::format("http://127.0.0.1:{}", state_.port); }

 private:
  // Takes all that wait, up to a number: one at a time would wait for the work of every open connection in between.
  void accept() {
    acceptor_.async_wait(tcp::acceptor::wait_read, [this](error_code failure) {
      if (!acceptor_.is_open()) return;
      for (int i = 0; i < accepted_at_once && !failure; ++i) {
        tcp::socket socket(io_);
        acceptor_.accept(socket, failure);
        if (!failure) admit(std::move(socket));
      }
      if (!failure || failure == asio::error::would_block || failure == asio::error::connection_aborted)
        return accept();
      timer_.expires_after(retry_accept);
      timer_.async_wait([this](error_code stopped) {
        if (!stopped) accept();
      });
    });
  }

  void admit(tcp::socket socket) {
    auto& all = state_.connections;
    error_code ignored;
    const auto client = state_.clients.of(socket.remote_endpoint(ignored).address().to_string());
    const ApiLimits& limits = state_.options.limits;
    const bool client_is_full = client->connections >= limits.client_connections;
    if (client_is_full || all.size() >= limits.connections) {
      ++state_.figures.refused;
      const auto leaving = who_leaves(client_is_full ? client.get() : nullptr);
      if (!leaving) return turn_away(std::move(socket));
      leaving->close();
    }
    socket.set_option(tcp::no_delay(true), ignored);
    all.push_back(std::make_shared<detail::Connection>(std::move(socket), client, state_));
    all.back()->start();
  }

  // The oldest that may go, of this client, or else of the one that has most connections; null: none may.
  std::shared_ptr<detail::Connection> who_leaves(const ClientUse* client) const {
    std::shared_ptr<detail::Connection> leaving;
    for (const auto& one : state_.connections) {
      if (!one->may_make_room() || (client != nullptr && &one->client() != client)) continue;
      if (!leaving || one->client().connections > leaving->client().connections) leaving = one;
    }
    return leaving;
  }

  // Says why, as far as that goes without waiting for the client.
  static void turn_away(tcp::socket socket) {
    const std::string body =
        render(detail::too_many("Too many connections are open already; try again later."));
    const std::string answer = fmt::format(
        "HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nContent-Length: {}\r\n"
        "Retry-After: 2\r\nConnection: close\r\n\r\n{}",
        body.size(), body);
    error_code ignored;
    socket.non_blocking(true, ignored);
    // Closing with unread bytes would reset the connection, and the client might lose the answer.
    std::array<char, 4096> unread;
    for (int reads = 0; reads < 4 && !ignored; ++reads) socket.read_some(asio::buffer(unread), ignored);
    socket.write_some(asio::buffer(answer), ignored);
    socket.shutdown(tcp::socket::shutdown_send, ignored);
  }

  asio::io_context io_;
  tcp::acceptor acceptor_;
  asio::steady_timer timer_;
  detail::ApiState state_;
  std::unique_ptr<Executor> thread_;
};

}  // namespace

Expected<std::unique_ptr<ApiServer>> ApiServer::listen(const ApiOptions& options, const Clock& clock,
                                                       Logger& logger) {
  NS_CHECK(!options.key.empty());
  auto server = std::make_unique<Server>(options, clock, logger);
  NS_RETURN_IF_ERROR(server->listen());
  return std::unique_ptr<ApiServer>(std::move(server));
}

}  // namespace neuroshard::serve
