#include "core/swarm/public_services.h"

#include "core/dht/messages.h"
#include "core/swarm/messages.h"

namespace neuroshard::swarm {
namespace {

constexpr net::RequestLimits answers{10, 50, 4096, 8};
// A dial costs a handshake: few of them, so that nobody is made to dial for others.
constexpr net::RequestLimits dials{0.1, 3, 4096, 4};
constexpr std::size_t most_dials = 16;
constexpr std::size_t most_peers = 20;
constexpr Duration dial_patience = std::chrono::seconds(4);

}  // namespace

PublicAnswers::PublicAnswers(PublicServices services, bool one_lan, std::uint64_t seed)
    : services_(services),
      one_lan_(one_lan),
      rng_(seed),
      limiter_(answers, one_lan),
      dial_limiter_(dials, one_lan) {}

PublicAnswers::~PublicAnswers() {
  *alive_ = false;
}

void PublicAnswers::fault(const net::Caller& from, net::Fault fault) {
  if (services_.conduct != nullptr) services_.conduct->fault(from, fault);
}

bool PublicAnswers::answer(const net::Caller& from, net::Method method, ByteSpan request,
                           const net::Respond& respond) {
  const auto value = static_cast<std::uint16_t>(method);
  if (value < static_cast<std::uint16_t>(net::Method::Ping) ||
      value > static_cast<std::uint16_t>(net::Method::TrackerPeers))
    return false;
  if (!limiter_.admit(from, services_.clock.monotonic_now())) {
    fault(from, net::Fault::Flood);
    respond(make_error(ErrorCode::Exhausted, "too many requests; wait a second"));
    return true;
  }
  switch (method) {
    case net::Method::Ping:
      if (request.size() > max_ping_bytes)
        respond(make_error(ErrorCode::InvalidArgument, "a ping has at most 64 bytes"));
      else
        respond(Bytes(request.begin(), request.end()));
      return true;
    case net::Method::AddressEcho: respond(dht::encode_endpoint(from.endpoint)); return true;
    case net::Method::Peers: respond(peers(from, request)); return true;
    case net::Method::RelayReserve: respond(reserve(from)); return true;
    case net::Method::DialBack: dial_back(from, request, respond); return true;
    case net::Method::TrackerRegister:
    case net::Method::TrackerHeartbeat:
    case net::Method::TrackerPeers: respond(track(from, method, request)); return true;
    default: return false;
  }
}

Expected<Bytes> PublicAnswers::peers(const net::Caller& from, ByteSpan request) {
  const auto asked = decode_peers_request(request);
  if (!asked.ok()) {
    if (asked.error().code == ErrorCode::Corrupt) fault(from, net::Fault::Malformed);
    return asked.error();
  }
  const std::size_t count = asked->count;
  if (asked->own) {
    NS_RETURN_IF_ERROR(check_own(from, *asked->own));
    if (services_.introduced) services_.introduced(*asked->own);
  }
  std::vector<const net::NodeRecord*> nodes;
  for (const net::NodeRecord* record : services_.book.all(services_.clock.wall_now()))
    if (!record->endpoints.empty() && record->id() != from.id) nodes.push_back(record);
  const std::size_t wanted = std::min({nodes.size(), count, most_peers});
  for (std::size_t i = 0; i < wanted; ++i) std::swap(nodes[i], nodes[i + rng_.below(nodes.size() - i)]);
  nodes.resize(wanted);
  // And this node itself: two that know nobody else know each other then.
  if (services_.own != nullptr && services_.own->sequence > 0 && count > wanted)
    nodes.push_back(services_.own);
  return encode_records(nodes);
}

Expected<void> PublicAnswers::check_own(const net::Caller& from, const net::NodeRecord& record) {
  if (record.id() != from.id) {
    fault(from, net::Fault::OthersRecord);
    return make_error(ErrorCode::Denied, "the record is another node's");
  }
  if (!net::is_signed_by_its_node(record, services_.book.network_id())) {
    fault(from, net::Fault::BadSignature);
    return make_error(ErrorCode::Denied, "the record is not signed by its node");
  }
  return {};
}

Expected<Bytes> PublicAnswers::track(const net::Caller& from, net::Method method, ByteSpan request) {
  if (services_.tracker == nullptr) return make_error(ErrorCode::Unsupported, "this node is not a tracker");
  const WallTime now = services_.clock.wall_now();
  if (method == net::Method::TrackerRegister) {
    const auto record = net::decode_node_record(request);
    if (!record.ok()) {
      if (record.error().code == ErrorCode::Corrupt) fault(from, net::Fault::Malformed);
      return record.error();
    }
    static_cast<void>(check_own(from, *record));  // the tracker says what is wrong
    NS_RETURN_IF_ERROR(services_.tracker->enter(from, *record, now));
    return dht::encode_endpoint(from.endpoint);
  }
  if (method == net::Method::TrackerHeartbeat) {
    NS_RETURN_IF_ERROR(services_.tracker->heartbeat(from, now));
    return Bytes();
  }
  NS_ASSIGN_OR_RETURN(const std::size_t count, decode_count(request));
  return encode_records(services_.tracker->sample(from.id, count, now));
}

Expected<Bytes> PublicAnswers::reserve(const net::Caller& from) {
  if (services_.relay == nullptr || !relaying_)
    return make_error(ErrorCode::Unsupported, "this node does not relay for others");
  NS_ASSIGN_OR_RETURN(const nat::RelayTicket ticket, services_.relay->reserve(from.id, from.endpoint.ip));
  return Bytes(ticket.begin(), ticket.end());
}

// Dials nobody but the caller, at the address that it is seen at and under the id that it has proven.
void PublicAnswers::dial_back(const net::Caller& from, ByteSpan request, const net::Respond& respond) {
  const auto port = decode_port(request);
  if (!port.ok()) {
    fault(from, net::Fault::Malformed);
    return respond(port.error());
  }
  if (!one_lan_ && !platform::globally_routable(from.endpoint.ip))
    return respond(make_error(ErrorCode::Denied, "this node dials back to addresses of the internet only"));
  if (dialling_ >= most_dials || !dial_limiter_.admit(from, services_.clock.monotonic_now()))
    return respond(make_error(ErrorCode::Exhausted, "too many dial-backs; wait ten seconds"));
  ++dialling_;
  services_.transport.connect(
      {{from.endpoint.ip, *port}, from.id}, dial_patience,
      [this, alive = alive_, respond](const Expected<std::shared_ptr<net::PeerChannel>>& channel) {
        if (!*alive) return;
        --dialling_;
        DialBackAnswer answer{channel.ok(), {}};
        if (!channel.ok()) answer.why = channel.error().message;
        respond(encode_dial_back(answer));
      });
}

}  // namespace neuroshard::swarm
