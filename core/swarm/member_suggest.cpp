// Members: what a rendezvous finds, and who comes by itself.
#include <fmt/format.h>

#include <algorithm>

#include "core/swarm/detail/member_source.h"

namespace neuroshard::swarm {
namespace {

constexpr std::size_t most_found = 8;
constexpr std::size_t tries_of_found = 2;

}  // namespace

bool Member::alone() const {
  return dht_->table().size() == 0 && pool_.connections() == 0 &&
         std::none_of(sources_.begin(), sources_.end(),
                      [](const auto& source) { return source->channel != nullptr; });
}

bool Member::knows_nobody() const {
  for (const net::NodeRecord* record : book_.all(services_.clock.wall_now()))
    if (record->id() != id_) return false;
  return std::none_of(sources_.begin(), sources_.end(), [](const auto& source) {
    return source->busy || (source->channel != nullptr && !source->tracker);
  });
}

void Member::suggest(const FirstPeer& peer) {
  if (peer.id == id_ || reach_.advertised() == peer.endpoint) return;
  std::size_t found = 0;
  Source* place = nullptr;
  for (const auto& source : sources_) {
    if (source->found && source->given_up) {
      place = source.get();
    } else {
      found += source->found ? 1 : 0;
      if (source->dial.endpoint == peer.endpoint) return;
    }
  }
  if (place == nullptr) {
    if (found >= most_found) return;
    sources_.push_back(std::make_unique<Source>());
    place = sources_.back().get();
  }
  *place = Source();
  place->found = true;
  place->peer = peer;
  place->dial = {peer.endpoint, peer.id};
  try_source(*place);
}

// Who is called by others and knows nobody to ask asks them: it could else never learn that it is reached.
void Member::introduced(const net::NodeRecord& record) {
  take_peers({record}, {});
  if (std::any_of(sources_.begin(), sources_.end(),
                  [](const auto& source) { return source->channel != nullptr; }))
    return;
  for (const net::NodeEndpoint& at : record.endpoints) {
    const bool dialled = options_.one_lan || platform::globally_routable(at.endpoint.ip);
    if (at.reach == net::Reach::Direct && dialled) return suggest({at.endpoint, record.id()});
  }
}

bool Member::give_up(Source& source, const Error& error) {
  const bool itself = error.code == ErrorCode::Denied;  // or somebody who will never be one of us
  if (!itself && ++source.tries < tries_of_found) return false;
  source.given_up = true;
  source.state = fmt::format("{}; not tried again", error.describe());
  services_.logger.info("swarm", fmt::format("{}: {}", source.where(), source.state));
  return true;
}

}  // namespace neuroshard::swarm
