// The bounds of the local HTTP server: clients that are slow, that do not read, or that want more texts than can wait.
#include <QtTest>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <memory>
#include <string>

#include "core/serve/api_server.h"
#include "core/serve/text_queue.h"
#include "tests/support/fake_node.h"
#include "tests/support/test_main.h"

using namespace neuroshard;  // NOLINT
using namespace neuroshard::serve;
using boost::asio::ip::tcp;

namespace {

constexpr auto moment = std::chrono::milliseconds(300);  // the limits of these servers
constexpr auto patience = std::chrono::seconds(20);

// A client with blocking calls.
class Client {
 public:
  explicit Client(std::uint16_t port) : socket_(io_) {
    socket_.connect({boost::asio::ip::address_v4::loopback(), port});
  }
  bool write(const std::string& bytes) {
    boost::system::error_code failure;
    boost::asio::write(socket_, boost::asio::buffer(bytes), failure);
    return !failure;
  }
  // All that comes until the server closes.
  std::string read_to_end() {
    std::string all;
    boost::system::error_code failure;
    boost::asio::read(socket_, boost::asio::dynamic_buffer(all), failure);
    return all;
  }
  // The first bytes of an answer.
  std::string read_some() {
    std::string bytes(64, '\0');
    boost::system::error_code failure;
    bytes.resize(socket_.read_some(boost::asio::buffer(bytes), failure));
    return bytes;
  }

 private:
  boost::asio::io_context io_;
  tcp::socket socket_;
};

}  // namespace

class TestApiServer : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init();
  void cleanup() { server_.reset(); }
  void half_a_request_is_closed();
  void a_reader_that_does_not_read_is_cut_off();
  void more_texts_than_can_wait_are_refused();
  void a_client_that_leaves_ends_its_text();

 private:
  std::string request(bool stream) const;
  std::size_t waiting() const;
  bool eventually(const std::function<bool()>& reached) const {
    return QTest::qWaitFor(reached, patience / std::chrono::milliseconds(1));
  }

  SystemClock clock_;
  NullLogger logger_;
  std::unique_ptr<testing::FakeNode> node_;
  std::unique_ptr<ApiServer> server_;
};

void TestApiServer::init() {
  node_ = std::make_unique<testing::FakeNode>();
  node_->publish([](node::Snapshot& view) {
    view.program.network = "test";
    view.training.step = 1;
  });
  ApiOptions options;
  options.port = 0;
  options.key = "secret";
  options.limits.request = moment;
  options.limits.unsent_bytes = 1u << 16;
  auto server = ApiServer::listen(options, clock_, logger_);
  QVERIFY(server.ok());
  server_ = std::move(*server);
  server_->start(*node_);
}

std::string TestApiServer::request(bool stream) const {
  const std::string body =
      std::string(R"({"model":"neuroshard-test","prompt":"Once","stream":)") + (stream ? "true}" : "false}");
  return "POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(server_->port()) +
         "\r\nAuthorization: Bearer secret\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         body;
}

// Texts that wait, by the server's own figures.
std::size_t TestApiServer::waiting() const {
  Client client(server_->port());
  client.write("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(server_->port()) +
               "\r\nAuthorization: Bearer secret\r\nConnection: close\r\n\r\n");
  const std::string page = client.read_to_end(), name = "\nneuroshard_texts_waiting ";
  const std::size_t at = page.find(name);
  return at == std::string::npos ? 0 : std::stoul(page.substr(at + name.size()));
}

void TestApiServer::half_a_request_is_closed() {
  Client client(server_->port());
  QVERIFY(client.write(request(false).substr(0, 60)));
  QCOMPARE(client.read_to_end(), std::string());  // ends although the client waits
  QVERIFY(node_->commands().empty());
}

void TestApiServer::a_reader_that_does_not_read_is_cut_off() {
  node_->hold_commands();
  Client client(server_->port());
  QVERIFY(client.write(request(true)));
  QVERIFY(eventually([&] { return node_->held("generate") != 0; }));
  const node::CommandId text = node_->held("generate");
  // The buffers of both sockets take some megabytes.
  const std::string piece(1u << 16, 'a');
  QVERIFY(eventually([&] {
    node_->say(text, piece);
    return node_->held("generate") == 0;
  }));
  QCOMPARE(node_->commands().back(), "cancel " + std::to_string(text));
}

void TestApiServer::more_texts_than_can_wait_are_refused() {
  node_->hold_commands();
  std::vector<std::unique_ptr<Client>> clients;
  for (std::size_t i = 0; i < max_texts_running + max_texts_waiting; ++i) {
    clients.push_back(std::make_unique<Client>(server_->port()));
    QVERIFY(clients.back()->write(request(false)));
    // The first ones run before the next come, else they would wait as well.
    if (i < max_texts_running) QVERIFY(eventually([&] { return node_->commands().size() == i + 1; }));
  }
  QVERIFY(eventually([&] { return waiting() == max_texts_waiting; }));
  Client one(server_->port());
  QVERIFY(one.write(request(false)));
  const std::string refused = one.read_some();
  QVERIFY2(refused.starts_with("HTTP/1.1 429 "), refused.c_str());
  QCOMPARE(node_->commands().size(), max_texts_running);
  node_->finish(node_->held("generate"), node::CommandResult(node::GenerateResult{}));
  QVERIFY(
      eventually([&] { return node_->commands().size() == max_texts_running + 1; }));  // the next one's turn
}

void TestApiServer::a_client_that_leaves_ends_its_text() {
  node_->hold_commands();
  {
    Client client(server_->port());
    QVERIFY(client.write(request(false)));
    QVERIFY(eventually([&] { return node_->held("generate") != 0; }));
  }
  QVERIFY(eventually([&] { return node_->held("generate") == 0; }));
}

NS_TEST(TestApiServer)
#include "test_api_server.moc"
