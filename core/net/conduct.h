// Counts the faults of other nodes: messages that an honest program does not send. Faults give points, which
// fade. A node with too many points is banned for a while, longer each time. A node that is slow, absent,
// behind, of another network or of another version commits no fault.
//
// Faults count for the address, too, and for its group. Many people share an address (carrier-grade NAT) or a
// group (a campus), so neither is banned: an address with too many points is closed to nodes that are not
// known, and new connections from a group with too many points are let in slowly.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/net/ban_list.h"
#include "core/net/peer_caller.h"
#include "core/net/peer_ranks.h"
#include "core/net/token_bucket.h"

namespace neuroshard::net {

enum class Fault : std::uint8_t {
  Malformed,     // a message that no honest program writes
  BadSignature,  // a signature that does not verify
  OthersRecord,  // tried to store or register another node's record
  Flood,         // requests far beyond the limits, after being refused
  Equivocation,  // two signatures that exclude each other, proven to anybody
  Oversized,     // a message over the limit
  NotTls,        // another protocol on the port for peers
  WrongContent,  // gave other content than it had offered
  Count_,
};
std::string_view to_string(Fault fault);  // "messages that can't be read", for reasons

struct ConductRules {
  double limit = 100;                             // points at a time
  double address_factor = 4;                      // for an address, in multiples of one node
  double group_factor = 16;                       // for an address group, likewise
  Duration half_life = std::chrono::minutes(10);  // of points
  Duration first_ban = std::chrono::hours(1);     // doubles with each that follows
  Duration longest_ban = std::chrono::hours(24);
  double slow_per_second = 0.5, slow_burst = 4;  // new connections from a group with too many points
  bool internet_only = true;                     // other addresses are not counted
  std::size_t remembered = 4096;  // nodes, addresses and groups each: those with the fewest points make room
  // By Fault. Each refused request counts as a flood; a program that waits as the refusal asks commits none.
  std::array<double, static_cast<std::size_t>(Fault::Count_)> points{20, 50, 20, 0.25, 100, 20, 4, 50};
};

// With the addresses that it is known at.
struct KnownNode {
  NodeId id{};
  std::vector<platform::IpAddress> addresses;
};

class Conduct {
 public:
  // All outlive it. one_lan: addresses are not counted. ranks: null where all nodes are strangers.
  // Threads: any, all members.
  Conduct(BanList& bans, const Clock& clock, bool one_lan, ConductRules rules = {},
          const PeerRanks* ranks = nullptr)
      : bans_(bans), clock_(clock), one_lan_(one_lan), rules_(rules), ranks_(ranks) {}

  // Counts a fault of `from`. Its address and group count, too, if the address is public (behind a relay it is
  // not). True: the node is banned now.
  bool fault(const Caller& from, Fault fault);
  // Counts a fault of a node that has not proven its id.
  void fault(const platform::IpAddress& from, Fault fault);
  // Members, and nodes that were reached: a replacement for the former ones. An address stays known as long
  // as its node.
  void set_known(const std::vector<KnownNode>& nodes);
  // Whether a node that is no stranger by its rank is at this address, so far as this node knows. Any
  // stranger can run a node that is reached, so that is not enough.
  bool has_ranked(const platform::IpAddress& address) const;
  // Whether an address may connect, before anything is known of the node there.
  bool welcome(const platform::IpAddress& from) const;
  // Whether a TLS handshake with it may begin now; counts it.
  bool may_greet(const platform::IpAddress& from);
  // Whether a node that has proven its id may call from there. Denied.
  Expected<void> check(const Caller& from);

  double points(const NodeId& id) const;  // now
  std::uint64_t faults(Fault fault) const;
  std::size_t remembered() const;
  const BanList& bans() const { return bans_; }

 private:
  struct Score {
    double points = 0;
    MonotonicTime at{};
    std::array<std::uint32_t, static_cast<std::size_t>(Fault::Count_)> seen{};
    std::optional<TokenBucket> pace;  // of an address or a group
  };
  double faded(const Score& score, MonotonicTime now) const;
  template <class Scores, class Key>
  Score& score(Scores& scores, const Key& key, MonotonicTime now);
  void count_locked(Score& score, Fault fault) const;
  void count_address_locked(const platform::IpAddress& from, Fault fault, MonotonicTime now);
  bool counts(const platform::IpAddress& from) const;
  // The address's score if it has too many points now.
  const Score* closed_locked(const platform::IpAddress& from, MonotonicTime now) const;
  Score* slow_locked(const platform::IpAddress& from, MonotonicTime now);
  static std::string reason_of(const Score& score);
  bool is_ranked(const NodeId& id) const { return ranks_ != nullptr && ranks_->of(id) != PeerRank::Stranger; }
  void add_address_locked(const NodeId& id, const platform::IpAddress& host);

  BanList& bans_;
  const Clock& clock_;
  const bool one_lan_;
  const ConductRules rules_;
  const PeerRanks* const ranks_;
  mutable std::mutex mutex_;
  std::unordered_map<NodeId, Score, NodeIdHash> nodes_;
  std::map<platform::IpAddress, Score> addresses_;
  std::unordered_map<std::uint64_t, Score> groups_;
  std::unordered_set<NodeId, NodeIdHash> known_;
  std::set<platform::IpAddress> known_addresses_, ranked_addresses_;
  std::unordered_map<NodeId, platform::IpAddress, NodeIdHash> called_from_;  // of known and ranked nodes
  std::array<std::uint64_t, static_cast<std::size_t>(Fault::Count_)> counts_{};
};

}  // namespace neuroshard::net
