// Keeps this node reachable through one of several relays: reserves, joins and takes calls. When the relay
// goes away, or half of the reservation has passed, it does so again, there or at the next relay.
#pragma once

#include <functional>

#include "core/nat/relay_client.h"

namespace neuroshard::nat {

// Gets a ticket from the relay, which verifies this node's key (over mutual TLS).
using ReserveAtRelay = std::function<Expected<RelayTicket>(const Io& io, const platform::Endpoint& relay)>;

struct RelayHoldTimes {
  Duration renew = std::chrono::minutes(30);  // half of RelayLimits::reservation_time
  Duration join = std::chrono::seconds(5);
  // The pause after a round through all relays without a place; doubles. A relay that returns is found within
  // 15 s.
  Duration first_retry = std::chrono::seconds(1), last_retry = std::chrono::seconds(10);
};

// Threads: one.
class RelayHold {
 public:
  RelayHold(std::vector<platform::Endpoint> relays, ReserveAtRelay reserve, const RelayHoldTimes& times = {})
      : relays_(std::move(relays)), reserve_(std::move(reserve)), times_(times), retry_(times.first_retry) {}

  // Uses these relays from now on; a held one among them stays.
  void set_relays(std::vector<platform::Endpoint> relays);

  // Waits for a call until `until`, after joining a relay if there is none; nothing when no call came.
  // Cancelled.
  Expected<std::optional<RelayedCall>> next(const Io& io, MonotonicTime until);

  // The relay through which others call this node now.
  std::optional<platform::Endpoint> relay() const;
  // Why there is none.
  const std::string& trouble() const { return trouble_; }

 private:
  Expected<void> join(const Io& io);
  void lost(const Io& io, std::string why);

  std::vector<platform::Endpoint> relays_;
  ReserveAtRelay reserve_;
  RelayHoldTimes times_;
  std::size_t at_ = 0;  // which relay is held, or tried next
  std::optional<RelayCallee> callee_;
  MonotonicTime renew_at_{}, try_at_{};
  std::size_t failed_ = 0;  // in this round
  Duration retry_;
  std::string trouble_ = "no relay was asked yet";
};

}  // namespace neuroshard::nat
