// A member of the hash table that answers wrongly. It is reachable and lives, so it passes every ping.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/rng.h"
#include "core/dht/messages.h"
#include "core/dht/record.h"
#include "core/net/peer_caller.h"

namespace neuroshard::testing {

// Hostile members do all of this at once:
enum class Hostility : std::uint8_t {
  None,
  Poison,  // answer with accomplices nearest to the target, claim to hold nothing, take stores and drop them
  Stale,   // as Poison, but they keep the first record of each publisher and replay it for ever
  Invent,  // answer with contacts near the target that do not exist
};

class HostileMember {
 public:
  struct Surroundings {  // the references outlive it
    Hostility hostility;
    const Hash256& network_id;
    const std::vector<net::Contact>& accomplices;  // itself included
    Rng& rng;
    std::function<platform::Endpoint()> nobody;  // an address where there is no member
  };
  explicit HostileMember(Surroundings around) : around_(std::move(around)) {}

  void handle(const net::Caller& from, net::Method method, ByteSpan bytes, const net::Respond& respond);

 private:
  std::vector<const dht::Record*> held(const net::NodeId& key) const;
  std::vector<net::Contact> contacts(const net::NodeId& target) const;
  std::vector<net::Contact> invented(const net::NodeId& target) const;

  const Surroundings around_;
  std::map<std::string, dht::Record> first_;
};

}  // namespace neuroshard::testing
