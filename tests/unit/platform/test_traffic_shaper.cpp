// The shaper between real sockets: bytes, limits, ends.
#include <QtTest>

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "core/platform/socket/traffic_shaper.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::platform;

namespace {

constexpr std::size_t mebi = 1u << 20;

struct TcpPair {
  TcpPair() {
    const int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    auto* const address = reinterpret_cast<sockaddr*>(&at);
    NS_CHECK(::bind(listening, address, size) == 0 && ::listen(listening, 1) == 0);
    getsockname(listening, address, &size);
    sender = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    NS_CHECK(::connect(sender, address, size) == 0);
    accepted = accept4(listening, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    close(listening);
    fcntl(sender, F_SETFL, O_NONBLOCK);
  }
  ~TcpPair() { close(sender); }
  int sender = -1, accepted = -1;
};

// A shaper on its thread, with one connection whose reader's end is `reader`.
struct Shaped {
  explicit Shaped(TrafficShaper::Allow allow) : shaper(TrafficShaper::make(std::move(allow), clock).value()) {
    reader = shaper->add(tcp.accepted, remote).value();
    thread = std::thread([this] { shaper->serve(); });
  }
  ~Shaped() {
    shaper->stop();
    thread.join();
    if (reader >= 0) close(reader);
  }
  std::string name() const {
    sockaddr_un peer{};
    socklen_t size = sizeof peer;
    getpeername(reader, reinterpret_cast<sockaddr*>(&peer), &size);
    return std::string(peer.sun_path + 1, size - offsetof(sockaddr_un, sun_path) - 1);
  }

  SystemClock clock;
  const Endpoint remote{IpAddress::v4(203, 0, 113, 9), 4242};
  TcpPair tcp;
  std::unique_ptr<TrafficShaper> shaper;
  int reader = -1;
  std::thread thread;
};

// Until the socket is ready, or the time is over.
bool wait_for(int socket, short events, int ms) {
  pollfd polled{socket, events, 0};
  return ::poll(&polled, 1, ms) == 1;
}

// Reads until nothing has come for a while, or the end.
struct Read {
  std::string bytes;
  bool ended = false;
};
Read read_all(int from, int patience_ms = 150) {
  Read read;
  std::vector<char> piece(64u << 10);
  while (wait_for(from, POLLIN, patience_ms)) {
    const ssize_t got = recv(from, piece.data(), piece.size(), MSG_DONTWAIT);
    if (got > 0) {
      read.bytes.append(piece.data(), static_cast<std::size_t>(got));
    } else if (got == 0 || errno != EAGAIN) {
      read.ended = true;
      break;
    }
  }
  return read;
}

std::string numbered(std::size_t size) {
  std::string text;
  for (std::size_t i = 0; text.size() < size; ++i) text += std::to_string(i) + " ";
  text.resize(size);
  return text;
}

// Sends as much as the kernel takes.
std::size_t send_some(int to, const std::string& text) {
  std::size_t sent = 0;
  while (sent < text.size()) {
    const ssize_t more = send(to, text.data() + sent, text.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (more <= 0) break;
    sent += static_cast<std::size_t>(more);
  }
  return sent;
}

}  // namespace

class TestTrafficShaper : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void bytes_pass_in_both_directions();
  void no_more_passes_than_is_allowed();
  void a_held_sender_is_stopped_by_the_kernel();
  void urgent_bytes_do_not_wake_a_held_connection();
  void a_slow_reader_loses_nothing();
  void ends_are_passed_on();
  void the_reader_of_a_name_is_known_until_the_end();
  void an_ended_connection_is_gone_for_both();
};

void TestTrafficShaper::bytes_pass_in_both_directions() {
  Shaped shaped([](const Endpoint&, std::uint64_t) { return TrafficShaper::Grant{mebi, {}}; });
  const std::string there = numbered(300'000), back = numbered(200'000);
  std::thread sender([&] {
    for (std::size_t sent = 0; sent < there.size();) sent += send_some(shaped.tcp.sender, there.substr(sent));
  });
  const Read got = read_all(shaped.reader);
  sender.join();
  QVERIFY(got.bytes == there && !got.ended);
  std::thread answerer([&] {
    for (std::size_t sent = 0; sent < back.size();) sent += send_some(shaped.reader, back.substr(sent));
  });
  QVERIFY(read_all(shaped.tcp.sender).bytes == back);
  answerer.join();
  QCOMPARE(shaped.shaper->unsent(), std::uint64_t{0});
}

void TestTrafficShaper::no_more_passes_than_is_allowed() {
  std::atomic<std::uint64_t> budget{10'000};
  Shaped shaped([&](const Endpoint& remote, std::uint64_t passed) {
    NS_CHECK(remote.port == 4242);
    return TrafficShaper::Grant{static_cast<std::size_t>(budget - passed), std::chrono::milliseconds(5)};
  });
  const std::string text = numbered(100'000);
  QCOMPARE(send_some(shaped.tcp.sender, text), text.size());
  QCOMPARE(read_all(shaped.reader).bytes.size(), std::size_t{10'000});
  budget = 60'000;
  QVERIFY(read_all(shaped.reader).bytes == text.substr(10'000, 50'000));
  budget = 200'000;
  QVERIFY(read_all(shaped.reader).bytes == text.substr(60'000));
}

void TestTrafficShaper::a_held_sender_is_stopped_by_the_kernel() {
  Shaped shaped([](const Endpoint&, std::uint64_t) {
    return TrafficShaper::Grant{0, std::chrono::milliseconds(5)};
  });
  const std::string piece = numbered(mebi);
  std::size_t sent = 0;
  for (int i = 0; i < 100; ++i) {
    sent += send_some(shaped.tcp.sender, piece);
    wait_for(shaped.tcp.sender, POLLOUT, 2);
  }
  QVERIFY2(sent < 50 * mebi, qPrintable(QString::number(sent)));  // the control below takes all of it
  QVERIFY(read_all(shaped.reader).bytes.empty());
  // Held in one direction only.
  QCOMPARE(send_some(shaped.reader, "answer"), std::size_t{6});
  QVERIFY(read_all(shaped.tcp.sender).bytes == "answer");

  Shaped free([](const Endpoint&, std::uint64_t) { return TrafficShaper::Grant{mebi, {}}; });
  std::thread reader([&] { read_all(free.reader, 500); });
  std::size_t all = 0;
  for (int i = 0; i < 5000 && all < 50 * mebi; ++i) {
    all += send_some(free.tcp.sender, piece);
    wait_for(free.tcp.sender, POLLOUT, 2);
  }
  QVERIFY2(all >= 50 * mebi, qPrintable(QString::number(all)));
  reader.join();
}

// The mark of an urgent byte stays readable until the reads have passed it, which a held connection doesn't do.
void TestTrafficShaper::urgent_bytes_do_not_wake_a_held_connection() {
  Shaped shaped([](const Endpoint&, std::uint64_t) {
    return TrafficShaper::Grant{0, std::chrono::seconds(10)};
  });
  QCOMPARE(send_some(shaped.tcp.sender, "bytes"), std::size_t{5});
  QTest::qWait(50);  // it is held now
  QCOMPARE(send(shaped.tcp.sender, "!", 1, MSG_OOB), ssize_t{1});
  clockid_t of_thread{};
  QCOMPARE(pthread_getcpuclockid(shaped.thread.native_handle(), &of_thread), 0);
  const auto used = [&] {
    timespec time{};
    clock_gettime(of_thread, &time);
    return double(time.tv_sec) + double(time.tv_nsec) / 1e9;
  };
  const double before = used();
  QTest::qWait(300);
  QVERIFY2(used() - before < 0.05, qPrintable(QString::number(used() - before)));
}

void TestTrafficShaper::a_slow_reader_loses_nothing() {
  Shaped shaped([](const Endpoint&, std::uint64_t) { return TrafficShaper::Grant{mebi, {}}; });
  const std::string text = numbered(3 * mebi);
  std::size_t sent = 0;
  std::string got;
  while (got.size() < text.size()) {
    sent += send_some(shaped.tcp.sender, text.substr(sent));
    std::vector<char> piece(50'000);
    const ssize_t some = recv(shaped.reader, piece.data(), piece.size(), MSG_DONTWAIT);
    if (some > 0) got.append(piece.data(), static_cast<std::size_t>(some));
    wait_for(shaped.reader, POLLIN, 1);
  }
  QVERIFY(got == text);
  // The other way, too, with an end: what was written before it arrives.
  std::size_t written = 0;
  got.clear();
  while (got.size() < text.size()) {
    written += send_some(shaped.reader, text.substr(written));
    if (written == text.size() && shaped.reader >= 0) close(std::exchange(shaped.reader, -1));
    std::vector<char> piece(50'000);
    const ssize_t some = recv(shaped.tcp.sender, piece.data(), piece.size(), MSG_DONTWAIT);
    if (some > 0) got.append(piece.data(), static_cast<std::size_t>(some));
    if (some == 0) break;
    wait_for(shaped.tcp.sender, POLLIN, 1);
  }
  QVERIFY(got == text);
}

void TestTrafficShaper::ends_are_passed_on() {
  const auto all = [](const Endpoint&, std::uint64_t) { return TrafficShaper::Grant{mebi, {}}; };
  Shaped shaped(all);
  QCOMPARE(send_some(shaped.tcp.sender, "last words"), std::size_t{10});
  shutdown(shaped.tcp.sender, SHUT_WR);
  const Read read = read_all(shaped.reader);
  QVERIFY(read.bytes == "last words" && read.ended);
  QCOMPARE(send_some(shaped.reader, "an answer"), std::size_t{9});
  close(std::exchange(shaped.reader, -1));
  const Read answer = read_all(shaped.tcp.sender);
  QVERIFY(answer.bytes == "an answer" && answer.ended);
}

void TestTrafficShaper::the_reader_of_a_name_is_known_until_the_end() {
  Shaped shaped([](const Endpoint&, std::uint64_t) { return TrafficShaper::Grant{mebi, {}}; });
  const std::string name = shaped.name();
  QVERIFY(!name.empty());
  QCOMPARE(shaped.shaper->remote_of(name), std::optional(shaped.remote));
  QCOMPARE(shaped.shaper->remote_of(name + "0"), std::optional<Endpoint>());
  close(std::exchange(shaped.reader, -1));
  QTRY_COMPARE(shaped.shaper->remote_of(name), std::optional<Endpoint>());
  QVERIFY(read_all(shaped.tcp.sender).ended);
}

void TestTrafficShaper::an_ended_connection_is_gone_for_both() {
  Shaped shaped([](const Endpoint&, std::uint64_t) {
    return TrafficShaper::Grant{0, std::chrono::seconds(1)};
  });
  QCOMPARE(send_some(shaped.tcp.sender, "never read"), std::size_t{10});
  shaped.shaper->end({IpAddress::v4(203, 0, 113, 9), 4243});
  QVERIFY(!read_all(shaped.reader).ended);
  shaped.shaper->end(shaped.remote);
  QVERIFY(read_all(shaped.reader).ended);
  QVERIFY(read_all(shaped.tcp.sender).ended);
}

NS_TEST(TestTrafficShaper)
#include "test_traffic_shaper.moc"
