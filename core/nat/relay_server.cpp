#include "core/nat/relay_server.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/crypto/hmac.h"
#include "core/nat/stun_message.h"

namespace neuroshard::nat {
namespace {

using platform::SocketWait;
using platform::TcpListener;
using platform::TcpSocket;

constexpr std::size_t max_control_backlog = 16 << 10;  // invitations that a callee has not read yet
constexpr Duration deaf_time = std::chrono::milliseconds(100);
constexpr Duration longest_used_up_pause = std::chrono::hours(1);
constexpr std::string_view no_data_left = "503 This relay has no data left for others";

Error full(const char* what) {
  return make_error(ErrorCode::Exhausted, fmt::format("this relay has no place left for {}", what));
}

bool same_group(const platform::IpAddress& one, const platform::IpAddress& other) {
  if (!platform::globally_routable(one) || !platform::globally_routable(other)) return one == other;
  return platform::prefix_group(one) == platform::prefix_group(other);
}

}  // namespace

Expected<std::unique_ptr<RelayServer>> RelayServer::open(const platform::Endpoint& local,
                                                         const RelayLimits& limits, const Clock& clock,
                                                         crypto::Entropy& entropy) {
  NS_ASSIGN_OR_RETURN(TcpListener listener, TcpListener::open(local));
  return std::unique_ptr<RelayServer>(new RelayServer(std::move(listener), limits, clock, entropy));
}

std::unique_ptr<RelayServer> RelayServer::make(const RelayLimits& limits, const Clock& clock,
                                               crypto::Entropy& entropy) {
  return std::unique_ptr<RelayServer>(new RelayServer(TcpListener(), limits, clock, entropy));
}

void RelayServer::adopt(TcpSocket socket, const platform::Endpoint& from) {
  const std::lock_guard lock(mutex_);
  admit(std::move(socket), from, clock_.monotonic_now());
}

RelayTicket RelayServer::new_ticket() {
  RelayTicket ticket{};
  entropy_.fill(ticket);
  return ticket;
}

Expected<RelayTicket> RelayServer::reserve(const Hash256& callee, const platform::IpAddress& from) {
  const std::lock_guard lock(mutex_);
  const MonotonicTime now = clock_.monotonic_now();
  if (now < used_up_until_)
    return make_error(ErrorCode::Exhausted, "this relay has no data left for others; try another one");
  expire_reservations(now);
  drop_reservation(callee);
  const std::uint64_t prefix = platform::prefix_group(from);
  if (reservations_.size() >= limits_.reservations) return full("another reservation");
  const auto same = std::count_if(reservations_.begin(), reservations_.end(),
                                  [&](const auto& entry) { return entry.second.prefix == prefix; });
  if (static_cast<std::size_t>(same) >= limits_.reservations_per_prefix)
    return full("another reservation from this part of the network");
  const RelayTicket ticket = new_ticket();
  reservations_[callee] =
      Reservation{ticket, prefix, now + limits_.reservation_time, now + limits_.join_time, 0};
  return ticket;
}

void RelayServer::cancel(const Hash256& callee) {
  const std::lock_guard lock(mutex_);
  drop_reservation(callee);
}

void RelayServer::drop_reservation(const Hash256& callee) {
  const auto found = reservations_.find(callee);
  if (found == reservations_.end()) return;
  const auto control = clients_.find(found->second.control);
  reservations_.erase(found);
  if (control != clients_.end()) forget(control);
}

RelayCounters RelayServer::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

std::size_t RelayServer::connections() const {
  const std::lock_guard lock(mutex_);
  return open_connections();
}

std::size_t RelayServer::reservations() const {
  const std::lock_guard lock(mutex_);
  return reservations_.size();
}

std::size_t RelayServer::joined() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(std::count_if(reservations_.begin(), reservations_.end(),
                                                [](const auto& entry) { return entry.second.control != 0; }));
}

bool RelayServer::used_up() const {
  const std::lock_guard lock(mutex_);
  return clock_.monotonic_now() < used_up_until_;
}

void RelayServer::set_pace(RelayPace pace) {
  const std::lock_guard lock(mutex_);
  pace_ = std::move(pace);
  paused_until_ = used_up_until_ = {};
  used_up_pause_ = {};
}

MonotonicTime RelayServer::next(MonotonicTime until) const {
  if (clock_.monotonic_now() < paused_until_) until = std::min(until, paused_until_);
  for (const auto& [id, client] : clients_) {
    until = std::min(until, client.deadline);
    if (client.stage == Stage::Control) until = std::min(until, client.ping);
  }
  for (const Session& session : sessions_) until = std::min(until, session.splice.next());
  return until;
}

Expected<void> RelayServer::step(Duration limit, int wake) {
  const MonotonicTime before = clock_.monotonic_now();
  std::unique_lock lock(mutex_);
  std::vector<SocketWait> waits;
  std::vector<std::uint64_t> ids;
  waits.reserve(2 + clients_.size() + 2 * sessions_.size());
  waits.push_back({before < deaf_until_ ? -1 : listener_.descriptor(), true, false, false});
  for (const auto& [id, client] : clients_) {
    ids.push_back(id);
    waits.push_back({client.socket.descriptor(), client.stage != Stage::Calling, !client.out.empty(), false});
  }
  const bool paused = before < paused_until_;
  for (const Session& session : sessions_) {
    if (paused)
      waits.insert(waits.end(), 2, SocketWait{});
    else
      session.splice.append_waits(waits);
  }
  waits.push_back({wake, true, false, false});
  const Duration longest = next(before + limit) - before;
  lock.unlock();
  // A reservation may end meanwhile, and its connection with it: events of that descriptor are then ignored,
  // because its client is gone.
  NS_RETURN_IF_ERROR(platform::wait_for(waits, longest));
  lock.lock();

  const MonotonicTime now = clock_.monotonic_now();
  // The sessions of this wait, before clients add new ones.
  step_sessions(Span<const SocketWait>(waits).subspan(1 + ids.size(), waits.size() - 2 - ids.size()), now);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto client = clients_.find(ids[i]);
    if (client == clients_.end()) continue;  // joined to another, or replaced
    if (!serve(client->first, client->second, waits[1 + i], now)) forget(client);
  }
  if (waits[0].read) accept(now);
  expire_reservations(now);
  return {};
}

void RelayServer::accept(MonotonicTime now) {
  constexpr int at_once = 64;
  for (int i = 0; i < at_once; ++i) {
    auto accepted = listener_.accept();
    if (!accepted.ok()) {
      deaf_until_ = now + deaf_time;
      return;
    }
    if (!accepted->has_value()) return;
    admit(std::move((*accepted)->socket), (*accepted)->from, now);
  }
}

void RelayServer::admit(TcpSocket socket, const platform::Endpoint& from, MonotonicTime now) {
  const std::uint64_t prefix = platform::prefix_group(from.ip);
  std::size_t& open = open_by_prefix_[prefix];
  if (open_connections() >= limits_.connections || open >= limits_.connections_per_prefix) {
    ++counters_.over_limit;
    if (open == 0) open_by_prefix_.erase(prefix);
    return;
  }
  ++open;
  ++counters_.accepted;
  Client client;
  client.socket = std::move(socket);
  client.from = from;
  client.deadline = now + limits_.head_time;
  clients_.emplace(++last_id_, std::move(client));
}

bool RelayServer::read(Client& client) {
  std::array<std::uint8_t, max_head_bytes> buffer;
  const std::size_t room = max_head_bytes - client.in.size();
  const auto count = client.socket.read_some(MutableByteSpan(buffer.data(), room));
  if (!count.ok()) return false;
  client.in.insert(client.in.end(), buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(*count));
  return true;
}

bool RelayServer::serve(std::uint64_t id, Client& client, const SocketWait& wait, MonotonicTime now) {
  if (wait.write) {
    const auto written = client.socket.write_some(client.out);
    if (!written.ok()) return false;
    client.out.erase(client.out.begin(), client.out.begin() + static_cast<std::ptrdiff_t>(*written));
  }
  if (client.stage == Stage::Calling) {
    if (wait.over) return false;
  } else if (wait.read) {
    if (!read(client) || client.stage == Stage::Echoed) return false;
    if (!(client.stage == Stage::Head ? head(id, client, now) : control(client, now))) return false;
  }
  return keep_time(client, now);
}

bool RelayServer::keep_time(Client& client, MonotonicTime now) {
  if (client.stage == Stage::Control && now >= client.ping) {
    constexpr std::string_view ping = "PING\r\n";
    if (client.out.size() <= max_control_backlog)
      client.out.insert(client.out.end(), ping.begin(), ping.end());
    client.ping = now + limits_.ping_interval;
  }
  if (now < client.deadline) return true;
  if (client.stage == Stage::Head) ++counters_.slow_heads;
  if (client.stage == Stage::Calling) {
    ++counters_.unanswered;
    return refuse(client, "504 The node did not answer");
  }
  return false;
}

bool RelayServer::refuse(Client& client, std::string_view status) {
  // One small packet into an empty buffer. A client whose buffer is full does not get the reason.
  (void)client.socket.write_some(as_bytes(fmt::format("HTTP/1.1 {}\r\nContent-Length: 0\r\n\r\n", status)));
  client.socket.shut_down_writing();
  return false;
}

// One request and its answer; the connection then keeps the client's mapping until the client closes it.
bool RelayServer::echo(Client& client, MonotonicTime now) {
  if (client.in.size() < stun::header_bytes) return true;
  const auto size = stun::message_size(client.in);
  if (size.ok() && client.in.size() < *size) return true;
  const auto request = size.ok() ? stun::Message::parse(ByteSpan(client.in).subspan(0, *size))
                                 : Expected<stun::Message>(size.error());
  if (!request.ok() || request->message_class() != stun::Class::Request ||
      request->method() != stun::Method::Binding) {
    ++counters_.bad_heads;
    return false;
  }
  stun::MessageWriter answer(stun::Class::Success, stun::Method::Binding, request->transaction());
  answer.add_xor_address(stun::Attribute::XorMappedAddress, client.from).add_fingerprint();
  client.out = answer.bytes();
  client.in.clear();
  client.stage = Stage::Echoed;
  client.deadline = now + limits_.echo_time;
  ++counters_.bindings;
  return true;
}

bool RelayServer::head(std::uint64_t id, Client& client, MonotonicTime now) {
  if (!client.in.empty() && client.in.front() == 0) return echo(client, now);  // no HTTP begins so
  const auto request = parse_request_head(client.in);
  if (!request.ok()) {
    ++counters_.bad_heads;
    return refuse(client, "400 Bad request");
  }
  if (!request->has_value()) return true;
  const std::string method((*request)->method), target((*request)->target);
  client.in.erase(client.in.begin(), client.in.begin() + static_cast<std::ptrdiff_t>((*request)->size));
  if ((method == "CONNECT" || method == "JOIN") && now < used_up_until_) return refuse(client, no_data_left);
  if (method == "CONNECT") return connect(client, target, now);
  if (method == "JOIN") return join(id, client, target, now);
  if (method == "ACCEPT") return accept_call(client, target, now);
  ++counters_.bad_heads;
  return refuse(client, "405 Only CONNECT is served here");
}

bool RelayServer::connect(Client& client, std::string_view target, MonotonicTime now) {
  const auto callee = callee_in_target(target);
  if (!callee.ok()) {
    ++counters_.bad_heads;
    return refuse(client, "400 The target is not the id of a node");
  }
  const auto found = reservations_.find(*callee);
  const auto control = found == reservations_.end() ? clients_.end() : clients_.find(found->second.control);
  if (control == clients_.end()) {
    ++counters_.unknown_callees;
    return refuse(client, "404 This node is not reachable here");
  }
  const Calls calls = calls_of(*callee, client.from.ip);
  if (calls.all >= limits_.sessions_per_callee || calls.of_group >= limits_.sessions_per_callee_and_group ||
      control->second.out.size() > max_control_backlog)
    return refuse(client, "503 This node has too many calls");
  client.stage = Stage::Calling;
  client.callee = *callee;
  client.session = new_ticket();
  client.deadline = now + limits_.accept_time;
  const std::string invitation = format_invitation(client.session, client.from);
  control->second.out.insert(control->second.out.end(), invitation.begin(), invitation.end());
  return true;
}

bool RelayServer::join(std::uint64_t id, Client& client, std::string_view target, MonotonicTime now) {
  const auto ticket = parse_relay_ticket(target);
  const auto found = std::find_if(reservations_.begin(), reservations_.end(), [&](const auto& entry) {
    return ticket.ok() && crypto::equal_in_constant_time(entry.second.ticket, *ticket);
  });
  if (found == reservations_.end()) {
    ++counters_.bad_tickets;
    return refuse(client, "403 There is no such reservation");
  }
  const auto former = clients_.find(found->second.control);
  if (former != clients_.end()) forget(former);
  found->second.control = id;
  client.stage = Stage::Control;
  client.callee = found->first;
  client.ping = now + limits_.ping_interval;
  client.deadline = now + 3 * limits_.ping_interval;
  constexpr std::string_view welcome = "HTTP/1.1 200 Joined\r\n\r\n";
  client.out.assign(welcome.begin(), welcome.end());
  return true;
}

bool RelayServer::accept_call(Client& client, std::string_view target, MonotonicTime now) {
  const auto session = parse_relay_ticket(target);
  const auto caller = std::find_if(clients_.begin(), clients_.end(), [&](const auto& entry) {
    return session.ok() && entry.second.stage == Stage::Calling &&
           crypto::equal_in_constant_time(entry.second.session, *session);
  });
  if (caller == clients_.end()) {
    ++counters_.bad_tickets;
    return refuse(client, "404 Nobody calls any more");
  }
  constexpr std::string_view joined = "HTTP/1.1 200 Connected\r\n\r\n";
  for (Client* side : {&caller->second, &client}) {
    const auto written = side->socket.write_some(as_bytes(joined));
    if (!written.ok() || *written != joined.size())
      return false;  // the caller's failure shows at its own turn
  }
  ++counters_.sessions;
  sessions_.push_back({Splice(std::move(caller->second.socket), std::move(client.socket), limits_.session,
                              now, caller->second.in, client.in),
                       caller->second.callee, caller->second.from.ip});
  release_prefix(platform::prefix_group(client.from.ip));
  clients_.erase(caller);  // its place belongs to the session now
  client.stage = Stage::Spliced;
  return false;
}

bool RelayServer::control(Client& client, MonotonicTime now) {
  while (true) {
    const auto line = parse_control_line(client.in);
    if (!line.ok()) return false;
    if (!line->has_value()) return true;
    if ((*line)->kind != ControlLine::Kind::Pong) return false;
    client.in.erase(client.in.begin(), client.in.begin() + static_cast<std::ptrdiff_t>((*line)->size));
    client.deadline = now + 3 * limits_.ping_interval;
  }
}

void RelayServer::forget(Clients::iterator client) {
  if (client->second.stage != Stage::Spliced) release_prefix(platform::prefix_group(client->second.from.ip));
  if (client->second.stage == Stage::Control) {
    const auto found = reservations_.find(client->second.callee);
    if (found != reservations_.end() && found->second.control == client->first) {
      found->second.control = 0;
      found->second.join_until = clock_.monotonic_now() + limits_.join_time;
    }
  }
  clients_.erase(client);
}

// Not kept as a number: calls outlast the reservation under which they began, and count under the next one.
RelayServer::Calls RelayServer::calls_of(const Hash256& callee, const platform::IpAddress& caller) const {
  Calls calls;
  const auto count = [&](const Hash256& of, const platform::IpAddress& from) {
    if (of != callee) return;
    ++calls.all;
    calls.of_group += same_group(from, caller) ? 1 : 0;
  };
  for (const auto& [id, client] : clients_)
    if (client.stage == Stage::Calling) count(client.callee, client.from.ip);
  for (const Session& session : sessions_) count(session.callee, session.caller);
  return calls;
}

void RelayServer::release_prefix(std::uint64_t prefix) {
  const auto found = open_by_prefix_.find(prefix);
  NS_CHECK(found != open_by_prefix_.end() && found->second > 0);
  if (--found->second == 0) open_by_prefix_.erase(found);
}

// A pause ends the round; the sessions that had no turn begin the next one.
void RelayServer::step_sessions(Span<const SocketWait> waits, MonotonicTime now) {
  constexpr std::array<SocketWait, 2> nothing{};
  std::size_t first = 0;
  for (std::size_t i = 0; i < sessions_.size(); ++i) {
    const bool paused = now < paused_until_;
    Splice& splice = sessions_[i].splice;
    const std::uint64_t before = splice.bytes();
    (void)splice.step(paused ? Span<const SocketWait>(nothing) : waits.subspan(2 * i, 2), now);
    const std::uint64_t passed = splice.bytes() - before;
    counters_.bytes += passed;
    if (!pace_ || passed == 0) continue;
    const auto pause = pace_(passed);
    if (!pause.ok()) return stop_relaying(now);
    used_up_pause_ = {};
    if (*pause <= Duration(0)) continue;
    paused_until_ = now + *pause;
    first = i + 1;
    for (Session& session : sessions_) session.splice.pause(*pause);
  }
  std::rotate(sessions_.begin(), sessions_.begin() + static_cast<std::ptrdiff_t>(first), sessions_.end());
  std::erase_if(sessions_, [this](const Session& session) {
    const bool over = *session.splice.why_over() != '\0';
    if (over) release_prefix(platform::prefix_group(session.caller));
    return over;
  });
}

// The callees go to another relay, and the callers hear the reason.
void RelayServer::stop_relaying(MonotonicTime now) {
  used_up_pause_ = used_up_pause_ == Duration{}
                       ? limits_.used_up_time
                       : std::min(2 * used_up_pause_, std::max(longest_used_up_pause, limits_.used_up_time));
  used_up_until_ = now + used_up_pause_;
  for (const Session& session : sessions_) release_prefix(platform::prefix_group(session.caller));
  sessions_.clear();
  for (auto entry = clients_.begin(); entry != clients_.end();) {
    const auto client = entry++;
    const Stage stage = client->second.stage;
    if (stage == Stage::Calling) (void)refuse(client->second, no_data_left);
    if (stage == Stage::Calling || stage == Stage::Control) forget(client);
  }
  reservations_.clear();
}

void RelayServer::expire_reservations(MonotonicTime now) {
  for (auto entry = reservations_.begin(); entry != reservations_.end();) {
    const Hash256 callee = entry->first;
    const bool alone = entry->second.control == 0;
    const bool over = now >= entry->second.until || (alone && now >= entry->second.join_until);
    ++entry;
    if (over) drop_reservation(callee);
  }
}

}  // namespace neuroshard::nat
