#include "core/swarm/reach_keeper.h"

#include <fmt/format.h>

namespace neuroshard::swarm {
namespace {

using nat::Dialled;
using platform::Endpoint;

// An open port mostly stays open; its owner may open a closed one.
constexpr Duration retest_pause = std::chrono::minutes(10);
constexpr Duration pause_after_miss = std::chrono::seconds(15);
constexpr int most_misses = 2;  // one may be the asked node's own problem

}  // namespace

ReachKeeper::ReachKeeper(std::uint16_t port, const Clock& clock, Events events)
    : port_(port), clock_(clock), events_(std::move(events)) {
  if (port == 0) why_not_ = "this node does not listen";
}

void ReachKeeper::seen(const Endpoint& at) {
  const bool moved = !seen_at_ || seen_at_->ip != at.ip;
  seen_at_ = at;
  if (!moved) return;
  ++round_;
  trying_ = false;
  due_ = true;
  direct_ = mapped_ = Dialled::NotTried;
  events_.seen(at.ip);
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
  ++round_;
  trying_ = false;
  due_ = true;
  mapped_ = Dialled::NotTried;
  if (!now && advertised_ && advertised_ == before) {
    advertised_.reset();
    why_not_ = "the router took the port back";
    events_.changed();
  }
}

// A mapping at another address than the one that others see: there is another router in front.
std::optional<Endpoint> ReachKeeper::mapping() const {
  for (const nat::MapperFinding& finding : router_.mappers)
    if (finding.outside && seen_at_ && finding.outside->ip == seen_at_->ip) return finding.outside;
  return std::nullopt;
}

bool ReachKeeper::due() const {
  return port_ != 0 && seen_at_ && !trying_ && (due_ || clock_.monotonic_now() >= next_);
}

void ReachKeeper::verify(const Ask& ask, const std::function<void()>& done) {
  if (port_ == 0 || !seen_at_ || trying_) return done();
  trying_ = true;
  due_ = false;
  std::vector<Way> ways;
  const auto mapped = mapping();
  if (mapped) ways.push_back({mapped->port, true});
  if (!mapped || mapped->port != port_) ways.push_back({port_, false});
  try_ways(ask, std::move(ways), done);
}

void ReachKeeper::try_ways(const Ask& ask, std::vector<Way> ways, std::function<void()> done) {
  const Way way = ways.front();
  ask(way.port, [this, life = lifetime_.token(), round = round_, ask, ways = std::move(ways), way,
                 done = std::move(done)](const Expected<DialBackAnswer>& answer) mutable {
    if (!life.alive()) return;
    if (round != round_) return done();
    Dialled& dialled = way.mapped ? mapped_ : direct_;
    if (answer.ok()) dialled = answer->reached ? Dialled::Reached : Dialled::NotReached;
    if (answer.ok() && answer->reached) {
      finish(Endpoint{seen_at_->ip, way.port}, true);
      return done();
    }
    why_not_ = answer.ok() ? fmt::format("port {} is not reached from outside: {}", way.port, answer->why)
                           : answer.error().message;
    ways.erase(ways.begin());
    if (!ways.empty()) return try_ways(ask, std::move(ways), std::move(done));
    finish(std::nullopt, answer.ok());
    done();
  });
}

void ReachKeeper::finish(std::optional<Endpoint> reached, bool certain) {
  trying_ = false;
  next_ = clock_.monotonic_now() + (reached || tested_ ? retest_pause : pause_after_miss);
  if (certain) {
    tested_ = true;
    tested_at_ = clock_.wall_now();
  }
  if (reached) {
    misses_ = 0;
    why_not_.clear();
  } else if (advertised_ && (!certain || ++misses_ < most_misses)) {
    next_ = clock_.monotonic_now() + pause_after_miss;  // still advertised
    return;
  }
  if (reached == advertised_) return;
  advertised_ = reached;
  events_.changed();
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
