// How a member is reached: its address, the dial-back, and the relay that stands in for it.
#include <fmt/format.h>

#include <algorithm>

#include "core/swarm/detail/member_source.h"
#include "core/swarm/messages.h"

namespace neuroshard::swarm {
namespace {

constexpr Duration call_patience = std::chrono::seconds(2);
constexpr Duration dial_back_patience = std::chrono::seconds(6);  // it dials within 4
constexpr std::size_t answer_bytes = 1024;
constexpr std::size_t most_relays = 8;  // to choose from

}  // namespace

// A tracker is reached by whoever asks it; others relay only where somebody has dialled them.
bool Member::relays_for_others() const {
  return services_.relay != nullptr && (options_.tracker || reach_.advertised());
}

net::Hello Member::own_hello() const {
  net::Hello hello;
  hello.network_id = options_.network_id;
  hello.program = options_.program;
  if (options_.tracker) hello.port = options_.port;
  hello.features = net::Feature::Peers | net::Feature::AddressEcho | net::Feature::DialBack;
  if (reach_.advertised()) {
    hello.port = reach_.advertised()->port;
    hello.features = hello.features | net::Feature::Dht;
  }
  if (options_.tracker) hello.features = hello.features | net::Feature::Tracker;
  if (puncher_ && puncher_->punchable()) hello.features = hello.features | net::Feature::Punch;
  if (relays_for_others()) hello.features = hello.features | net::Feature::Relay;
  return hello;
}

ReachKeeper::Ask Member::dial_back_by(Source& source) {
  return [this, &source](std::uint16_t port, ReachKeeper::DialledBack done) {
    if (!source.channel) return done(make_error(ErrorCode::Unavailable, "the asked node is gone"));
    const std::uint64_t request_bytes = 2;
    source.channel->call(
        net::Method::DialBack, encode_port(port),
        net::call_deadline(dial_back_patience, request_bytes, answer_bytes),
        [alive = alive_, done = std::move(done)](const Expected<Bytes>& answer) {
          if (!*alive) return;
          done(answer.ok() ? decode_dial_back(*answer) : Expected<DialBackAnswer>(answer.error()));
        });
  };
}

// What was found out once is looked at again, now and then and when something has changed.
void Member::keep_reach() {
  if (!reach_.due()) return;
  std::vector<Source*> askable;
  for (const auto& source : sources_)
    if (source->channel && !source->busy && source->channel->hello().offers(net::Feature::DialBack))
      askable.push_back(source.get());
  if (askable.empty()) return;
  reach_.verify(dial_back_by(*askable[rng_.below(askable.size())]), [] {});
}

void Member::test_reach() {
  reach_.test_again();
  if (puncher_) puncher_->look_again();
  if (services_.router != nullptr && reach_.seen_at()) services_.router->open(reach_.seen_at()->ip);
  keep_reach();
}

void Member::reach_changed() {
  if (const auto at = reach_.advertised())
    services_.logger.info("swarm", "reached from outside at " + platform::to_text(*at));
  else
    services_.logger.warning("swarm", "not reached from outside any more: " + reach_.why_not());
  answers_.set_relaying(relays_for_others());
  services_.transport.set_hello(own_hello());
  tell_own_place();
  make_table();  // a member, or a client, from now on
  endpoints_changed();
  join_again();
  find_relays();
}

void Member::held_at(std::optional<platform::Endpoint> relay, std::string trouble) {
  relay_trouble_ = std::move(trouble);
  if (relay == relay_) return;
  relay_ = relay;
  if (relay_)
    services_.logger.info("swarm", "others reach this node through the relay " + platform::to_text(*relay_));
  else
    services_.logger.info("swarm", "no relay stands in for this node: " + relay_trouble_);
  endpoints_changed();
  publish_record();
}

// The record says it, and all trackers and first peers hear it now: who is back knows by whom it is awaited.
void Member::endpoints_changed() {
  record_.endpoints.clear();
  const auto add = [this](net::Reach reach, const std::optional<platform::Endpoint>& at) {
    if (at) record_.endpoints.push_back({reach, *at});
  };
  if (reach_.advertised()) {
    add(net::Reach::Direct, reach_.advertised());
  } else {
    // Both: whom the TURN server does not let in comes through the relay and asks to be.
    add(net::Reach::Turn, turn_);
    add(net::Reach::Relayed, relay_);
  }
  renew_record();
  told_.clear();
  greetings_ = 0;
  for (const auto& source : sources_)
    if (source->channel && !source->busy) introduce(*source);
  greet();
}

void Member::join_again() {
  std::vector<net::Contact> contacts;
  for (const auto& source : sources_)
    if (source->channel && source->channel->hello().offers(net::Feature::Dht))
      contacts.push_back({source->channel->id(), source->channel->endpoint()});
  for (const net::NodeRecord* record : book_.all(services_.clock.wall_now())) {
    const auto contact = paths_.contact_of(*record, options_.one_lan);
    if (contact && paths_.way_to(contact->id, contact->endpoint) == Way::Direct) contacts.push_back(*contact);
  }
  take_peers({}, std::move(contacts));
}

// While nobody can dial this node, one of the nodes that relay stands in for it.
void Member::find_relays() {
  if (services_.tunnels == nullptr || options_.port == 0) return;
  std::vector<platform::Endpoint> relays;
  const auto add = [&relays](const platform::Endpoint& at) {
    if (relays.size() < most_relays && std::find(relays.begin(), relays.end(), at) == relays.end())
      relays.push_back(at);
  };
  if (reach_.tested() && !reach_.advertised()) {
    if (relay_) add(*relay_);
    for (const auto& source : sources_)
      if (source->channel && source->channel->hello().offers(net::Feature::Relay))
        add(source->channel->endpoint());
    for (const net::NodeRecord* record : book_.all(services_.clock.wall_now())) {
      const auto contact = paths_.contact_of(*record, options_.one_lan);
      if (contact && (record->features & static_cast<std::uint64_t>(net::Feature::Relay)) != 0 &&
          paths_.way_to(contact->id, contact->endpoint) == Way::Direct)
        add(contact->endpoint);
    }
    if (relays.empty()) relay_trouble_ = "no node that relays is known";
  }
  services_.tunnels->hold(relays);
  keep_turn();
  punch_if_needed(std::move(relays));
}

void Member::reserve_at(const platform::Endpoint& relay, const nat::Tunnels::Ticket& answer) {
  const auto take = [answer](const Expected<Bytes>& bytes) {
    answer(bytes.ok() ? decode_ticket(*bytes) : Expected<nat::RelayTicket>(bytes.error()));
  };
  for (const auto& source : sources_)
    if (source->channel && source->channel->endpoint() == relay)
      return ask(*source, net::Method::RelayReserve, {}, call_patience, take);
  for (const net::NodeRecord* record : book_.all(services_.clock.wall_now()))
    for (const net::NodeEndpoint& at : record->endpoints)
      if (at.reach == net::Reach::Direct && at.endpoint == relay)
        return pool_.call({record->id(), relay}, net::Method::RelayReserve, {},
                          net::call_deadline(call_patience, 0, answer_bytes), take);
  answer(make_error(ErrorCode::NotFound, "this relay is not known any more"));
}

}  // namespace neuroshard::swarm
