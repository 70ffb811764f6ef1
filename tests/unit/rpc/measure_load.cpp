#include "tests/unit/rpc/measure_load.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <thread>

#include "core/net/limited_transport.h"
#include "core/rpc/detail/grpc_process.h"
#include "tests/unit/rpc/measure_nodes.h"

namespace neuroshard::testing {
namespace {

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) { return double(time.tv_sec) + double(time.tv_usec) / 1e6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double resident_mib() {
  long pages = 0, resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
  if (file != nullptr) std::fclose(file);
  return double(resident) * double(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

// Another process, so that what it costs is not counted. It gets a port, works, says "ready" and stays until
// the pipe to it is closed.
class Other {
 public:
  explicit Other(const std::function<void(std::uint16_t port)>& work) {
    if (::pipe(to_.data()) != 0 || ::pipe(from_.data()) != 0) std::abort();
    child_ = ::fork();
    if (child_ != 0) {
      ::close(to_[0]);
      ::close(from_[1]);
      return;
    }
    ::close(to_[1]);
    ::close(from_[0]);
    std::uint16_t port = 0;
    if (::read(to_[0], &port, sizeof port) != sizeof port) std::_Exit(1);
    work(port);
    std::_Exit(0);
  }
  ~Other() {
    ::close(to_[1]);
    ::waitpid(child_, nullptr, 0);
  }
  void begin(std::uint16_t port) const {
    if (::write(to_[1], &port, sizeof port) != sizeof port) std::abort();
  }
  // In the other process.
  void ready() const {
    if (::write(from_[1], "r", 1) != 1) std::_Exit(1);
  }
  void stay() const {
    char end = 0;
    while (::read(to_[0], &end, 1) > 0) {
    }
  }
  bool wait_until_ready() const {
    char said = 0;
    return ::read(from_[0], &said, 1) == 1;
  }

 private:
  std::array<int, 2> to_{}, from_{};
  pid_t child_ = -1;
};

void pass(Nodes& nodes, int seconds) {
  std::promise<void> over;
  const auto timer = nodes.a_executor->post_after(std::chrono::seconds(seconds), [&] { over.set_value(); });
  over.get_future().wait();
  Nodes::run(*nodes.a_executor, [] {});
}

sockaddr_in loopback(std::uint32_t last, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(0x7f000001u + last);
  address.sin_port = htons(port);
  return address;
}

const sockaddr* plain(const sockaddr_in& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

// Silent ones, ones that begin a TLS record, and garbage, of many addresses; those that are closed are made
// again.
void flood(const Other& self, std::uint16_t port, int number) {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  std::vector<int> sockets;
  for (int i = 0; i < number; ++i) {
    const int descriptor = ::socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in from = loopback(1 + static_cast<std::uint32_t>(i % 2000), 0), to = loopback(0, port);
    if (descriptor < 0 || ::bind(descriptor, plain(from), sizeof from) != 0 ||
        ::connect(descriptor, plain(to), sizeof to) != 0) {
      fmt::print("connection {} was not made: {}\n", i, std::strerror(errno));
      break;
    }
    if (i % 3 == 0) static_cast<void>(::send(descriptor, "\x16\x03\x01\x02\x00", 5, MSG_NOSIGNAL));
    const std::array<char, 64> garbage{'g'};
    if (i % 3 == 1) static_cast<void>(::send(descriptor, garbage.data(), garbage.size(), MSG_NOSIGNAL));
    sockets.push_back(descriptor);
    if (i + 1 == number / 2) self.ready();
  }
  self.ready();
  self.stay();
}

}  // namespace

double tcp_seconds(std::size_t pieces) {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = loopback(0, 0);
  socklen_t size = sizeof address;
  if (::bind(listener, plain(address), size) != 0 || ::listen(listener, 1) != 0 ||
      ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    std::abort();
  std::thread reader([listener] {
    const int descriptor = ::accept(listener, nullptr, nullptr);
    Bytes buffer(net::chunk_bytes);
    while (::recv(descriptor, buffer.data(), buffer.size(), 0) > 0) {
    }
    ::close(descriptor);
  });
  const int descriptor = ::socket(AF_INET, SOCK_STREAM, 0);
  if (::connect(descriptor, plain(address), sizeof address) != 0) std::abort();
  const SystemClock clock;
  const MonotonicTime began = clock.monotonic_now();
  for (std::size_t i = 0; i < pieces; ++i) {
    const Bytes piece(net::chunk_bytes, 'x');  // made anew, as on the other paths
    for (std::size_t at = 0; at < piece.size();) {
      const ssize_t sent = ::send(descriptor, piece.data() + at, piece.size() - at, MSG_NOSIGNAL);
      if (sent <= 0) std::abort();
      at += static_cast<std::size_t>(sent);
    }
  }
  ::close(descriptor);
  reader.join();
  ::close(listener);
  return to_seconds(clock.monotonic_now() - began);
}

int measure_idle(int peers, int seconds) {
  const Other others([&](std::uint16_t port) {
    rpc::detail::prepare_grpc();
    const SystemClock clock;
    net::BanList bans{clock};
    net::RefusalCounts refusals;
    const auto executor = make_thread_executor("others", 4096);
    std::vector<crypto::KeyPair> keys;
    std::vector<std::unique_ptr<rpc::GrpcTransport>> transports;
    std::vector<std::shared_ptr<net::PeerChannel>> channels;
    for (int i = 0; i < peers; ++i) {
      Hash256 seed{};
      store_le(seed.data(), 1000 + i);
      keys.push_back(crypto::KeyPair::from_seed(seed));
    }
    for (int i = 0; i < peers; ++i) {
      std::promise<bool> done;
      Nodes::run(*executor, [&] {
        transports.push_back(rpc::make_grpc_transport(
                                 {keys[static_cast<std::size_t>(i)], *executor, clock, bans, refusals}, {})
                                 .value());
        transports.back()->connect({{platform::IpAddress::v4(127, 0, 0, 1), port}, std::nullopt},
                                   std::chrono::seconds(30), [&](auto channel) {
                                     done.set_value(channel.ok());
                                     if (channel.ok()) channels.push_back(std::move(*channel));
                                   });
      });
      if (!done.get_future().get()) fmt::print("peer {} did not connect\n", i);
    }
    others.ready();
    others.stay();
  });
  rpc::detail::prepare_grpc();
  Nodes nodes;
  for (int i = 0; i < 50; ++i) nodes.echo();
  pass(nodes, 2);
  const double memory = resident_mib(), cpu = cpu_seconds();
  pass(nodes, seconds);
  const double alone = (cpu_seconds() - cpu) / seconds;
  others.begin(nodes.b->endpoint().port);
  if (!others.wait_until_ready()) return 1;
  pass(nodes, 5);
  const double with_peers = resident_mib(), from = cpu_seconds();
  pass(nodes, seconds);
  const double busy = (cpu_seconds() - from) / seconds;
  fmt::print(
      "{} open peers that say nothing, {} s: {} connections; {:.1f} MiB more ({:.0f} KiB each); processor "
      "{:.2f} % of one core, {:.2f} % without them\n",
      peers, seconds, nodes.b->open_connections(), with_peers - memory, (with_peers - memory) * 1024 / peers,
      100 * busy, 100 * alone);
  return 0;
}

int measure_connections(int number) {
  const Other hostile([&](std::uint16_t port) { flood(hostile, port, number); });
  rpc::detail::prepare_grpc();
  Nodes nodes;
  for (int i = 0; i < 200; ++i) nodes.echo();
  const auto quiet = microseconds(2, [&] { nodes.echo(); });
  const double memory = resident_mib();
  hostile.begin(nodes.b->endpoint().port);
  std::size_t most_open = 0;
  double most_memory = memory;
  std::vector<double> times;
  std::atomic<bool> done{false};
  std::thread waits([&] {
    static_cast<void>(hostile.wait_until_ready());
    static_cast<void>(hostile.wait_until_ready());
    done = true;
  });
  const SystemClock clock;
  const MonotonicTime began = clock.monotonic_now();
  int new_ones = 0, failed = 0, unanswered = 0;
  for (int i = 0; !done || i < 100; ++i) {
    const MonotonicTime asked = clock.monotonic_now();
    unanswered += nodes.echo() ? 0 : 1;
    times.push_back(to_seconds(clock.monotonic_now() - asked) * 1e6);
    most_open = std::max(most_open, nodes.b->open_connections());
    most_memory = std::max(most_memory, resident_mib());
    if (i % 500 != 0) continue;
    // And one who comes meanwhile.
    (nodes.can_connect() ? new_ones : failed) += 1;
  }
  const double took = to_seconds(clock.monotonic_now() - began);
  waits.join();
  std::sort(times.begin(), times.end());
  fmt::print(
      "{} hostile connections in {:.1f} s: at most {} open at a time; {:.1f} MiB more at the most; an honest "
      "peer's call p50 {:.0f} us, p99 {:.0f}, longest {:.0f} ms ({:.0f} us p50 before), {} calls, {} "
      "failed; new "
      "peers {} of {} came in; refused: not TLS {}, too many {}, of one address {}, too slow {}\n",
      number, took, most_open, most_memory - memory, at(times, 0.5), at(times, 0.99), times.back() / 1e3,
      at(quiet, 0.5), times.size(), unanswered, new_ones, new_ones + failed,
      nodes.refusals.of(net::Refusal::NotTls), nodes.refusals.of(net::Refusal::TooManyConnections),
      nodes.refusals.of(net::Refusal::TooManyOfAddress), nodes.refusals.of(net::Refusal::TooSlow));
  return 0;
}

int measure_limit(int bytes_per_second) {
  rpc::detail::prepare_grpc();
  Nodes nodes;
  NullLogger logger;
  net::TrafficMeter meter(nodes.clock, logger, {static_cast<std::uint64_t>(bytes_per_second), 0}, nullptr);
  std::unique_ptr<net::LimitedTransport> limited;
  const auto free_channel = nodes.channel;
  std::promise<void> connected;
  Nodes::run(*nodes.a_executor, [&] {
    limited = std::make_unique<net::LimitedTransport>(*nodes.a, *nodes.a_executor, meter);
    limited->connect({nodes.b->endpoint(), crypto::node_id(nodes.key_b.public_key())}, net::connect_deadline,
                     [&](auto channel) {
                       nodes.channel = channel.value();
                       connected.set_value();
                     });
  });
  connected.get_future().wait();
  constexpr int seconds = 20;
  const auto pieces = static_cast<std::size_t>(double(bytes_per_second) * seconds / double(net::chunk_bytes));
  const double took = nodes.bulk(pieces);
  const double wire = double(pieces) * double(net::wire_bytes(net::chunk_bytes)) / took;
  fmt::print("limit of {} bytes a second: {:.0f} kept over {:.1f} s, {:+.1f} %\n", bytes_per_second, wire,
             took, 100 * (wire / bytes_per_second - 1));
  Nodes::run(*nodes.a_executor, [&] {
    nodes.channel = free_channel;
    limited.reset();
  });
  return 0;
}

}  // namespace neuroshard::testing
