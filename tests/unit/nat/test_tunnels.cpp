// Connections that can't be dialled plainly, as a node has them: a place at a relay, calls through it, and
// punched ones, each handed on as a port of the loopback interface.
#include <QtTest>
#include <future>
#include <thread>

#include "core/nat/tunnels.h"
#include "tests/support/loopback_relay.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::nat;
using Relay = neuroshard::testing::LoopbackRelay;
using platform::Endpoint;
using platform::IpAddress;
using platform::TcpListener;
using platform::TcpSocket;

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const IpAddress loopback = IpAddress::v4(127, 0, 0, 1);
constexpr Duration generous = seconds(20);
const Hash256 callee{7};

SystemClock the_clock;
crypto::SystemEntropy the_entropy;
const Io io{the_clock, the_entropy, {}};

// A node with its listener, which gives back what is said to it once.
class Node {
 public:
  explicit Node(std::size_t waiting = 32) {
    listener_ = TcpListener::open({loopback, 0}).value();
    TunnelOptions options;
    options.own = listener_.local().value();
    options.waiting = waiting;
    options.hold.first_retry = milliseconds(50);
    tunnels = Tunnels::start(the_clock, the_entropy, *executor, options).value();
  }
  ~Node() { tunnels.reset(); }
  template <class Result>
  Result ask(const std::function<void(std::function<void(Result)>)>& question) {
    auto answer = std::make_shared<std::promise<Result>>();
    const bool posted = executor->post(
        [&question, answer] { question([answer](Result result) { answer->set_value(std::move(result)); }); });
    return posted ? answer->get_future().get() : Result(make_error(ErrorCode::Busy, ""));
  }
  Expected<std::uint16_t> dial(const Endpoint& relay, const Hash256& whom, Duration limit = generous) {
    return ask<Expected<std::uint16_t>>([&](const auto& done) { tunnels->dial(relay, whom, limit, done); });
  }
  Expected<Hole> open_hole(const Endpoint& server) {
    return ask<Expected<Hole>>([&](const auto& done) { tunnels->open_hole({server}, generous, done); });
  }
  // Takes one connection, and what is said on it.
  std::string heard() {
    const MonotonicTime until = io.now() + generous;
    while (io.now() < until) {
      auto accepted = listener_.accept();
      if (accepted.ok() && accepted->has_value()) {
        taken_ = std::move((*accepted)->socket);
        seen_at = (*accepted)->from;
        std::string words(5, '\0');
        const auto read = read_all_until(
            io, taken_, MutableByteSpan(reinterpret_cast<std::uint8_t*>(words.data()), words.size()), until);
        return read.ok() ? words : read.error().message;
      }
      (void)wait_until(io, {}, io.now() + milliseconds(5));
    }
    return "nobody called";
  }

  std::unique_ptr<Executor> executor = make_thread_executor("node", 256);
  std::unique_ptr<Tunnels> tunnels;
  Endpoint seen_at;  // the caller, at the listener

 private:
  TcpListener listener_;
  TcpSocket taken_;
};

Expected<TcpSocket> say_hello(std::uint16_t port) {
  NS_ASSIGN_OR_RETURN(TcpSocket socket, dial_until(io, {loopback, port}, {}, io.now() + generous));
  NS_RETURN_IF_ERROR(write_until(io, socket, as_bytes(std::string("hello")), io.now() + generous));
  return socket;
}

}  // namespace

class TestTunnels : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_node_at_a_relay_is_called();
  void a_relay_that_refuses_is_told();
  void who_is_not_there_is_not_reached();
  void too_many_do_not_wait();
  void what_kind_of_nat();
  void two_punch_a_connection();
  void the_end_does_not_wait();

 private:
  // Holds a place for `node` at the relay; where it is called then, or why nowhere.
  std::string hold(Node& node, Relay& relay, bool refuses = false) {
    auto said = std::make_shared<std::promise<std::string>>();
    auto once = std::make_shared<bool>(false);
    const bool posted = node.executor->post([&, said, once, refuses] {
      Tunnels::Events events;
      events.reserve = [&relay, refuses](const Endpoint&, const Tunnels::Ticket& ticket) {
        if (refuses) return ticket(make_error(ErrorCode::Exhausted, "this relay has no place left"));
        ticket(relay.role->reserve(callee, loopback));
      };
      events.held = [said, once](std::optional<Endpoint> at, const std::string& trouble) {
        if (std::exchange(*once, true)) return;
        said->set_value(at ? platform::to_text(*at) : trouble);
      };
      node.tunnels->set_events(std::move(events));
      node.tunnels->hold({relay.endpoint});
    });
    return posted ? said->get_future().get() : "busy";
  }
};

void TestTunnels::a_node_at_a_relay_is_called() {
  Relay relay;
  Node called, caller;
  QCOMPARE(hold(called, relay), platform::to_text(relay.endpoint));
  QCOMPARE(relay.role->joined(), std::size_t{1});
  const auto port = caller.dial(relay.endpoint, callee);
  QVERIFY2(port.ok(), port.ok() ? "" : port.error().message.c_str());
  const auto socket = say_hello(*port);
  QVERIFY(socket.ok());
  QCOMPARE(called.heard(), std::string("hello"));
  // The relay's report, for this call and no other.
  QVERIFY(called.tunnels->relayed_caller(called.seen_at) == loopback);
  QVERIFY(!called.tunnels->relayed_caller({loopback, 1}));
  QTRY_VERIFY(relay.role->counters().bytes >= 5);
  // The port is for one connection.
  QVERIFY(!say_hello(*port).ok());
}

void TestTunnels::a_relay_that_refuses_is_told() {
  Relay relay;
  Node node;
  const std::string trouble = hold(node, relay, /*refuses=*/true);
  QVERIFY2(trouble.find("no place left") != std::string::npos, trouble.c_str());
}

void TestTunnels::who_is_not_there_is_not_reached() {
  Relay relay;
  Node caller;
  const auto port = caller.dial(relay.endpoint, Hash256{9});
  QVERIFY(!port.ok());
  QCOMPARE(port.error().code, ErrorCode::NotFound);
}

void TestTunnels::too_many_do_not_wait() {
  auto silent = TcpListener::open({loopback, 0});  // takes nobody
  const Endpoint nowhere = silent->local().value();
  Node node(/*waiting=*/2);
  std::vector<std::future<ErrorCode>> answers;
  for (int i = 0; i < 20; ++i) {
    auto answer = std::make_shared<std::promise<ErrorCode>>();
    answers.push_back(answer->get_future());
    const bool posted = node.executor->post([&, answer] {
      node.tunnels->dial(nowhere, callee, seconds(1), [answer](const Expected<std::uint16_t>& port) {
        answer->set_value(port.ok() ? ErrorCode::Internal : port.error().code);
      });
    });
    QVERIFY(posted);
  }
  int late = 0, refused = 0;
  for (auto& answer : answers) {
    const ErrorCode code = answer.get();
    late += code == ErrorCode::Timeout ? 1 : 0;
    refused += code == ErrorCode::Exhausted ? 1 : 0;
  }
  QCOMPARE(late + refused, 20);
  QVERIFY2(refused >= 10, qPrintable(QString::number(refused)));
}

void TestTunnels::what_kind_of_nat() {
  Relay relay;
  Node node;
  const auto finding = node.ask<Expected<MappingFinding>>(
      [&](const auto& done) { node.tunnels->probe_nat({relay.endpoint}, generous, done); });
  QVERIFY2(finding.ok(), finding.ok() ? "" : finding.error().message.c_str());
  QCOMPARE(finding->mapping, Mapping::None);  // the loopback interface has no NAT
  QCOMPARE(finding->outside->ip, loopback);
  QCOMPARE(relay.role->counters().bindings, std::uint64_t{1});
}

void TestTunnels::two_punch_a_connection() {
  Relay server;
  Node called, caller;
  const auto there = called.open_hole(server.endpoint), here = caller.open_hole(server.endpoint);
  QVERIFY(there.ok() && here.ok());
  QVERIFY((*there)->outside.port != 0 && (*there)->outside != (*here)->outside);
  std::promise<Expected<void>> joined;
  QVERIFY(called.executor->post([&] {
    called.tunnels->punch_inbound(*there, (*here)->outside, generous,
                                  [&](Expected<void> result) { joined.set_value(std::move(result)); });
  }));
  const auto port = caller.ask<Expected<std::uint16_t>>(
      [&](const auto& done) { caller.tunnels->punch(*here, (*there)->outside, generous, done); });
  QVERIFY2(port.ok(), port.ok() ? "" : port.error().message.c_str());
  QVERIFY(joined.get_future().get().ok());
  const auto socket = say_hello(*port);
  QVERIFY(socket.ok());
  QCOMPARE(called.heard(), std::string("hello"));
  QCOMPARE(server.role->counters().bytes, std::uint64_t{0});  // nothing of it went through the other node
}

void TestTunnels::the_end_does_not_wait() {
  auto silent = TcpListener::open({loopback, 0});
  const Endpoint nowhere = silent->local().value();
  const MonotonicTime began = io.now();
  {
    Node node;
    QVERIFY(node.executor->post([&] {
      node.tunnels->dial(nowhere, callee, std::chrono::hours(1), [](const Expected<std::uint16_t>&) {});
      node.tunnels->hold({nowhere});
    }));
    (void)wait_until(io, {}, io.now() + milliseconds(100));
  }
  QVERIFY(io.now() - began < seconds(10));
}

NS_TEST(TestTunnels)
#include "test_tunnels.moc"
