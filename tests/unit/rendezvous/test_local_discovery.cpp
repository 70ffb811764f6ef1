// Nodes of one local network, over real multicast in a network namespace of the test's own; without the right
// to make one, it is skipped.
#include <sched.h>

#include <QProcess>
#include <QtTest>
#include <future>
#include <mutex>

#include "core/platform/socket/multicast_socket.h"
#include "core/rendezvous/local_discovery.h"
#include "core/rendezvous/mdns_message.h"
#include "tests/support/test_main.h"

using namespace neuroshard;              // NOLINT
using namespace neuroshard::rendezvous;  // NOLINT

class TestLocalDiscovery : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase();
  void neighbours_find_each_other();
  void who_comes_later_is_found_without_asking();
  void another_network_and_silence_are_not_found();
  void a_flood_is_no_harm();
};

namespace {

const platform::IpAddress own = platform::IpAddress::v4(10, 77, 0, 1);

bool ip(const QStringList& arguments) {
  return QProcess::execute("ip", arguments) == 0;
}

class Node {
 public:
  Node(std::uint8_t number, std::uint8_t network) : executor_(make_thread_executor("node", 1024)) {
    run([&] {
      LocalDiscoveryOptions options;
      options.node_id.fill(number);
      options.network_id.fill(network);
      options.poll = std::chrono::milliseconds(20);
      auto made = make_local_discovery(*executor_, clock_, options);
      if (!made.ok()) qFatal("%s", made.error().describe().c_str());
      place_ = std::move(*made);
    });
  }
  ~Node() {
    run([&] { place_.reset(); });
  }
  void announce(std::uint16_t port) {
    run([&] { place_->announce(port); });
  }
  void look() {
    run([&] {
      place_->look_up([this](const std::vector<platform::Endpoint>& found) {
        const std::lock_guard lock(mutex_);
        found_.insert(found_.end(), found.begin(), found.end());
      });
    });
  }
  bool has(std::uint16_t port) {
    const std::lock_guard lock(mutex_);
    return std::find(found_.begin(), found_.end(), platform::Endpoint{own, port}) != found_.end();
  }
  std::size_t found() {
    const std::lock_guard lock(mutex_);
    return found_.size();
  }

 private:
  void run(const std::function<void()>& task) {
    std::promise<void> done;
    if (!executor_->post([&] {
          task();
          done.set_value();
        }))
      qFatal("the executor is full");
    done.get_future().wait();
  }
  const SystemClock clock_;
  std::mutex mutex_;
  std::vector<platform::Endpoint> found_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<Rendezvous> place_;
};

}  // namespace

void TestLocalDiscovery::initTestCase() {
  // Before any thread: a namespace belongs to the thread that asks, and to those that it makes.
  if (::unshare(CLONE_NEWNET) != 0) QSKIP("needs root: a network namespace of its own");
  QVERIFY(ip({"link", "add", "lan0", "type", "veth", "peer", "name", "lan1"}));
  QVERIFY(ip({"link", "set", "lan1", "up"}));
  QVERIFY(ip({"addr", "add", "10.77.0.1/24", "dev", "lan0"}));
  QVERIFY(ip({"link", "set", "lan0", "up", "multicast", "on"}));
}

void TestLocalDiscovery::neighbours_find_each_other() {
  Node a(1, 7), b(2, 7);
  a.announce(29001);
  b.announce(29002);
  b.look();
  QTRY_VERIFY_WITH_TIMEOUT(b.has(29001), 10'000);
  a.look();
  QTRY_VERIFY_WITH_TIMEOUT(a.has(29002), 10'000);
  QVERIFY2(!a.has(29001) && !b.has(29002), "nobody finds itself");
}

void TestLocalDiscovery::who_comes_later_is_found_without_asking() {
  Node a(1, 7);
  a.look();
  Node b(2, 7);
  b.announce(29003);
  QTRY_VERIFY_WITH_TIMEOUT(a.has(29003), 10'000);
}

void TestLocalDiscovery::another_network_and_silence_are_not_found() {
  Node stranger(3, 8), silent(4, 7), seeker(5, 7), control(6, 7);
  stranger.announce(29004);
  seeker.look();
  control.announce(29005);
  QTRY_VERIFY_WITH_TIMEOUT(seeker.has(29005), 10'000);
  QVERIFY(!seeker.has(29004));
}

void TestLocalDiscovery::a_flood_is_no_harm() {
  Node a(1, 7), b(2, 7);
  a.announce(29006);
  auto socket = platform::MulticastSocket::open({platform::IpAddress::v4(224, 0, 0, 251), 5353});
  QVERIFY(socket.ok() && socket->join() == 1);
  for (int i = 0; i < 3'000; ++i) {
    socket->send([i](const platform::IpAddress&) {
      return i % 2 == 0 ? encode_mdns_question() : Bytes(1200, static_cast<std::uint8_t>(i));
    });
  }
  const auto ask_until_found = [&] {
    b.look();
    return b.has(29006);
  };
  QTRY_VERIFY_WITH_TIMEOUT(ask_until_found(), 20'000);
  // It answers once a second at most, however often it is asked.
  QVERIFY2(b.found() < 60, std::to_string(b.found()).c_str());
}

NS_TEST(TestLocalDiscovery)
#include "test_local_discovery.moc"
