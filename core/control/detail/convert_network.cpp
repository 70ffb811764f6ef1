#include "core/base/utf8.h"
#include "core/control/detail/convert.h"
#include "core/control/detail/convert_parts.h"
#include "core/node/network_view.h"

namespace neuroshard::control::detail {
namespace {

void encode_lists(const node::NetworkView& from, wire::Network* to) {
  for (const node::SourceEntry& source : from.sources) {
    wire::NetworkFirstPeer* sent = to->add_source();
    sent->set_address(valid_utf8(source.address));
    sent->set_kind(source.kind);
    sent->set_connected(source.connected);
    sent->set_state(valid_utf8(source.state));
  }
  for (const node::PeerEntry& peer : from.peers) {
    wire::NetworkPeer* sent = to->add_peer();
    sent->set_id(peer.id);
    sent->set_address(valid_utf8(peer.address));
    sent->set_way(peer.way);
    sent->set_connected(peer.connected);
    if (peer.round_trip) sent->set_round_trip(*peer.round_trip);
    sent->set_version(valid_utf8(peer.version));
    sent->set_memory_bytes(peer.memory_bytes);
    sent->set_tokens_per_second(peer.tokens_per_second);
    sent->set_bytes_in(peer.bytes_in);
    sent->set_bytes_out(peer.bytes_out);
    sent->set_problem(valid_utf8(peer.problem));
    sent->set_upload(peer.upload);
    sent->set_download(peer.download);
  }
  for (const node::BanEntry& ban : from.bans) {
    wire::NetworkBan* sent = to->add_ban();
    sent->set_id(ban.id);
    sent->set_until(to_unix_ms(ban.until));
    sent->set_reason(valid_utf8(ban.reason));
  }
  for (const node::RefusalEntry& refusal : from.refusals) {
    wire::NetworkRefusal* sent = to->add_refusal();
    sent->set_reason(valid_utf8(refusal.reason));
    sent->set_count(refusal.count);
  }
  for (const node::TrafficPoint& point : from.traffic) {
    wire::NetworkTraffic* sent = to->add_traffic();
    sent->set_at(to_unix_ms(point.at));
    sent->set_in(point.in);
    sent->set_out(point.out);
  }
}

void decode_lists(const wire::Network& from, node::NetworkView& to) {
  for (const wire::NetworkFirstPeer& sent : from.source())
    to.sources.push_back({sent.address(), sent.kind(), sent.connected(), sent.state()});
  for (const wire::NetworkPeer& sent : from.peer()) {
    node::PeerEntry peer;
    peer.id = sent.id();
    peer.address = sent.address();
    peer.way = sent.way();
    peer.connected = sent.connected();
    if (sent.has_round_trip()) peer.round_trip = sent.round_trip();
    peer.version = sent.version();
    peer.memory_bytes = sent.memory_bytes();
    peer.tokens_per_second = sent.tokens_per_second();
    peer.bytes_in = sent.bytes_in();
    peer.bytes_out = sent.bytes_out();
    peer.problem = sent.problem();
    peer.upload = sent.upload();
    peer.download = sent.download();
    to.peers.push_back(std::move(peer));
  }
  for (const wire::NetworkBan& sent : from.ban())
    to.bans.push_back({sent.id(), wall_time(sent.until()), sent.reason()});
  for (const wire::NetworkRefusal& sent : from.refusal())
    to.refusals.push_back({sent.reason(), sent.count()});
  for (const wire::NetworkTraffic& sent : from.traffic())
    to.traffic.push_back({wall_time(sent.at()), sent.in(), sent.out()});
}

}  // namespace

void encode(const node::NetworkView& from, wire::Network* to) {
  to->set_taking_part(from.taking_part);
  to->set_listens_at(valid_utf8(from.listens_at));
  to->set_reach(from.reach);
  to->set_summary(valid_utf8(from.summary));
  for (const std::string& line : from.found) to->add_found(valid_utf8(line));
  to->set_advice(valid_utf8(from.advice));
  to->set_testing(from.testing);
  if (from.tested_at) to->set_tested_at(to_unix_ms(*from.tested_at));
  to->set_advertised(valid_utf8(from.advertised));
  to->set_relay(valid_utf8(from.relay));
  to->set_relay_trouble(valid_utf8(from.relay_trouble));
  to->set_turn_server(valid_utf8(from.turn_server));
  to->set_turn(valid_utf8(from.turn));
  to->set_turn_trouble(valid_utf8(from.turn_trouble));
  to->set_invitation(from.invitation);
  to->set_can_let_vote(from.can_let_vote);
  to->set_votes_by_invitation(from.votes_by_invitation);
  to->set_relaying(from.relaying);
  to->set_relayed_nodes(from.relayed_nodes);
  to->set_known_nodes(from.known_nodes);
  to->set_table_members(from.table_members);
  to->set_bytes_in(from.bytes_in);
  to->set_bytes_out(from.bytes_out);
  to->set_upload(from.upload);
  to->set_download(from.download);
  encode_lists(from, to);
}

node::NetworkView decode(const wire::Network& from) {
  node::NetworkView to;
  to.taking_part = from.taking_part();
  to.listens_at = from.listens_at();
  to.reach = from.reach();
  to.summary = from.summary();
  to.found.assign(from.found().begin(), from.found().end());
  to.advice = from.advice();
  to.testing = from.testing();
  if (from.has_tested_at()) to.tested_at = wall_time(from.tested_at());
  to.advertised = from.advertised();
  to.relay = from.relay();
  to.relay_trouble = from.relay_trouble();
  to.turn_server = from.turn_server();
  to.turn = from.turn();
  to.turn_trouble = from.turn_trouble();
  to.invitation = from.invitation();
  to.can_let_vote = from.can_let_vote();
  to.votes_by_invitation = from.votes_by_invitation();
  to.relaying = from.relaying();
  to.relayed_nodes = from.relayed_nodes();
  to.known_nodes = from.known_nodes();
  to.table_members = from.table_members();
  to.bytes_in = from.bytes_in();
  to.bytes_out = from.bytes_out();
  to.upload = from.upload();
  to.download = from.download();
  decode_lists(from, to);
  return to;
}

void encode(const node::HttpKey& from, wire::HttpKeyReply* to) {
  to->set_key(from.key);
  to->set_file(valid_utf8(from.file));
}

node::HttpKey decode(const wire::HttpKeyReply& from) {
  return {from.key(), from.file()};
}

void encode(const node::Invitation& from, wire::Invitation* to) {
  to->set_link(from.link);
  to->set_may_vote(from.may_vote);
  to->set_no_vote(from.no_vote);
}

node::Invitation decode(const wire::Invitation& from) {
  return {from.link(), from.may_vote(), from.no_vote()};
}

}  // namespace neuroshard::control::detail
