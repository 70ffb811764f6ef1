// Counts the faults of other nodes: messages that an honest program does not send. Faults give points, which
// fade. A node with too many points is banned for a while, longer each time. A node that is slow, absent,
// behind, of another network or of another version commits no fault. An address group from which many nodes
// commit faults is refused as a whole, for a shorter time.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "core/net/ban_list.h"
#include "core/net/peer_caller.h"

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
  double prefix_factor = 4;                       // for an address group, in multiples of one node
  Duration half_life = std::chrono::minutes(10);  // of points
  Duration first_ban = std::chrono::hours(1);     // doubles with each that follows
  Duration longest_ban = std::chrono::hours(24);
  Duration prefix_ban = std::chrono::minutes(10);
  std::size_t remembered = 4096;  // nodes, and as many prefixes: those with the fewest points make room
  // By Fault. Each refused request counts as a flood; a program that waits as the refusal asks commits none.
  std::array<double, static_cast<std::size_t>(Fault::Count_)> points{20, 50, 20, 0.25, 100, 20, 4, 50};
};

class Conduct {
 public:
  // All outlive it. one_lan: address groups are not counted.  Threads: any, all members.
  Conduct(BanList& bans, const Clock& clock, bool one_lan, ConductRules rules = {})
      : bans_(bans), clock_(clock), one_lan_(one_lan), rules_(rules) {}

  // Counts a fault of `from`. Its prefix counts, too, if its address is public (behind a relay it is not).
  // True: the node is banned now.
  bool fault(const Caller& from, Fault fault);
  // Counts a fault of a node that has not proven its id.
  void fault(const platform::IpAddress& from, Fault fault);
  double points(const NodeId& id) const;  // now
  std::uint64_t faults(Fault fault) const;
  std::size_t remembered() const;
  const BanList& bans() const { return bans_; }

 private:
  struct Score {
    double points = 0;
    MonotonicTime at{};
    std::array<std::uint32_t, static_cast<std::size_t>(Fault::Count_)> seen{};
  };
  double faded(const Score& score, MonotonicTime now) const;
  template <class Scores, class Key>
  Score& score(Scores& scores, const Key& key, MonotonicTime now);
  void count_locked(Score& score, Fault fault) const;
  void count_prefix_locked(const platform::IpAddress& from, Fault fault, MonotonicTime now);
  static std::string reason_of(const Score& score);

  BanList& bans_;
  const Clock& clock_;
  const bool one_lan_;
  const ConductRules rules_;
  mutable std::mutex mutex_;
  std::unordered_map<NodeId, Score, NodeIdHash> nodes_;
  std::unordered_map<std::uint64_t, Score> prefixes_;
  std::array<std::uint64_t, static_cast<std::size_t>(Fault::Count_)> counts_{};
};

}  // namespace neuroshard::net
