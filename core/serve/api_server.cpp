#include "core/serve/api_server.h"

#include <fmt/format.h>

#include <algorithm>
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
    if (!failure) acceptor_.listen(64, failure);
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
        node, [gate = state_.gate](std::function<void()> task) { gate->post(std::move(task)); });
    accept();
    thread_ = make_thread_executor("ns-http", 1);
    static_cast<void>(thread_->post([this] { io_.run(); }));
  }

  std::uint16_t port() const override { return state_.port; }
  std::string url() const override { return fmt::format("http://127.0.0.1:{}", state_.port); }

 private:
  void accept() {
    acceptor_.async_accept([this](error_code failure, tcp::socket socket) {
      if (!acceptor_.is_open()) return;
      if (failure) {
        timer_.expires_after(retry_accept);
        return timer_.async_wait([this](error_code stopped) {
          if (!stopped) accept();
        });
      }
      admit(std::move(socket));
      accept();
    });
  }

  void admit(tcp::socket socket) {
    auto& all = state_.connections;
    if (all.size() >= state_.options.limits.connections) {
      const auto oldest =
          std::find_if(all.begin(), all.end(), [](const auto& one) { return one->may_make_room(); });
      ++state_.figures.refused;
      if (oldest == all.end()) return;  // the new one is closed
      const auto leaving = *oldest;
      leaving->close();
    }
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    all.push_back(std::make_shared<detail::Connection>(std::move(socket), state_));
    all.back()->start();
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
