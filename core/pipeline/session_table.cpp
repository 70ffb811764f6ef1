#include "core/pipeline/session_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace neuroshard::pipeline {
namespace {

constexpr Duration sweep_interval = std::chrono::seconds(1);
constexpr Duration first_refusal = std::chrono::seconds(30), longest_refusal = std::chrono::hours(24);
constexpr Duration refusal_remembered = std::chrono::hours(1);  // after its end
constexpr std::size_t most_refused = 1024;                      // drivers
// Sessions of a driver, and drivers, that the table remembers.
constexpr std::size_t most_ended = 256, most_ended_drivers = 1024;

Error refusal(ErrorCode code, std::string text) {
  return make_error(code, std::move(text));
}

}  // namespace

SessionTable::SessionTable(const Surroundings& surroundings, TableOptions options)
    : around_(surroundings), options_(std::move(options)) {
  sweep_timer_ = around_.executor.post_after(sweep_interval, [this] { sweep(); });
}

SessionTable::~SessionTable() {
  closing_.clear();
  sessions_.clear();
  earlier_.clear();
}

void SessionTable::serve(SessionKind kind, SessionRules rules) {
  rules_[kind] = std::move(rules);
}

void SessionTable::withdraw(SessionKind kind) {
  refuse_all(kind, refusal(ErrorCode::Unavailable, "this stage is closed"));
  std::erase_if(closing_, [&](const auto& session) { return session->route().kind == kind; });
  rules_.erase(kind);
}

void SessionTable::take(const net::NodeId& from, std::shared_ptr<net::PeerStream> stream) {
  make_place_for_stream();
  const EarlierPtr earlier =
      earlier_.insert(earlier_.end(), Earlier{from, nullptr, nullptr, around_.clock.monotonic_now()});
  FrameStream::Events events;
  events.admit = [this, earlier](ByteSpan header) { return admit(*earlier, header); };
  events.received = [this, earlier](const Bytes& header, Bytes payload) {
    received(earlier, header, std::move(payload));
  };
  events.ended = [this, earlier](const Error&) { ended(earlier); };
  earlier->frames = std::make_unique<FrameStream>(std::move(stream), around_.executor, around_.clock,
                                                  around_.times, encode_message(Alive{}), std::move(events));
}

// The oldest one of the sender that has most gives its place up: a few senders must not keep the others out.
void SessionTable::make_place_for_stream() {
  std::map<net::NodeId, std::size_t> of_sender;
  std::size_t newcomers = 0;
  for (const Earlier& earlier : earlier_) {
    if (earlier.session != nullptr) continue;
    ++newcomers;
    ++of_sender[earlier.from];
  }
  if (newcomers < options_.newcomers) return;
  EarlierPtr oldest = earlier_.end();
  for (EarlierPtr at = earlier_.begin(); at != earlier_.end(); ++at) {
    if (at->session != nullptr) continue;
    if (oldest == earlier_.end() || of_sender[at->from] > of_sender[oldest->from]) oldest = at;
  }
  drop(oldest, refusal(ErrorCode::Exhausted,
                       "this stage has no place for more streams that name no session; try later"));
}

void SessionTable::drop(EarlierPtr earlier, Error reason) {
  earlier->frames->break_off(std::move(reason));
  earlier_.erase(earlier);
}

Expected<std::size_t> SessionTable::admit(const Earlier& earlier, ByteSpan header) const {
  const auto message = decode_message(header);
  if (!message.ok()) return message.error();
  if (const auto* follow = std::get_if<Follow>(&*message)) {
    if (auto admitted = admit_route(earlier, follow->route); !admitted.ok()) return admitted.error();
    return std::size_t{0};
  }
  if (std::holds_alternative<Alive>(*message)) return std::size_t{0};
  if (earlier.session == nullptr)
    return refusal(ErrorCode::InvalidArgument,
                   "the first message of a stream names the route of its session");
  return earlier.session->admit(*message);
}

// The signature comes last: it is the only expensive check.
Expected<void> SessionTable::admit_route(const Earlier& earlier, const Route& route) const {
  NS_RETURN_IF_ERROR(check_route(route, around_.shape));
  if (!rules_.contains(route.kind))
    return refusal(ErrorCode::Unsupported, "this stage serves another kind of session");
  if (const auto paused = paused_.find(route.kind); paused != paused_.end()) return paused->second;
  const auto position = route.position_of(around_.own);
  if (!position) return refusal(ErrorCode::InvalidArgument, "the route does not name this node");
  const StageRange& asked = route.hops[*position].range;
  if (!(asked == options_.range))
    return refusal(ErrorCode::Unavailable,
                   fmt::format("this node does not hold that: it holds {}, and was asked for {}",
                               to_text(options_.range), to_text(asked)));
  const net::NodeId before = *position == 0 ? crypto::node_id(route.driver) : route.hops[*position - 1].node;
  if (before != earlier.from)
    return refusal(ErrorCode::Denied, "another node is before this one on the route");
  const auto found = sessions_.find(route.session);
  if (earlier.session != nullptr && (found == sessions_.end() || found->second.get() != earlier.session))
    return refusal(ErrorCode::InvalidArgument, "a stream belongs to one session");
  if (found != sessions_.end() && found->second->route() == route) return {};
  NS_RETURN_IF_ERROR(found == sessions_.end() ? admit_new(route) : admit_change(*found->second, route));
  if (!signature_holds(route, options_.network))
    return refusal(ErrorCode::Denied, "the driver's signature of the route does not hold");
  return {};
}

Expected<void> SessionTable::admit_new(const Route& route) const {
  if (has_ended(route)) return refusal(ErrorCode::Denied, "this session is over");
  const auto refused = refused_.find(route.driver);
  if (refused != refused_.end() && around_.clock.monotonic_now() < refused->second.until)
    return refusal(ErrorCode::Denied, "earlier sessions of this driver held the stage up; try later");
  const SessionRules& rules = rules_.at(route.kind);
  if (rules.admit) NS_RETURN_IF_ERROR(rules.admit(route));
  if (const auto room = room_for(route); !room.ok()) return room.error();
  return {};
}

Expected<std::vector<SessionId>> SessionTable::room_for(const Route& route) const {
  const SessionRules& rules = rules_.at(route.kind);
  const MonotonicTime now = around_.clock.monotonic_now();
  std::vector<const HopSession*> idle;
  std::uint64_t bytes = rules.bytes_of(route);
  std::size_t sessions = 0, of_driver = 0;
  for (const auto& [id, session] : sessions_) {
    if (session->route().kind != route.kind) continue;
    ++sessions;
    bytes += rules.bytes_of(session->route());
    if (session->route().driver == route.driver) ++of_driver;
    if (!session->has_unfinished() && now - session->last_work() > options_.place_without_work)
      idle.push_back(session.get());
  }
  std::sort(idle.begin(), idle.end(),
            [](const auto* one, const auto* other) { return one->last_work() < other->last_work(); });
  std::vector<SessionId> ending;
  const auto end_idle = [&](bool of_all, const auto& is_enough) {
    for (auto at = idle.begin(); at != idle.end() && !is_enough();) {
      const Route& one = (*at)->route();
      const bool same_driver = one.driver == route.driver;
      if (!of_all && !same_driver) {
        ++at;
        continue;
      }
      --sessions;
      bytes -= rules.bytes_of(one);
      if (same_driver) --of_driver;
      ending.push_back(one.session);
      at = idle.erase(at);
    }
    return is_enough();
  };
  if (!end_idle(false, [&] { return of_driver < rules.limits.of_one_driver; }))
    return refusal(ErrorCode::Exhausted, "this driver has too many sessions at this stage");
  if (!end_idle(true, [&] { return sessions < rules.limits.sessions && bytes <= rules.limits.bytes; }))
    return refusal(ErrorCode::Exhausted, "this stage has no place for another session");
  return ending;
}

// The route is admitted, so there is room.
void SessionTable::make_room(const Route& route) {
  const auto ending = room_for(route);
  if (!ending.ok()) return;
  for (const SessionId& id : *ending)
    refuse(id, refusal(ErrorCode::Cancelled,
                       "another session has the place of this one, which had no work for a minute"));
}

Expected<void> SessionTable::admit_change(HopSession& session, const Route& route) const {
  const Route& now = session.route();
  if (now.driver != route.driver) return refusal(ErrorCode::Denied, "the session belongs to another driver");
  if (now.kind != route.kind) return refusal(ErrorCode::InvalidArgument, "a session keeps its kind");
  if (route.revision <= now.revision)
    return refusal(ErrorCode::InvalidArgument, "the route was replaced by a newer one");
  if (route.sequences != now.sequences || route.length != now.length || route.window != now.window ||
      route.wire != now.wire || route.positions != now.positions || route.scores != now.scores)
    return refusal(ErrorCode::InvalidArgument, "a session keeps its sizes");
  const auto same_range = [](const RouteHop& one, const RouteHop& other) { return one.range == other.range; };
  if (!std::equal(route.hops.begin(), route.hops.end(), now.hops.begin(), now.hops.end(), same_range))
    return refusal(ErrorCode::InvalidArgument, "a session keeps the ranges of its hops");
  if (session.is_crowded())
    return refusal(ErrorCode::Exhausted, "a hop of the session does not take what it is sent");
  if (!session.may_change_route())
    return refusal(ErrorCode::Exhausted, "the route of this session changes too often");
  return {};
}

void SessionTable::received(EarlierPtr earlier, ByteSpan header, Bytes payload) {
  const Message message = decode_message(header).value();  // admitted
  if (const auto* route = std::get_if<Follow>(&message)) return follow(earlier, route->route);
  if (const auto* work = std::get_if<Work>(&message)) {
    const SessionId id = earlier->session->route().session;
    earlier->session->note_work();
    if (auto taken = earlier->session->work(*work, std::move(payload)); !taken.ok())
      refuse(id, taken.error());
  } else if (const auto* close = std::get_if<Close>(&message)) {
    earlier->session->close(close->finished_below);
    remove(earlier->session->route().session);
  }
}

void SessionTable::follow(EarlierPtr earlier, const Route& route) {
  if (!sessions_.contains(route.session)) make_room(route);
  auto& session = sessions_[route.session];
  if (session == nullptr)
    session = rules_.at(route.kind).make(route, *route.position_of(around_.own));
  else if (!(session->route() == route))
    session->follow(route);
  if (earlier->session == session.get()) return;
  // The stream of the hop that was replaced, or that connected anew.
  if (const EarlierPtr other = stream_of(session.get()); other != earlier_.end())
    drop(other, refusal(ErrorCode::Cancelled, "another stream took the place of this one"));
  earlier->session = session.get();
  session->attach(earlier->frames.get());
}

void SessionTable::ended(EarlierPtr earlier) {
  HopSession* const session = earlier->session;
  earlier_.erase(earlier);
  if (session == nullptr) return;
  session->attach(nullptr);
  if (session->position() != 0) return;
  // The driver is gone.
  session->close(0);
  remove(session->route().session);
}

SessionTable::EarlierPtr SessionTable::stream_of(const HopSession* session) {
  return std::find_if(earlier_.begin(), earlier_.end(),
                      [&](const Earlier& earlier) { return earlier.session == session; });
}

HopSession* SessionTable::find(SessionKind kind, const SessionId& id) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end() || found->second->route().kind != kind) return nullptr;
  return found->second.get();
}

void SessionTable::refuse(const SessionId& id, const Error& reason) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  if (const EarlierPtr earlier = stream_of(found->second.get()); earlier != earlier_.end()) {
    found->second->attach(nullptr);
    drop(earlier, reason);
  }
  remember(found->second->route());
  const auto gone = std::move(found->second);  // it may look for itself while it ends
  sessions_.erase(found);
}

void SessionTable::refuse_driver(const SessionId& id, const Error& reason) {
  if (const auto found = sessions_.find(id); found != sessions_.end()) {
    if (refused_.size() >= most_refused) refused_.clear();
    Refused& refused = refused_[found->second->route().driver];
    const MonotonicTime now = around_.clock.monotonic_now();
    if (now - refused.until > refusal_remembered) refused.length = {};
    refused.length = std::clamp<Duration>(2 * refused.length, first_refusal, longest_refusal);
    refused.until = now + refused.length;
  }
  refuse(id, reason);
}

void SessionTable::refuse_all(SessionKind kind, const Error& reason) {
  std::vector<SessionId> all;
  for (const auto& [id, session] : sessions_)
    if (session->route().kind == kind) all.push_back(id);
  for (const SessionId& id : all) refuse(id, reason);
}

void SessionTable::review(const std::function<Expected<void>(const net::NodeId&)>& admit) {
  std::vector<std::pair<SessionId, Error>> gone;
  for (const auto& [id, session] : sessions_) {
    const Route& route = session->route();
    Expected<void> admitted = admit(crypto::node_id(route.driver));
    if (admitted.ok() && session->position() > 0) admitted = admit(route.hops[session->position() - 1].node);
    if (!admitted.ok()) gone.emplace_back(id, admitted.error());
  }
  for (const auto& [id, reason] : gone) refuse(id, reason);
}

std::size_t SessionTable::size(SessionKind kind) const {
  return static_cast<std::size_t>(std::count_if(sessions_.begin(), sessions_.end(), [&](const auto& entry) {
    return entry.second->route().kind == kind;
  }));
}

void SessionTable::remove(const SessionId& id) {
  const auto found = sessions_.find(id);
  if (const EarlierPtr earlier = stream_of(found->second.get()); earlier != earlier_.end()) {
    found->second->attach(nullptr);
    earlier_.erase(earlier);
  }
  remember(found->second->route());
  closing_.push_back(std::move(found->second));
  sessions_.erase(found);
}

void SessionTable::remember(const Route& route) {
  const std::pair of{route.kind, route.driver};
  if (ended_.size() >= most_ended_drivers && !ended_.contains(of)) ended_.clear();
  std::deque<Ended>& ended = ended_[of];
  std::erase_if(ended, [&](const Ended& one) { return one.session == route.session; });
  if (ended.size() >= most_ended) ended.pop_front();
  ended.push_back({route.session, route.revision});
}

bool SessionTable::has_ended(const Route& route) const {
  const auto found = ended_.find({route.kind, route.driver});
  if (found == ended_.end()) return false;
  return std::any_of(found->second.begin(), found->second.end(), [&](const Ended& one) {
    return one.session == route.session && one.revision >= route.revision;
  });
}

void SessionTable::sweep() {
  const MonotonicTime now = around_.clock.monotonic_now();
  std::erase_if(closing_, [&](const auto& session) { return now - session->detached_at() > sweep_interval; });
  for (auto at = earlier_.begin(); at != earlier_.end();) {
    const EarlierPtr one = at++;
    if (one->session == nullptr && now - one->since > options_.newcomer_patience)
      drop(one, refusal(ErrorCode::Timeout, "the stream names no session, and another may need its place"));
  }
  std::vector<SessionId> missing;
  for (const auto& [id, session] : sessions_)
    if (!session->attached() && now - session->detached_at() > options_.earlier_hop_missing)
      missing.push_back(id);
  for (const SessionId& id : missing) {
    sessions_[id]->close(0);
    remove(id);
  }
  sweep_timer_ = around_.executor.post_after(sweep_interval, [this] { sweep(); });
}

void SessionTable::pause(SessionKind kind, const Error& reason) {
  paused_.insert_or_assign(kind, reason);
  refuse_all(kind, reason);
}

}  // namespace neuroshard::pipeline
