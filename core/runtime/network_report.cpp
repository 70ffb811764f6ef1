#include "core/runtime/network_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/config/invite_link.h"
#include "core/runtime/invited_peers.h"

namespace neuroshard::runtime {
namespace {

constexpr Duration sample_period = std::chrono::seconds(10), count_period = std::chrono::seconds(3);

node::PeerEntry entry_of(const swarm::MemberPeer& peer) {
  const net::PeerView& connection = peer.connection;
  node::PeerEntry entry;
  entry.id = to_hex(connection.id);
  entry.address = platform::to_text(connection.endpoint);
  entry.way = swarm::to_text(peer.way);
  entry.connected = connection.connected;
  if (connection.round_trip) entry.round_trip = to_seconds(*connection.round_trip);
  entry.version = connection.program;
  entry.memory_bytes = peer.memory_bytes;
  entry.tokens_per_second = peer.tokens_per_second;
  entry.upload = peer.upload;
  entry.download = peer.download;
  entry.bytes_in = peer.traffic.in;
  entry.bytes_out = peer.traffic.out;
  if (!connection.connected && connection.error) entry.problem = connection.error->message;
  return entry;
}

void set_reach(const swarm::MemberView& member, node::NetworkView& view) {
  view.testing = member.testing;
  view.tested_at = member.tested_at;
  if (member.advertised) view.advertised = platform::to_text(*member.advertised);
  if (member.relay) view.relay = platform::to_text(*member.relay);
  if (!member.advertised && !member.relay) view.relay_trouble = member.relay_trouble;
  view.turn_server = member.turn_server;
  if (member.turn) view.turn = platform::to_text(*member.turn);
  if (!member.advertised && !member.turn) view.turn_trouble = member.turn_trouble;
  view.found = member.verdict.found;
  if (!member.tested) {
    view.summary = member.seen_at ? "No other node has tried to reach this computer yet."
                                  : "Not known yet: no other node was available for a test.";
    return;
  }
  view.reach = nat::to_text(member.verdict.reach);
  view.summary = member.verdict.summary;
  view.advice = member.verdict.advice;
  if (!member.advertised && !member.why_not.empty())
    view.found.push_back(fmt::format("Dialled from outside: {}.", member.why_not));
}

// This node's address for others, the trackers that answer it, and nodes that it reaches directly.
std::string invitation(const swarm::MemberView& member, const net::NodeId& own,
                       const config::NetworkProfile& profile) {
  config::InviteLink link{profile, {}};
  const auto add = [&](std::optional<Hash256> id, std::string place) {
    if (link.peers.size() < invited_by_default) link.peers.push_back({id, std::move(place)});
  };
  if (member.advertised) add(own, platform::to_text(*member.advertised));
  const config::DirectoryPart& known = profile.directory;
  for (const swarm::SourceView& source : member.sources) {
    const std::string place = source.name.empty() ? platform::to_text(source.endpoint) : source.name;
    const bool named = std::find(known.trackers.begin(), known.trackers.end(), place) != known.trackers.end();
    if (source.tracker && source.connected && !named) add(std::nullopt, place);
  }
  for (const swarm::MemberPeer& peer : member.peers) {
    if (peer.way == swarm::Way::Direct && peer.connection.connected)
      add(peer.connection.id, platform::to_text(peer.connection.endpoint));
  }
  if (link.peers.empty() && known.bootstrap.empty() && known.trackers.empty()) return {};
  return config::format_invite_link(link).value_or(std::string());
}

}  // namespace

NetworkReport::NetworkReport(PeerHost& host, config::NetworkProfile profile)
    : host_(host), profile_(std::move(profile)) {
  host_.run([this] {
    sampled_ = host_.clock().monotonic_now();
    timer_ = host_.executor().post_after(sample_period, [this] { sample(); });
    count_peers();
  });
}

NetworkReport::~NetworkReport() {
  host_.run([this] {
    lifetime_.end();
    timer_.reset();
    count_timer_.reset();
  });
}

void NetworkReport::count_peers() {
  const std::vector<swarm::MemberPeer> peers = host_.member().view().peers;
  const auto connected = std::count_if(
      peers.begin(), peers.end(), [](const swarm::MemberPeer& peer) { return peer.connection.connected; });
  {
    std::lock_guard lock(board_->mutex);
    board_->peers.taking_part = true;
    board_->peers.connected = static_cast<std::uint32_t>(connected);
    if (!traffic_.empty()) {
      board_->peers.bytes_in_per_second = traffic_.back().in;
      board_->peers.bytes_out_per_second = traffic_.back().out;
    }
  }
  count_timer_ = host_.executor().post_after(count_period, [this] { count_peers(); });
}

node::PeersView NetworkReport::peers() const {
  std::lock_guard lock(board_->mutex);
  return board_->peers;
}

void NetworkReport::sample() {
  const MonotonicTime now = host_.clock().monotonic_now();
  const swarm::Traffic traffic = host_.member().traffic();
  const double seconds = std::max(to_seconds(now - sampled_), 1e-3);
  traffic_.push_back({host_.clock().wall_now(), static_cast<double>(traffic.in - counted_.in) / seconds,
                      static_cast<double>(traffic.out - counted_.out) / seconds});
  if (traffic_.size() > node::max_traffic_points) traffic_.pop_front();
  counted_ = traffic;
  sampled_ = now;
  timer_ = host_.executor().post_after(sample_period, [this] { sample(); });
}

void NetworkReport::view(Answer answer) {
  const bool posted = host_.executor().post([this, life = lifetime_.token(), answer] {
    if (life.alive()) return answer(inspect());
    answer(make_error(ErrorCode::Cancelled, "the node is stopping"));
  });
  if (!posted) answer(make_error(ErrorCode::Busy, "the network is busy; try again in a moment"));
}

void NetworkReport::test_reachability() {
  static_cast<void>(host_.executor().post([this, life = lifetime_.token()] {
    if (life.alive()) host_.member().test_reach();
  }));
}

node::NetworkView NetworkReport::inspect() const {
  const swarm::MemberView member = host_.member().view();
  node::NetworkView view;
  view.taking_part = true;
  view.listens_at = platform::to_text(host_.endpoint());
  set_reach(member, view);
  view.invitation = invitation(member, host_.id(), profile_);
  view.relaying = member.relaying;
  view.relayed_nodes = static_cast<std::uint32_t>(member.relayed_nodes);
  view.known_nodes = member.known;
  view.table_members = member.table;
  view.upload = member.upload;
  view.download = member.download;
  view.bytes_in = member.traffic.in;
  view.bytes_out = member.traffic.out;
  for (const swarm::SourceView& source : member.sources) {
    if (view.sources.size() >= node::max_source_entries) break;
    view.sources.push_back({source.name.empty() ? platform::to_text(source.endpoint) : source.name,
                            source.tracker ? "tracker" : "peer", source.connected, source.state});
  }
  for (const swarm::MemberPeer& peer : member.peers)
    if (view.peers.size() < node::max_peer_entries) view.peers.push_back(entry_of(peer));
  for (const net::Ban& ban : host_.bans().all())
    if (view.bans.size() < node::max_ban_entries)
      view.bans.push_back({to_hex(ban.id), ban.until, ban.reason});
  add_refusals(view);
  if (member.forged > 0) view.refusals.push_back({"an invalid node record", member.forged});
  view.traffic.assign(traffic_.begin(), traffic_.end());
  return view;
}

void NetworkReport::add_refusals(node::NetworkView& view) const {
  for (std::size_t i = 0; i < static_cast<std::size_t>(net::Refusal::Count_); ++i) {
    const auto refusal = static_cast<net::Refusal>(i);
    if (const std::uint64_t count = host_.refusals().of(refusal); count > 0)
      view.refusals.push_back({std::string(net::to_string(refusal)), count});
  }
  // Faults of connections. The transport has counted the others above, as refusals.
  for (const net::Fault fault : {net::Fault::BadSignature, net::Fault::OthersRecord, net::Fault::Flood,
                                 net::Fault::Equivocation, net::Fault::WrongContent})
    if (const std::uint64_t count = host_.conduct().faults(fault); count > 0)
      view.refusals.push_back({std::string(net::to_string(fault)), count});
}

}  // namespace neuroshard::runtime
