// Members: direct connections between nodes that nobody can dial.
#include "core/swarm/member.h"

namespace neuroshard::swarm {

void Member::make_puncher() {
  if (services_.tunnels == nullptr || options_.port == 0) return;
  puncher_ = std::make_unique<Puncher>(*services_.tunnels, services_.clock, options_.one_lan,
                                       [this] { punchable_changed(); });
  paths_.set_puncher(puncher_.get());
}

// Who relays answers STUN requests, too. None: this node can be dialled, or it is not known yet.
void Member::punch_if_needed(std::vector<platform::Endpoint> relays) {
  if (!puncher_) return;
  puncher_->set_servers(std::move(relays));
  puncher_->look();
}

void Member::punchable_changed() {
  if (puncher_->punchable())
    services_.logger.info("swarm", "direct connections with nodes behind ordinary routers are possible");
  services_.transport.set_hello(own_hello());
  endpoints_changed();
  publish_record();
  if (puncher_->punchable()) paths_.punch_what_can_be();
}

}  // namespace neuroshard::swarm
