// A long line between two network namespaces, where the kernel has no netem: every packet that one side sends
// comes out at the other one after the delay, in order. Two TUN devices and nothing else, so that what runs
// over it has the real TCP of the system, with the windows and the losses that such a line has.
//   delay_wire join NS_A ADDRESS_A NS_B ADDRESS_B DELAY_MS JITTER_MS   e.g. a 10.9.0.1/24 b 10.9.0.2/24 50 0
//     until standard input ends; then one line about what passed
//   delay_wire serve PORT            answers what measure asks
//   delay_wire measure IP PORT SECONDS   round trips of one byte and the rate of one stream, as JSON
// The wire holds at most queue_bytes in each direction (the rate times the delay: 50 ms at 5 Gbit/s); what is
// beyond that is lost, as at a router.
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "core/base/rng.h"

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::nanoseconds;

constexpr int mtu = 9000;
constexpr std::size_t queue_bytes = 32u << 20;
constexpr int packets_at_once = 64;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "delay_wire: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

void run(const std::string& command) {
  if (std::system(command.c_str()) != 0) fail(command);
}

// A TUN device in that namespace, with its address, up. This process stays there.
int open_end(const std::string& ns, const std::string& address) {
  const int space = open(("/run/netns/" + ns).c_str(), O_RDONLY | O_CLOEXEC);
  if (space < 0 || setns(space, CLONE_NEWNET) != 0) fail("namespace " + ns);
  close(space);
  const int end = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ifreq request{};
  std::strcpy(request.ifr_name, "wire%d");  // a namespace may have several
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  if (end < 0 || ioctl(end, TUNSETIFF, &request) != 0) fail("TUN device in " + ns);
  const std::string name = request.ifr_name;
  run("ip link set " + name + " mtu " + std::to_string(mtu) + " txqueuelen 10000 up && ip addr add " +
      address + " dev " + name);
  return end;
}

struct Counts {
  std::uint64_t packets = 0, bytes = 0, lost = 0;
  std::size_t most_bytes = 0;
  nanoseconds latest{0};  // the longest that a packet came out after its time
};

class Direction {
 public:
  Direction(int from, int to, nanoseconds delay, nanoseconds jitter)
      : from_(from), to_(to), delay_(delay), jitter_(jitter) {}

  // Reads the received packets, some at a time.
  void take() {
    for (int i = 0; i < packets_at_once; ++i) {
      const ssize_t size = read(from_, buffer_, sizeof buffer_);
      if (size <= 0) return;
      const auto count = static_cast<std::size_t>(size);
      if (held_ + count > queue_bytes) {
        ++counts.lost;
        continue;
      }
      auto due = Clock::now() + delay_;
      if (jitter_.count() > 0)
        due += nanoseconds(random_.below(2 * static_cast<std::uint64_t>(jitter_.count()))) - jitter_;
      last_ = std::max(last_, due);  // never before the one ahead
      waiting_.push_back({last_, std::vector<char>(buffer_, buffer_ + count)});
      held_ += count;
      counts.most_bytes = std::max(counts.most_bytes, held_);
    }
  }
  // Sends the packets that are due.
  void give() {
    for (auto now = Clock::now(); !waiting_.empty() && waiting_.front().due <= now; waiting_.pop_front()) {
      const Packet& packet = waiting_.front();
      counts.latest = std::max<nanoseconds>(counts.latest, now - packet.due);
      if (write(to_, packet.bytes.data(), packet.bytes.size()) < 0) ++counts.lost;
      ++counts.packets;
      counts.bytes += packet.bytes.size();
      held_ -= packet.bytes.size();
    }
  }
  Clock::time_point next() const {
    return waiting_.empty() ? Clock::time_point::max() : waiting_.front().due;
  }
  int from() const { return from_; }

  Counts counts;

 private:
  struct Packet {
    Clock::time_point due;
    std::vector<char> bytes;
  };
  const int from_, to_;
  const nanoseconds delay_, jitter_;
  std::deque<Packet> waiting_;
  std::size_t held_ = 0;
  Clock::time_point last_{};
  neuroshard::Rng random_{7};
  char buffer_[mtu + 100];
};

int join(char** words) {
  const auto milliseconds = [](const char* text) {
    return nanoseconds(static_cast<std::int64_t>(std::atof(text) * 1e6));
  };
  const int a = open_end(words[0], words[1]), b = open_end(words[2], words[3]);
  Direction there(a, b, milliseconds(words[4]), milliseconds(words[5]));
  Direction back(b, a, milliseconds(words[4]), milliseconds(words[5]));
  std::printf("ready\n");
  std::fflush(stdout);
  while (true) {
    pollfd waits[3] = {{there.from(), POLLIN, 0}, {back.from(), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
    const auto next = std::min(there.next(), back.next());
    timespec limit{1, 0};
    if (next != Clock::time_point::max()) {
      const auto left = std::clamp<nanoseconds>(next - Clock::now(), nanoseconds(0), std::chrono::seconds(1));
      limit = {left.count() / 1'000'000'000, left.count() % 1'000'000'000};
    }
    ppoll(waits, 3, &limit, nullptr);
    char ignored[64];
    if (waits[2].revents != 0 && read(STDIN_FILENO, ignored, sizeof ignored) <= 0) break;
    for (Direction* direction : {&there, &back}) {
      direction->take();
      direction->give();
    }
  }
  for (const Direction* direction : {&there, &back})
    std::printf(
        "{\"packets\":%llu,\"bytes\":%llu,\"lost\":%llu,\"most_bytes\":%zu,\"latest_us\":%lld}\n",
        static_cast<unsigned long long>(direction->counts.packets),
        static_cast<unsigned long long>(direction->counts.bytes),
        static_cast<unsigned long long>(direction->counts.lost), direction->counts.most_bytes,
        static_cast<long long>(std::chrono::duration_cast<microseconds>(direction->counts.latest).count()));
  return 0;
}

// ---- what is measured over it: 'p' and a byte is sent back at once; 's' begins a stream that is only read

int serve(int port) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<std::uint16_t>(port));
  if (bind(listener, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0 || listen(listener, 8) != 0)
    fail("listen");
  std::printf("ready\n");
  std::fflush(stdout);
  std::vector<char> buffer(1 << 20);
  while (true) {
    const int peer = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (peer < 0) continue;
    setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    char kind = 0;
    if (read(peer, &kind, 1) != 1) kind = 0;
    if (kind == 'p') {
      char byte = 0;
      while (read(peer, &byte, 1) == 1 && write(peer, &byte, 1) == 1) {
      }
    }
    std::uint64_t sum = 0;
    while (kind == 's') {
      const ssize_t count = read(peer, buffer.data(), buffer.size());
      if (count <= 0) break;
      sum += static_cast<std::uint64_t>(count);
    }
    if (kind == 's' && write(peer, &sum, sizeof sum) < 0) fail("answer");
    close(peer);
  }
}

int dial(const char* ip, int port, char kind) {
  const int peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  inet_pton(AF_INET, ip, &to.sin_addr);
  if (connect(peer, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0 || write(peer, &kind, 1) != 1)
    fail("dial");
  return peer;
}

int measure(const char* ip, int port, double seconds) {
  std::vector<double> trips;  // microseconds
  const int pings = dial(ip, port, 'p');
  const auto length = std::chrono::duration<double>(seconds);
  char byte = 'x';
  for (const auto began = Clock::now(); Clock::now() - began < length || trips.size() < 5;) {
    const auto sent = Clock::now();
    if (write(pings, &byte, 1) != 1 || read(pings, &byte, 1) != 1) fail("ping");
    trips.push_back(std::chrono::duration<double, std::micro>(Clock::now() - sent).count());
  }
  close(pings);
  const int stream = dial(ip, port, 's');
  const std::vector<char> buffer(1 << 20, 'x');
  const auto began = Clock::now();
  while (Clock::now() - began < length)
    if (write(stream, buffer.data(), buffer.size()) < 0) fail("stream");
  shutdown(stream, SHUT_WR);
  std::uint64_t sum = 0;  // with what was under way at the end
  if (read(stream, &sum, sizeof sum) != sizeof sum) fail("the sum of the stream");
  const double took = std::chrono::duration<double>(Clock::now() - began).count();
  std::sort(trips.begin(), trips.end());
  std::printf(
      "{\"round_trips\":%zu,\"least_us\":%.1f,\"median_us\":%.1f,\"p99_us\":%.1f,\"bytes_per_second\":%.0f}"
      "\n",
      trips.size(), trips.front(), trips[trips.size() / 2], trips[trips.size() * 99 / 100],
      static_cast<double>(sum) / took);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "join" && argc == 8) return join(argv + 2);
  if (mode == "serve" && argc == 3) return serve(std::atoi(argv[2]));
  if (mode == "measure" && argc == 5) return measure(argv[2], std::atoi(argv[3]), std::atof(argv[4]));
  std::fprintf(stderr, "usage: see the head of tests/support/delay_wire.cpp\n");
  return 64;
}
