// The listener in front of the TLS server for peers: what it knows of connections that it has handed on. Whom
// it shows out is tested with the whole transport (tests/unit/rpc).
#include <QtTest>

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "core/platform/socket/tls_listener.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::platform;

namespace {

constexpr Duration tick = std::chrono::milliseconds(100);

int connect_to(const TlsListener& listener) {
  const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(listener.endpoint().port);
  return ::connect(client, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0 ? client : -1;
}

Duration processor_time() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

}  // namespace

class TestTlsListener : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void what_is_still_to_be_sent_is_known();
  void a_long_pause_ends_when_something_happens();
  void it_rests_while_no_descriptor_is_left();
};

void TestTlsListener::what_is_still_to_be_sent_is_known() {
  const SystemClock clock;
  const auto listener = TlsListener::open({IpAddress::v4(127, 0, 0, 1), 0}, {}, clock);
  QVERIFY(listener.ok());
  const int client = connect_to(**listener);
  QVERIFY(client >= 0);
  std::vector<char> record(5 + 100, 0);  // a ClientHello, as far as this listener looks
  record[0] = 22;
  record[1] = 3;
  record[4] = 100;
  QCOMPARE(::send(client, record.data(), record.size(), 0), static_cast<ssize_t>(record.size()));

  int taken = -1;
  std::size_t written = 0, read = 0;
  std::uint64_t before = 1, full = 0, after = 1;
  std::vector<char> piece(64u << 10);
  TlsListener::Events events;
  events.take = [&](int descriptor, const Endpoint&) { taken = descriptor; };
  events.shown_out = [](ShownOut, const IpAddress&) {};
  events.tick = [&]() -> Duration {
    if (taken < 0) return tick;
    if (written == 0) {
      before = (*listener)->unsent();
      for (ssize_t sent; (sent = ::send(taken, piece.data(), piece.size(), MSG_NOSIGNAL)) > 0;)
        written += static_cast<std::size_t>(sent);
      full = (*listener)->unsent();
      return tick;
    }
    for (ssize_t got; (got = ::recv(client, piece.data(), piece.size(), MSG_DONTWAIT)) > 0;)
      read += static_cast<std::size_t>(got);
    after = (*listener)->unsent();
    if (read == written && after == 0) (*listener)->stop();
    return tick;
  };
  (*listener)->serve(events);
  QCOMPARE(before, std::uint64_t{0});
  QVERIFY2(full > 0 && full <= written, std::to_string(full).c_str());
  QCOMPARE(after, std::uint64_t{0});
  ::close(taken);
  ::close(client);
}

// Each step is the reason of the next tick, which would be an hour away without it.
void TestTlsListener::a_long_pause_ends_when_something_happens() {
  const SystemClock clock;
  const auto listener = TlsListener::open({IpAddress::v4(127, 0, 0, 1), 0}, {}, clock);
  QVERIFY(listener.ok());
  int client = -1;
  std::size_t ticks = 0;
  TlsListener::Events events;
  events.take = [](int descriptor, const Endpoint&) { ::close(descriptor); };
  events.shown_out = [](ShownOut, const IpAddress&) {};
  events.tick = [&]() -> Duration {
    switch (++ticks) {
      case 1: (*listener)->tick_soon(); break;
      case 2: client = connect_to(**listener); break;
      default: (*listener)->stop(); break;
    }
    return std::chrono::hours(1);
  };
  (*listener)->serve(events);
  QVERIFY(client >= 0);
  QCOMPARE(ticks, std::size_t{3});
  ::close(client);
}

void TestTlsListener::it_rests_while_no_descriptor_is_left() {
  const SystemClock clock;
  const auto listener = TlsListener::open({IpAddress::v4(127, 0, 0, 1), 0}, {}, clock);
  QVERIFY(listener.ok());
  const int client = connect_to(**listener);
  const int lowest = ::dup(client);  // of the free numbers
  QVERIFY(client >= 0 && lowest >= 0);
  ::close(lowest);
  rlimit former{};
  QVERIFY(::getrlimit(RLIMIT_NOFILE, &former) == 0);
  const rlimit none_left{static_cast<rlim_t>(lowest), former.rlim_max};
  QVERIFY(::setrlimit(RLIMIT_NOFILE, &none_left) == 0);

  const MonotonicTime began = clock.monotonic_now();
  const Duration before = processor_time();
  std::optional<Duration> used;
  bool accepted = false;
  TlsListener::Events events;
  events.take = [](int descriptor, const Endpoint&) { ::close(descriptor); };
  events.shown_out = [](ShownOut, const IpAddress&) {};
  events.tick = [&]() -> Duration {
    const Duration passed = clock.monotonic_now() - began;
    if (!used && passed >= std::chrono::milliseconds(500)) {
      used = processor_time() - before;
      ::setrlimit(RLIMIT_NOFILE, &former);
    }
    accepted = (*listener)->open_connections() == 1;
    if (accepted || passed >= std::chrono::seconds(4)) (*listener)->stop();
    return tick;
  };
  (*listener)->serve(events);
  ::setrlimit(RLIMIT_NOFILE, &former);
  QVERIFY(used.has_value());
  QVERIFY2(*used < std::chrono::milliseconds(200), qPrintable(QString::number(to_seconds(*used))));
  QVERIFY(accepted);
  ::close(client);
}

NS_TEST(TestTlsListener)
#include "test_tls_listener.moc"
