#include "core/swarm/reach_keeper.h"

#include <fmt/format.h>

#include <algorithm>

namespace neuroshard::swarm {
namespace {

using nat::Dialled;
using platform::Endpoint;

// An open port mostly stays open; its owner may open a closed one.
constexpr Duration retest_pause = std::chrono::minutes(10);
constexpr Duration pause_after_miss = std::chrono::seconds(15);
constexpr int most_misses = 2;  // one may be the asked node's own problem
constexpr std::size_t wanted_observers = 3;

}  // namespace

ReachKeeper::ReachKeeper(std::uint16_t port, const Clock& clock, Events events)
    : port_(port), clock_(clock), events_(std::move(events)) {
  if (port == 0) why_not_ = "this node does not listen";
}

void ReachKeeper::seen(Observer observer, const Endpoint& at) {
  seen_by_[observer] = at;
  choose_address();
}

void ReachKeeper::gone(Observer observer) {
  seen_by_.erase(observer);
  asked_.erase(observer);
  tried_by_.erase(observer);
  choose_address();
}

// The address that most observers see; of two with as many, the present one.
void ReachKeeper::choose_address() {
  const auto votes = [this](const platform::IpAddress& ip) {
    return std::count_if(seen_by_.begin(), seen_by_.end(),
                         [&](const auto& by) { return by.second.ip == ip; });
  };
  std::optional<Endpoint> chosen = seen_at_;
  for (const auto& [observer, at] : seen_by_)
    if (!chosen || (at.ip != chosen->ip && votes(at.ip) > votes(chosen->ip))) chosen = at;
  if (!chosen || (seen_at_ && seen_at_->ip == chosen->ip)) return;
  seen_at_ = chosen;
  forget_tries();
  direct_ = mapped_ = Dialled::NotTried;
  events_.seen(chosen->ip);
  if (!advertised_) return;
  advertised_.reset();
  why_not_ = "the address changed; it is tried again";
  events_.changed();
}

void ReachKeeper::router_says(nat::RouterNews news) {
  const auto before = mapping();
  router_ = std::move(news);
  const auto now = mapping();
  if (before == now) return;
  forget_tries();
  mapped_ = Dialled::NotTried;
  if (!now && advertised_ && advertised_ == before) {
    advertised_.reset();
    why_not_ = "the router does not hold the port open any more";
    events_.changed();
  }
}

void ReachKeeper::forget_tries() {
  ++round_;
  trying_ = false;
  due_ = true;
  misses_ = 0;
  asked_.clear();
  tried_by_.clear();
}

// A mapping at another address than the one that others see: there is another router in front.
std::optional<Endpoint> ReachKeeper::mapping() const {
  for (const nat::MapperFinding& finding : router_.mappers)
    if (finding.outside && seen_at_ && finding.outside->ip == seen_at_->ip) return finding.outside;
  return std::nullopt;
}

// An observer that sees this node at another address would dial that one.
bool ReachKeeper::due(Observer observer) const {
  const auto sees = seen_by_.find(observer);
  if (port_ == 0 || trying_ || sees == seen_by_.end() || sees->second.ip != seen_at_->ip) return false;
  const bool another = tried_by_.size() < wanted_observers && asked_.count(observer) == 0;
  return due_ || another || clock_.monotonic_now() >= next_;
}

void ReachKeeper::verify(Observer observer, const Ask& ask, const std::function<void()>& done) {
  const auto sees = seen_by_.find(observer);
  if (port_ == 0 || trying_ || sees == seen_by_.end() || sees->second.ip != seen_at_->ip) return done();
  trying_ = true;
  due_ = false;
  asked_.insert(observer);
  std::vector<Way> ways;
  const auto mapped = mapping();
  if (mapped) ways.push_back({mapped->port, true});
  if (!mapped || mapped->port != port_) ways.push_back({port_, false});
  try_ways(observer, ask, std::move(ways), done);
}

void ReachKeeper::try_ways(Observer observer, const Ask& ask, std::vector<Way> ways,
                           std::function<void()> done) {
  const Way way = ways.front();
  ask(way.port, [this, life = lifetime_.token(), round = round_, observer, ask, ways = std::move(ways), way,
                 done = std::move(done)](const Expected<DialBackAnswer>& answer) mutable {
    if (!life.alive()) return;
    if (round != round_) return done();
    if (answer.ok() && answer->reached) {
      finish(observer, Endpoint{seen_at_->ip, way.port}, true);
      return done();
    }
    why_not_ = answer.ok() ? fmt::format("port {} is not reached from outside: {}", way.port, answer->why)
                           : answer.error().message;
    ways.erase(ways.begin());
    if (!ways.empty()) return try_ways(observer, ask, std::move(ways), std::move(done));
    finish(observer, std::nullopt, answer.ok());
    done();
  });
}

// Where most observers reached this node; nowhere: more of them did not. The other side of a failed dial may
// be the cause, so half of them are enough.
std::optional<Endpoint> ReachKeeper::reached_by_most() const {
  std::map<std::uint16_t, std::size_t> ports;
  std::size_t reached = 0;
  for (const auto& [observer, at] : tried_by_)
    if (at) ++reached, ++ports[at->port];
  if (reached == 0 || 2 * reached < tried_by_.size()) return std::nullopt;
  const auto most = std::max_element(ports.begin(), ports.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return Endpoint{seen_at_->ip, most->first};
}

// It agrees with what is advertised. The mapped port is dialled first: an observer that reached this node
// there has not dialled the other one.
Dialled ReachKeeper::dialled(const Way& way) const {
  if (advertised_ && advertised_->port == way.port) return Dialled::Reached;
  const auto in_vain = std::count_if(tried_by_.begin(), tried_by_.end(), [&](const auto& by) {
    return !by.second || (way.mapped && by.second->port != way.port);
  });
  const bool most = 2 * static_cast<std::size_t>(in_vain) > tried_by_.size();
  return most ? Dialled::NotReached : Dialled::NotTried;
}

void ReachKeeper::finish(Observer observer, std::optional<Endpoint> reached, bool certain) {
  trying_ = false;
  const bool missed = !reached && advertised_;
  next_ = clock_.monotonic_now() + (!missed && (reached || tested_) ? retest_pause : pause_after_miss);
  if (certain) {
    tested_ = true;
    tested_at_ = clock_.wall_now();
    if (seen_by_.count(observer) != 0) tried_by_[observer] = reached;
  }
  reached = reached_by_most();
  if (reached) {
    if (!missed) misses_ = 0;
    why_not_.clear();
  } else if (advertised_ && (!certain || ++misses_ < most_misses)) {
    reached = advertised_;  // as yet
  }
  const bool changed = reached != advertised_;
  advertised_ = reached;
  direct_ = dialled({port_, false});
  const auto mapped = mapping();
  mapped_ = mapped ? dialled({mapped->port, true}) : Dialled::NotTried;
  if (changed) events_.changed();
}

nat::ReachabilityVerdict ReachKeeper::verdict(const nat::MappingFinding& nat) const {
  nat::ReachabilityFindings findings;
  findings.port = port_;
  findings.local = router_.local;
  if (!findings.local && seen_at_)
    findings.local = seen_at_->ip;  // the router was not asked, because it is not needed
  findings.gateway = router_.gateway;
  findings.seen_by_peers = seen_at_;
  findings.udp_asked = false;
  findings.stun_asked = nat.mapping != nat::Mapping::NoAnswer;
  findings.tcp = nat;
  findings.mappers = router_.mappers;
  const auto mapped = mapping();
  for (nat::MapperFinding& finding : findings.mappers)
    if (finding.outside && finding.outside == mapped) finding.dialled = mapped_;
  const bool same_port = mapped && mapped->port == port_;
  if (seen_at_ && !same_port) {
    findings.direct = Endpoint{seen_at_->ip, port_};
    findings.direct_dialled = direct_;
  }
  return judge(findings);
}

}  // namespace neuroshard::swarm
