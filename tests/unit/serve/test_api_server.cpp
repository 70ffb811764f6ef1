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
#include "core/serve/status_pages.h"
#include "core/serve/text_queue.h"
#include "tests/support/fake_node.h"
#include "tests/support/test_main.h"

using namespace neuroshard;  // NOLINT
using namespace neuroshard::serve;
using boost::asio::ip::tcp;

namespace {

constexpr std::size_t most_running = 3;
constexpr auto moment = std::chrono::milliseconds(300);  // the limits of these servers
constexpr auto patience = std::chrono::seconds(20);

// A client with blocking calls.
class Client {
 public:
  // from: its own address, one of 127.0.0.0/8.
  explicit Client(std::uint16_t port, const char* from = "127.0.0.1") : socket_(io_) {
    socket_.open(tcp::v4());
    socket_.bind({boost::asio::ip::make_address_v4(from), 0});
    socket_.connect({boost::asio::ip::address_v4::loopback(), port});
  }
  // Before much is written: what the system keeps of it is small.
  void keep_little() { socket_.set_option(boost::asio::socket_base::send_buffer_size(1 << 16)); }
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
  void one_clients_texts_leave_a_place_to_another();
  void bodies_that_wait_are_bounded();
  void a_body_without_the_key_is_not_read();
  void clients_may_connect_before_the_server_takes_them();
  void a_connection_without_the_key_gets_one_answer();
  void little_is_drained_from_a_client_without_the_key();
  void more_connections_than_a_client_may_have_are_turned_away();
  void a_crowd_of_one_address_pushes_out_its_own();
  void an_answer_that_grows_too_large_ends();
  void a_new_key_holds_at_once();
  void a_client_that_leaves_ends_its_text();
  void embeddings_come_in_order();
  void a_history_ends_at_the_newest_step();

 private:
  void listen(Duration request_limit);
  std::string request(bool stream) const;
  std::string post(const std::string& body, std::size_t announced = 0, const char* key = "secret") const;
  std::string health() const {
    return "GET /health HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(server_->port()) + "\r\n\r\n";
  }
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
  listen(moment);
}

void TestApiServer::listen(Duration request_limit) {
  server_.reset();
  node_ = std::make_unique<testing::FakeNode>();
  node_->publish([](node::Snapshot& view) {
    view.program.network = "test";
    view.training.step = 1;
  });
  ApiOptions options;
  options.port = 0;
  options.key = "secret";
  options.limits.request = request_limit;
  options.limits.unsent_bytes = 1u << 16;
  options.limits.connections = 80;
  options.limits.client_connections = 60;
  options.limits.texts_running = most_running;
  options.limits.client_texts = 8;
  options.limits.client_body_bytes = 1u << 20;
  options.limits.answer_bytes = 1u << 16;
  auto server = ApiServer::listen(options, clock_, logger_);
  QVERIFY(server.ok());
  server_ = std::move(*server);
  server_->start(*node_);
}

std::string TestApiServer::request(bool stream) const {
  return post(std::string(R"({"model":"neuroshard-test","prompt":"Once","stream":)") +
              (stream ? "true}" : "false}"));
}

// announced: its Content-Length, where that is more than what is sent.
std::string TestApiServer::post(const std::string& body, std::size_t announced, const char* key) const {
  return "POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(server_->port()) +
         "\r\nAuthorization: Bearer " + key +
         "\r\nContent-Length: " + std::to_string(std::max(announced, body.size())) + "\r\n\r\n" + body;
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
  constexpr std::size_t runs = most_running - 1, most = 8;  // of one client
  std::vector<std::unique_ptr<Client>> clients;
  for (std::size_t i = 0; i < most; ++i) {
    clients.push_back(std::make_unique<Client>(server_->port()));
    QVERIFY(clients.back()->write(request(false)));
    // The first ones run before the next come, else they would wait as well.
    if (i < runs) QVERIFY(eventually([&] { return node_->commands().size() == i + 1; }));
  }
  QVERIFY(eventually([&] { return waiting() == most - runs; }));
  Client one(server_->port());
  QVERIFY(one.write(request(false)));
  const std::string refused = one.read_to_end();
  QVERIFY2(refused.starts_with("HTTP/1.1 429 "), refused.c_str());
  QVERIFY2(refused.find("\r\nRetry-After: ") != std::string::npos, refused.c_str());
  QVERIFY2(refused.find("\"type\":\"rate_limit_error\"") != std::string::npos, refused.c_str());
  QCOMPARE(node_->commands().size(), runs);
  node_->finish(node_->held("generate"), node::CommandResult(node::GenerateResult{}));
  QVERIFY(eventually([&] { return node_->commands().size() == runs + 1; }));  // the next one's turn
}

void TestApiServer::one_clients_texts_leave_a_place_to_another() {
  node_->hold_commands();
  std::vector<std::unique_ptr<Client>> greedy;
  for (int i = 0; i < 6; ++i) {
    greedy.push_back(std::make_unique<Client>(server_->port(), "127.0.0.2"));
    QVERIFY(greedy.back()->write(request(false)));
  }
  QVERIFY(eventually([&] { return waiting() == 6 - (most_running - 1); }));
  Client modest(server_->port());
  QVERIFY(modest.write(request(false)));
  QVERIFY(eventually([&] { return node_->commands().size() == most_running; }));  // at once
  // Its second text comes before those that wait for longer: it has one running, the greedy client two.
  Client second(server_->port());
  QVERIFY(second.write(post(R"({"model":"neuroshard-test","prompt":"modest"})")));
  QVERIFY(eventually([&] { return waiting() == 6 - (most_running - 1) + 1; }));
  node_->finish(node_->held("generate"), node::CommandResult(node::GenerateResult{}));
  QVERIFY(eventually([&] { return node_->commands().size() == most_running + 1; }));
  QCOMPARE(node_->commands().back(), std::string("generate modest"));
}

void TestApiServer::bodies_that_wait_are_bounded() {
  Client slow(server_->port()), other(server_->port()), elsewhere(server_->port(), "127.0.0.2");
  QVERIFY(slow.write(post("{", 800u << 10)));
  QTest::qWait(50);  // its head is read
  QVERIFY(other.write(post("{", 800u << 10)));
  QVERIFY(other.read_some().starts_with("HTTP/1.1 429 "));
  QVERIFY(elsewhere.write(post("{}")));
  QVERIFY(elsewhere.read_some().starts_with("HTTP/1.1 400 "));  // read, and found wanting
  QCOMPARE(slow.read_to_end(), std::string());                  // too slow; its bytes are free again
  Client later(server_->port());
  QVERIFY(later.write(post("{" + std::string(800u << 10, ' ') + "}")));
  QVERIFY(later.read_some().starts_with("HTTP/1.1 400 "));
}

void TestApiServer::a_body_without_the_key_is_not_read() {
  Client stranger(server_->port());
  QVERIFY(stranger.write(post("{", 1u << 19, "guessed")));
  QVERIFY(stranger.read_some().starts_with("HTTP/1.1 401 "));  // before the rest has come
  Client large(server_->port());
  QVERIFY(large.write(post("{", (1u << 20) + 1)));
  QVERIFY(large.read_some().starts_with("HTTP/1.1 413 "));
}

// A client that finds no place in the system's queue tries again after a second, then after two, four…
void TestApiServer::clients_may_connect_before_the_server_takes_them() {
  ApiOptions options;
  options.port = 0;
  options.key = "secret";
  const auto server = ApiServer::listen(options, clock_, logger_);  // not started
  QVERIFY(server.ok());
  boost::asio::io_context io;
  std::vector<tcp::socket> clients;
  for (int i = 0; i < 100; ++i) {
    tcp::socket& one = clients.emplace_back(io, tcp::v4());
    bool connected = false;
    one.async_connect({boost::asio::ip::address_v4::loopback(), (*server)->port()},
                      [&connected](boost::system::error_code failure) { connected = !failure; });
    io.restart();
    io.run_for(std::chrono::milliseconds(800));
    QVERIFY2(connected, std::to_string(i).c_str());
  }
}

void TestApiServer::a_connection_without_the_key_gets_one_answer() {
  const auto answers = [this](const std::string& key) {
    std::string asked = health();
    if (!key.empty()) asked.insert(asked.size() - 2, "Authorization: Bearer " + key + "\r\n");
    std::string all;
    for (int i = 0; i < 4; ++i) all += asked;
    Client client(server_->port());
    client.write(all);  // one write: the server reads them together
    const std::string told = client.read_to_end();
    std::size_t count = 0;
    for (std::size_t at = 0; (at = told.find("HTTP/1.1 200 ", at)) != std::string::npos; ++at) ++count;
    return count;
  };
  QCOMPARE(answers(""), std::size_t{1});
  QCOMPARE(answers("guessed"), std::size_t{1});
  QCOMPARE(answers("secret"), std::size_t{4});
}

void TestApiServer::little_is_drained_from_a_client_without_the_key() {
  const auto taken = [this](const char* key, std::size_t announced) {
    Client client(server_->port());
    client.keep_little();
    client.write("POST /health HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(server_->port()) +
                 "\r\nAuthorization: Bearer " + key + "\r\nContent-Length: " + std::to_string(announced) +
                 "\r\n\r\n");
    std::size_t bytes = 0;
    const std::string piece(1u << 14, 'x');
    while (client.write(piece)) bytes += piece.size();
    return bytes;
  };
  // The longest body that is allowed, and one that is refused for its length.
  for (const std::size_t announced : {1u << 20, (1u << 20) + 1}) {
    const std::size_t with_key = taken("secret", announced), without = taken("guessed", announced);
    QVERIFY2(with_key >= 4u << 20, std::to_string(with_key).c_str());
    QVERIFY2(without < 2u << 20, std::to_string(without).c_str());
  }
}

void TestApiServer::more_connections_than_a_client_may_have_are_turned_away() {
  node_->hold_commands();
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 60; ++i) {  // all with the key, so none makes room
    clients.push_back(std::make_unique<Client>(server_->port()));
    QVERIFY(clients.back()->write(
        "GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(server_->port()) +
        "\r\nAuthorization: Bearer secret\r\n\r\n"));
    QVERIFY(clients.back()->read_some().starts_with("HTTP/1.1 200 "));
  }
  Client one(server_->port()), elsewhere(server_->port(), "127.0.0.2");
  const std::string refused = one.read_to_end();
  QVERIFY2(refused.starts_with("HTTP/1.1 429 "), refused.c_str());
  QVERIFY2(refused.find("\r\nRetry-After: ") != std::string::npos, refused.c_str());
  QVERIFY(elsewhere.write(health()));
  QVERIFY(elsewhere.read_some().starts_with("HTTP/1.1 200 "));
}

// A quiet client of another address keeps its connection, although it is the oldest.
void TestApiServer::a_crowd_of_one_address_pushes_out_its_own() {
  listen(patience);
  Client quiet(server_->port());
  QVERIFY(quiet.write(health().substr(0, 20)));
  std::vector<std::unique_ptr<Client>> crowd;
  for (int i = 0; i < 300; ++i) {
    crowd.push_back(std::make_unique<Client>(server_->port(), i % 2 == 0 ? "127.0.0.2" : "127.0.0.3"));
    crowd.back()->write("GET /health HTTP/1.1\r\nHost: 127");
  }
  QVERIFY(crowd.front()->read_to_end().empty());  // closed: the crowd makes room for itself
  QVERIFY(quiet.write(health().substr(20)));
  QVERIFY(quiet.read_some().starts_with("HTTP/1.1 200 "));
}

void TestApiServer::an_answer_that_grows_too_large_ends() {
  node_->hold_commands();
  Client client(server_->port());
  QVERIFY(client.write(request(false)));
  QVERIFY(eventually([&] { return node_->held("generate") != 0; }));
  const node::CommandId text = node_->held("generate");
  for (int i = 0; i < 5; ++i) node_->say(text, std::string(1u << 14, 'a'));
  const std::string answer = client.read_to_end();
  QVERIFY2(answer.starts_with("HTTP/1.1 400 ") && answer.find("answer_too_large") != std::string::npos,
           answer.c_str());
  QVERIFY(eventually([&] { return node_->held("generate") == 0; }));
}

void TestApiServer::a_new_key_holds_at_once() {
  server_->set_key("another");
  Client old(server_->port()), fresh(server_->port());
  QVERIFY(old.write(post("{}")));
  QVERIFY(old.read_some().starts_with("HTTP/1.1 401 "));
  QVERIFY(fresh.write(post("{}", 0, "another")));
  QVERIFY(fresh.read_some().starts_with("HTTP/1.1 400 "));
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

void TestApiServer::embeddings_come_in_order() {
  node_->hold_commands();
  const std::string body = R"({"model":"neuroshard-test","input":["one","two"]})";
  Client client(server_->port());
  QVERIFY(client.write("POST /v1/embeddings HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(server_->port()) +
                       "\r\nAuthorization: Bearer secret\r\nConnection: close\r\nContent-Length: " +
                       std::to_string(body.size()) + "\r\n\r\n" + body));
  for (const auto& [text, value] : {std::pair("one", 0.25f), std::pair("two", -0.5f)}) {
    const std::string name = std::string("generate ") + text;
    QVERIFY(eventually([&] { return node_->held(name) != 0; }));
    QVERIFY(node_->generated.client == "127.0.0.1");
    node::GenerateResult result;
    result.prompt_tokens = 3;
    result.embedding = {value, 1};
    node_->finish(node_->held(name), node::CommandResult(result));
  }
  const std::string answer = client.read_to_end();
  QVERIFY2(answer.starts_with("HTTP/1.1 200 "), answer.c_str());
  for (const char* part :
       {R"("data":[{"object":"embedding","index":0,"embedding":[0.25,1]},)",
        R"({"object":"embedding","index":1,"embedding":[-0.5,1]}],"model":"neuroshard-test","system_)",
        R"("usage":{"prompt_tokens":6,"total_tokens":6}})"})
    QVERIFY2(answer.find(part) != std::string::npos, answer.c_str());
}

void TestApiServer::a_history_ends_at_the_newest_step() {
  node::Snapshot view;
  view.training.step = 37;
  const node::Series loss{"loss", {{0, 16, 15, 2, 4, 3}, {16, 16, 16, 1, 3, 2}, {32, 16, 6, 1, 1, 1}}};
  // A step may be in the history before the snapshot has it.
  const node::Series held_out{"val_loss", {{30, 1, 1, 2, 2, 2}, {38, 1, 1, 1, 1, 1}}};
  const std::string page = history_page(view, loss, held_out);
  for (const char* part :
       {R"("loss_checkpoints":[{"step":15,"loss":3.0},{"step":31,"loss":2.0},)",
        R"({"step":37,"loss":1.0}],)", R"([{"step":30,"loss":2.0},{"step":38,"loss":1.0}])"})
    QVERIFY2(page.find(part) != std::string::npos, page.c_str());
}

NS_TEST(TestApiServer)
#include "test_api_server.moc"
