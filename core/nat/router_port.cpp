#include "core/nat/router_port.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/platform/socket/udp_socket.h"

namespace neuroshard::nat {
namespace {

using platform::Endpoint;
using platform::IpAddress;

// A remote address for a look-up in the system's routing table; nothing is sent there.
const Endpoint far_away{IpAddress::v4(1, 1, 1, 1), 53};
constexpr Duration ask_again = std::chrono::minutes(15);
constexpr int most_failures = 3;  // of one protocol in a row, before all are asked

}  // namespace

Expected<IpAddress> local_towards_internet() {
  return platform::source_address_towards(far_away);
}

RouterPort::RouterPort(const Clock& clock, crypto::Entropy& entropy, std::uint16_t port, Ways ways, Told told,
                       const KeeperTimes& times, RouteLookup route)
    : clock_(clock),
      entropy_(entropy),
      port_(port),
      ways_(std::move(ways)),
      told_(std::move(told)),
      times_(times),
      route_(std::move(route)),
      io_{clock_, entropy_, cancel_.token()},
      thread_(make_thread_executor("ns-router", 1)) {
  const bool posted = thread_->post([this] { work(); });
  NS_CHECK(posted);
}

RouterPort::~RouterPort() {
  cancel_.cancel();
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.reset();
}

void RouterPort::open(const IpAddress& seen_at) {
  {
    const std::lock_guard lock(mutex_);
    seen_at_ = seen_at;
    asked_ = true;
  }
  changed_.notify_all();
}

RouterPort::Woken RouterPort::wait_for_work(MonotonicTime until) {
  std::unique_lock lock(mutex_);
  while (!stop_ && !asked_) {
    const MonotonicTime now = clock_.monotonic_now();
    if (now >= until) break;
    if (until == MonotonicTime::max())
      changed_.wait(lock);
    else
      changed_.wait_for(lock, until - now);
  }
  if (stop_) return Woken::Stopped;
  return std::exchange(asked_, false) ? Woken::Asked : Woken::Due;
}

IpAddress RouterPort::last_seen_at() {
  const std::lock_guard lock(mutex_);
  return *seen_at_;
}

void RouterPort::work() {
  MonotonicTime next = MonotonicTime::max();
  Duration pause = ask_again;
  while (wait_for_work(next) != Woken::Stopped) {
    const IpAddress at = last_seen_at();
    RouterNews news;
    if (const auto local = route_.local(); local.ok()) news.local = *local;
    if (const auto gateway = route_.gateway(); gateway.ok()) news.gateway = *gateway;
    news.needed = news.local != at;
    if (news.needed && ask(news)) {
      hold(news, at);
      next = clock_.monotonic_now();  // starts again, soon and often: the router may only restart
      pause = times_.first_retry;
      continue;
    }
    if (news.needed && news.words.empty()) news.words = "no router opened the port";
    told_(std::move(news));
    next = clock_.monotonic_now() + pause;
    pause = std::min(2 * pause, ask_again);
  }
  if (!keeper_) return;
  const Io last{clock_, entropy_, {}};
  (void)keeper_->release(last);  // if the router refuses, the mapping ends with its lease
}

bool RouterPort::ask(RouterNews& news) {
  keeper_.reset();
  mappers_ = ways_(news.gateway);
  for (const auto& mapper : mappers_) {
    keeper_.emplace(*mapper, port_, port_, clock_.monotonic_now(), times_);
    MapperFinding finding;
    finding.name = mapper->name();
    for (const MappingEvent& event : keeper_->step(io_)) {
      if (event.kind == MappingEvent::Kind::Failed) finding.failure = event.failure;
      if (event.kind == MappingEvent::Kind::Mapped) news.words = event.words;
    }
    if (io_.cancel.cancelled()) return false;
    finding.outside = keeper_->outside();
    kept_ = news.mappers.size();
    news.mappers.push_back(std::move(finding));
    if (keeper_->outside()) return true;
    (void)keeper_->release(io_);
    keeper_.reset();
  }
  return false;
}

// While this machine and the router stay where they are. The keeper soon requests a lost mapping again.
void RouterPort::hold(RouterNews& news, IpAddress at) {
  told_(news);
  while (true) {
    const Woken woken = wait_for_work(keeper_->next());
    if (woken == Woken::Stopped) return;
    if (const auto local = route_.local(); local.ok() && news.local != *local) {
      (void)keeper_->release(io_);  // it leads to the former address
      return;
    }
    if (woken == Woken::Asked) {
      if (!keeper_->outside()) return;
      const IpAddress before = std::exchange(at, last_seen_at());
      if (before != at || keeper_->failures() > 0) keeper_->check_now(clock_.monotonic_now());
    }
    const std::vector<MappingEvent> events = keeper_->step(io_);
    if (events.empty()) continue;
    MapperFinding& finding = news.mappers[kept_];
    finding.outside = keeper_->outside();
    const MappingEvent& last = events.back();
    finding.failure = last.failure;
    news.words = last.words;
    told_(news);
    if (finding.outside) continue;
    const auto gateway = route_.gateway();
    if (!gateway.ok() || news.gateway != *gateway) return;  // another network
    if (keeper_->failures() >= most_failures) return;
  }
}

}  // namespace neuroshard::nat
