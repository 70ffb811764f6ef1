#include "core/swarm/public_services.h"

#include "core/dht/messages.h"
#include "core/net/dial_gate.h"
#include "core/swarm/messages.h"

namespace neuroshard::swarm {
namespace {

// A dial costs a handshake. The limit keeps callers from making this node dial for them.
constexpr net::RequestLimits dials{0.1, 3, 4096, 4};
constexpr std::size_t most_dials = 16;
constexpr std::size_t most_peers = 20;
constexpr Duration dial_patience = std::chrono::seconds(4);

}  // namespace

PublicAnswers::PublicAnswers(PublicServices services, net::MethodTable& methods,
                             const std::shared_ptr<net::RequestLimiter>& calls, bool one_lan,
                             std::uint64_t seed)
    : services_(services), one_lan_(one_lan), rng_(seed), dial_limiter_(dials, one_lan, seed) {
  using net::Caller;
  using net::Method;
  using net::Reply;
  const auto add = [&](const std::vector<Method>& which, net::MethodLimits limits,
                       net::MethodTable::Handler handler) {
    methods_.push_back(methods.add(which, std::move(limits), std::move(handler)));
  };
  const net::MethodLimits usual(calls, max_public_request), empty(calls, 0);
  add({Method::Ping}, net::MethodLimits(calls, max_ping_bytes),
      [](const Caller&, Method, ByteSpan request, const Reply& reply) {
        reply(Bytes(request.begin(), request.end()));
      });
  add({Method::AddressEcho}, empty, [](const Caller& from, Method, ByteSpan, const Reply& reply) {
    reply(dht::encode_endpoint(from.endpoint));
  });
  add({Method::Peers}, usual, [this](const Caller& from, Method, ByteSpan request, const Reply& reply) {
    reply(peers(from, request));
  });
  add({Method::RelayReserve}, empty,
      [this](const Caller& from, Method, ByteSpan, const Reply& reply) { reply(reserve(from)); });
  net::MethodLimits dial(calls, sizeof(std::uint16_t));
  dial.admit = [one_lan](const Caller& from) -> Expected<void> {
    if (one_lan || platform::globally_routable(from.endpoint.ip)) return {};
    return make_error(ErrorCode::Denied, "this node dials back to public addresses only");
  };
  add({Method::DialBack}, dial, [this](const Caller& from, Method, ByteSpan request, const Reply& reply) {
    dial_back(from, request, reply);
  });
  add({Method::TrackerRegister, Method::TrackerHeartbeat, Method::TrackerPeers}, usual,
      [this](const Caller& from, Method method, ByteSpan request, const Reply& reply) {
        reply(track(from, method, request));
      });
}

net::Answer PublicAnswers::peers(const net::Caller& from, ByteSpan request) {
  const auto asked = decode_peers_request(request);
  if (!asked.ok()) {
    if (asked.error().code == ErrorCode::Corrupt) return {asked.error(), net::Fault::Malformed};
    return asked.error();
  }
  const std::size_t count = asked->count;
  if (asked->own) {
    net::Answer checked = check_own(from, *asked->own);
    if (!checked.with.ok()) return checked;
    if (services_.introduced) services_.introduced(from, *asked->own);
  }
  std::vector<const net::NodeRecord*> nodes;
  const WallTime now = services_.clock.wall_now();
  const net::NodeRecord* const callers = services_.book.find(from.id, now);
  for (const net::NodeRecord* record : services_.book.proven(now))
    if (record != callers) nodes.push_back(record);
  nodes = net::spread(std::move(nodes), std::min(count, most_peers), rng_);
  // And this node itself: two nodes that know nobody else then know each other.
  if (services_.own != nullptr && services_.own->sequence > 0 && count > nodes.size())
    nodes.push_back(services_.own);
  return encode_records(nodes);
}

// An error, with its fault; or no bytes.
net::Answer PublicAnswers::check_own(const net::Caller& from, const net::NodeRecord& record) const {
  if (record.id() != from.id)
    return {make_error(ErrorCode::Denied, "the record is another node's"), net::Fault::OthersRecord};
  if (!net::is_signed_by_its_node(record, services_.book.network_id()))
    return {make_error(ErrorCode::Denied, "the record is not signed by its node"), net::Fault::BadSignature};
  return Bytes();
}

net::Answer PublicAnswers::register_at_tracker(const net::Caller& from, ByteSpan request) {
  const auto record = net::decode_node_record(request);
  if (!record.ok()) {
    if (record.error().code == ErrorCode::Corrupt) return {record.error(), net::Fault::Malformed};
    return record.error();
  }
  const auto entered = services_.tracker->enter(from, *record, services_.clock.wall_now());
  net::Answer answer =
      entered.ok() ? net::Answer(dht::encode_endpoint(from.endpoint)) : net::Answer(entered.error());
  answer.fault = check_own(from, *record).fault;  // the tracker's error says what is wrong
  return answer;
}

net::Answer PublicAnswers::track(const net::Caller& from, net::Method method, ByteSpan request) {
  if (services_.tracker == nullptr) return make_error(ErrorCode::Unsupported, "this node is not a tracker");
  if (method == net::Method::TrackerRegister) return register_at_tracker(from, request);
  const WallTime now = services_.clock.wall_now();
  if (method == net::Method::TrackerHeartbeat) {
    const auto heard = services_.tracker->heartbeat(from, now);
    return heard.ok() ? net::Answer(Bytes()) : net::Answer(heard.error());
  }
  const auto count = decode_count(request);
  if (!count.ok()) return count.error();
  return encode_records(services_.tracker->sample(from.id, *count, now));
}

Expected<Bytes> PublicAnswers::reserve(const net::Caller& from) {
  if (services_.relay == nullptr || !relaying_)
    return make_error(ErrorCode::Unsupported, "this node does not relay for others");
  NS_ASSIGN_OR_RETURN(const nat::RelayTicket ticket, services_.relay->reserve(from.id, from.endpoint.ip));
  return Bytes(ticket.begin(), ticket.end());
}

// Dials nobody but the caller, at the address at which the caller is seen and under the id that it has
// proven.
void PublicAnswers::dial_back(const net::Caller& from, ByteSpan request, const net::Reply& reply) {
  const auto port = decode_port(request);
  if (!port.ok()) return reply({port.error(), net::Fault::Malformed});
  if (!one_lan_ && *port < net::least_public_port)
    return reply(make_error(ErrorCode::Denied, "this node dials back to ports from 1024 on only"));
  if (dialling_ >= most_dials || !dial_limiter_.admit(from, services_.clock.monotonic_now()))
    return reply(make_error(ErrorCode::Exhausted, "too many dial-backs; wait ten seconds"));
  ++dialling_;
  services_.transport.connect(
      {{from.endpoint.ip, *port}, from.id}, dial_patience,
      [this, life = lifetime_.token(), reply](const Expected<std::shared_ptr<net::PeerChannel>>& channel) {
        if (!life.alive()) return;
        --dialling_;
        DialBackAnswer answer{channel.ok(), {}};
        if (!channel.ok()) answer.why = channel.error().message;
        reply(encode_dial_back(answer));
      });
}

}  // namespace neuroshard::swarm
