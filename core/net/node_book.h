// The nodes of the network that this node knows, by their signed records: the newest record of each. Anybody
// can sign records by the thousand, so a record's place depends on how it came here (Standing). Places are
// bounded in all, by address group and by informant; members and nodes that were reached keep theirs.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/base/rng.h"
#include "core/net/node_record.h"
#include "core/net/peer_caller.h"

namespace neuroshard::net {

struct NodeBookLimits {
  std::size_t most = 10'000;
  // Records with an endpoint in one address group (net/address_group.h): each address of a /24 once.
  std::size_t per_group = 256;
  // Nodes that were not reached yet, as informants of one address group name them. Informants behind relays
  // are one group.
  std::size_t per_informant = 128;
  // A record counts no longer than this, whatever its expiry, unless the node is reached again.
  Duration longest = std::chrono::hours(2);
};

class NodeBook {
 public:
  // one_lan: address groups and informants are not counted.  Threads: one.
  explicit NodeBook(const Hash256& network_id, bool one_lan = false, NodeBookLimits limits = {})
      : network_id_(network_id), one_lan_(one_lan), limits_(limits) {}
  const Hash256& network_id() const { return network_id_; }
  // Members keep their places and count for no limit.
  void set_members(std::function<bool(const NodeId&)> is_member) { is_member_ = std::move(is_member); }

  // informant: the node that gave the record; nothing: this node's own configuration did.
  // Denied: check_node_record refuses the record, it is a replayed or an older one, or it differs from the
  // known one of the same sequence. Exhausted: its place is taken by records with at least its standing.
  Expected<void> put(const NodeRecord& record, WallTime now,
                     const std::optional<Caller>& informant = std::nullopt);
  // The node answered at this endpoint and has proven its id.
  void reached(const NodeId& id, const platform::Endpoint& at, WallTime now);

  const NodeRecord* find(const NodeId& id, WallTime now) const;  // valid until the next change
  std::vector<const NodeRecord*> all(WallTime now) const;
  // Those that were reached at all direct endpoints that their records name, or at another one if there are
  // none. Nodes tell others of these only.
  std::vector<const NodeRecord*> proven(WallTime now) const;
  // The IP addresses that records name for dialling directly, those where the node was reached first.
  std::vector<platform::IpAddress> direct_addresses(WallTime now) const;
  // Nodes with which to exchange records: those that are not informed yet, else all. reached_first: of them
  // those that were reached, if there are any; else first those that were not. A caller that takes turns neither
  // spends its calls on addresses that strangers made up nor misses newcomers.
  std::vector<const NodeRecord*> to_inform(WallTime now, bool reached_first,
                                           const std::function<bool(const NodeRecord&)>& callable,
                                           const std::function<bool(const NodeRecord&)>& informed) const;
  bool is_proven(const NodeId& id, const platform::Endpoint& at) const;
  void remove(const NodeId& id);
  void drop_expired(WallTime now);  // call it now and then: they take places until then
  std::size_t size() const { return entries_.size(); }
  // Refused records that never held (never_held); honest nodes pass none on.
  std::uint64_t forged() const { return forged_; }

 private:
  enum class Standing : std::uint8_t {
    Named,       // another node gave the record
    Introduced,  // its node gave it, from the only address that it names
    Reached,
  };
  struct Entry {
    NodeRecord record;
    WallTime until{};
    Standing standing = Standing::Named;
    std::vector<platform::Endpoint> reached;
    std::vector<std::uint64_t> groups;
    std::optional<std::uint64_t> informant;  // counted until the node is reached
  };
  using Entries = std::map<NodeId, Entry>;
  // Records that count for one limit. A refusal must be cheap, so it needs no search.
  struct Crowd {
    std::size_t all = 0, named = 0;  // the latter of that standing
  };
  using Crowds = std::unordered_map<std::uint64_t, Crowd>;
  static Crowd crowd_of(const Crowds& crowds, std::uint64_t key);

  Entry describe(const NodeRecord& record, const NodeId& id, WallTime now,
                 const std::optional<Caller>& informant) const;
  bool is_member(const NodeId& id) const { return is_member_ && is_member_(id); }
  // The entries that have to go for this one. Exhausted.
  Expected<std::vector<NodeId>> room_for(const NodeId& id, const Entry& entry) const;
  // Of those in `crowd` that fit, the one that ends first, if its standing is below this one.
  std::optional<NodeId> weakest(Standing below, const Crowd& crowd,
                                const std::function<bool(const Entry&)>& fits) const;
  std::optional<NodeId> one_of_the_largest_group(const Entry& newcomer) const;
  void count(const Entry& entry, int change);
  Entries::iterator erase(Entries::iterator at);

  Hash256 network_id_;
  bool one_lan_;
  NodeBookLimits limits_;
  std::function<bool(const NodeId&)> is_member_;
  Entries entries_;
  Crowd everybody_;
  Crowds in_group_, of_informant_;
  std::uint64_t forged_ = 0;
};

// Up to `most` of these in random order, of as many address groups as possible: the first of each group, then
// the second of each. Each record has an endpoint.
std::vector<const NodeRecord*> spread(std::vector<const NodeRecord*> records, std::size_t most, Rng& rng);

}  // namespace neuroshard::net
