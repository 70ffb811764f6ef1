// Members: a place at a TURN server of the person's own, for a node that nobody can dial. Nodes that say
// where they are dialled are let in by their records; others come through a relay first and ask.
#include <fmt/format.h>

#include <algorithm>

#include "core/swarm/detail/member_source.h"

namespace neuroshard::swarm {

void Member::keep_turn() {
  if (services_.tunnels == nullptr || options_.turn_server.empty() || options_.port == 0) return;
  std::vector<platform::IpAddress> known;
  for (const auto& source : sources_)
    if (source->channel) known.push_back(source->channel->endpoint().ip);
  for (const net::NodeRecord* record : book_.all(services_.clock.wall_now()))
    for (const net::NodeEndpoint& at : record->endpoints)
      if (at.reach == net::Reach::Direct) known.push_back(at.endpoint.ip);
  services_.tunnels->hold_turn(reach_.tested() && !reach_.advertised(), std::move(known));
}

void Member::find_turn(const nat::Tunnels::Found& found) {
  if (const auto endpoint = platform::parse_endpoint(options_.turn_server); endpoint.ok())
    return found(*endpoint);
  if (services_.names == nullptr)
    return found(make_error(ErrorCode::Unsupported, "names are not looked up here"));
  services_.names->look_up(
      options_.turn_server, [found](const Expected<std::vector<platform::Endpoint>>& at) {
        if (!at.ok()) return found(at.error());
        if (at->empty()) return found(make_error(ErrorCode::NotFound, "its name has no address"));
        // The relayed address is of the kind that the server is dialled at; most nodes have IPv4.
        const auto v4 = std::find_if(at->begin(), at->end(), [](const auto& one) { return one.ip.is_v4(); });
        found(v4 == at->end() ? at->front() : *v4);
      });
}

void Member::turned(std::optional<platform::Endpoint> at, std::string trouble) {
  turn_trouble_ = std::move(trouble);
  if (at)
    services_.logger.info(
        "swarm", fmt::format("nodes that it lets in dial this node at {}, through the TURN server {}",
                             platform::to_text(*at), options_.turn_server));
  else if (!turn_trouble_.empty())
    services_.logger.warning(
        "swarm",
        fmt::format("the TURN server {} is of no use now: {}; other nodes relay, and it is tried again",
                    options_.turn_server, turn_trouble_));
  if (at == turn_) return;
  turn_ = at;
  endpoints_changed();
  publish_record();
}

void Member::tell_own_place() {
  paths_.set_own({options_.one_lan, reach_.advertised().has_value(), reach_.seen_at()});
}

}  // namespace neuroshard::swarm
