// A population of table members on the simulated network: joins, churn, hostile members, and lookups with
// what they cost. Used by the tests (small) and by measure_dht (up to 10,000 members).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/dht/dht_node.h"
#include "core/sim/network.h"
#include "core/sim/world.h"
#include "tests/sim/hostile_member.h"

namespace neuroshard::testing {

struct PopulationOptions {
  std::size_t members = 100;
  double hostile = 0;  // share of the members
  Hostility hostility = Hostility::None;
  // Members that each one learns of once all are there, besides the three that it joined through, as
  // swarm::Member does from trackers and peers. A fair sample, with hostile members among them.
  std::size_t told = 8;
  sim::NetworkOptions network;
  dht::DhtConfig config;
  std::uint64_t seed = 1;
};

struct LookupReport {
  std::size_t lookups = 0, right = 0, wrong = 0, missing = 0;
  double messages = 0, hops = 0, seconds = 0;  // means
  std::size_t most_hops = 0;
  double messages_95 = 0;
  double lost = 0, paths = 0, holders = 0;  // of a lookup: calls without an answer, paths, holders found
  struct Failed {
    std::size_t item = 0;
    std::size_t asker_table = 0;  // contacts of the member that asked
    double asker_minutes = 0;     // since it joined
    std::size_t paths = 0, messages = 0;
  };
  std::vector<Failed> failed;  // the lookups that were not right
  double rate() const { return lookups == 0 ? 0 : double(right) / double(lookups); }
};

class Population {
 public:
  explicit Population(PopulationOptions options);
  ~Population();

  // Members join one after the other through members that are there, over `span`; then the table settles.
  void join_all(Duration span);
  // Honest members publish /values/item-I with a payload that names version `version`; the number stored
  // somewhere.
  std::size_t publish(std::size_t items, int version);
  // Replaces members by new ones, evenly over `span`, so that `share` of them has gone at its end. Publishers
  // stay.
  void churn(double share, Duration span);
  // Joins through three that are there.
  dht::DhtNode& newcomer();
  // Random honest members look up random items of the first `items`, and compare with `version`.
  LookupReport lookup(std::size_t lookups, std::size_t items, int version);
  // How many of `count` members' nearest-k answers name only members that are there.
  double live_answers(std::size_t count);
  // Adds hostile members whose ids are the nearest to an item's key that `tries` keys find each.
  void surround(std::size_t item, std::size_t count, std::size_t groups, std::size_t tries);
  // From now on members are made without disjoint paths: one path, believed at once. The negative control.
  void use_single_path();
  // Cuts the network in two; `share` of the members are in the second part. heal() undoes it.
  void split(double share);
  void heal();

  sim::World& world() { return world_; }
  sim::Network& network() { return network_; }
  std::size_t size() const { return members_.size(); }
  dht::DhtNode& honest(std::size_t i);
  // Of the `near` honest members nearest to an item's key, how many hold this version.
  std::size_t copies(std::size_t item, int version, std::size_t near);
  // Of the `near` members nearest to an item's key, how many are hostile.
  std::size_t hostile_near(std::size_t item, std::size_t near);
  std::size_t table_mean() const;
  // Share of hostile members among what honest members would answer with.
  double hostile_share();

 private:
  struct Member;

  std::size_t add(bool hostile, const crypto::KeyPair* key, platform::Endpoint endpoint);
  void start(Member& member);
  void retire(std::size_t index);
  // As honest members do: the member asks some for what is near the target.
  void make_known(const Member& member, const net::NodeId& target);
  crypto::KeyPair new_key();
  platform::Endpoint new_endpoint();
  platform::Endpoint nobody();  // where there is none
  std::vector<net::Contact> some_contacts(std::size_t count);
  std::size_t random_honest();

  PopulationOptions options_;
  Hash256 network_id_{};
  Rng rng_;
  sim::World world_;
  sim::Network network_;
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<net::NodeId> hostile_ids_;
  std::vector<net::Contact> accomplices_;
  std::uint32_t next_address_ = 0, next_nobody_ = 0;
  std::vector<std::size_t> publishers_;  // [item] member
};

}  // namespace neuroshard::testing
