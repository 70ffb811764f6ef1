// The node in its network, for people: reachability, peers, traffic, refused connections. Plain values,
// bounded.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/node/snapshot.h"

namespace neuroshard::node {

inline constexpr std::size_t max_peer_entries = 1000;
inline constexpr std::size_t max_ban_entries = 200;
inline constexpr std::size_t max_source_entries = 64;
inline constexpr std::size_t max_traffic_points = 360;
inline constexpr std::size_t max_found_lines = 16;

struct PeerEntry {
  std::string id;       // 64 hex characters
  std::string address;  // that is dialled; of a relayed one the relay's
  std::string way;      // "direct", "punched", "turn" (relayed by the peer's TURN server), "relayed"
  bool connected = false;
  std::optional<double> round_trip;  // seconds, smoothed
  std::string version;               // of its program; empty = unknown
  std::uint64_t memory_bytes = 0;    // that it gives, as it says; 0 = unknown
  std::uint32_t tokens_per_second = 0;
  std::uint64_t upload = 0, download = 0;     // its line, bytes per second, as it says; 0 = not measured
  std::uint64_t bytes_in = 0, bytes_out = 0;  // since the start, bodies only
  std::string problem;                        // why it is not connected; empty = nothing
};
struct BanEntry {
  std::string id;
  WallTime until{};
  std::string reason;
};
// A first contact, and the state of the attempt to reach it.
struct SourceEntry {
  std::string address;  // or a name that is resolved
  std::string kind;     // "tracker", "peer"
  bool connected = false;
  std::string state;  // in words
};
struct RefusalEntry {
  std::string reason;  // "not TLS"
  std::uint64_t count = 0;
};
// Bytes per second over the time up to `at`, since the point before; bodies only.
struct TrafficPoint {
  WallTime at{};
  double in = 0, out = 0;
};

// A link that a person asked for. With a vote it holds a secret: whoever uses the link first can vote.
struct Invitation {
  std::string link;
  bool may_vote = false;
  std::string no_vote;  // why a vote that was asked for is missing; empty = it was not asked for, or is there
};

struct NetworkView {
  bool taking_part = false;  // false: this node is alone, and all other fields are empty
  std::string listens_at;    // address and port
  // How peers reach it: "unknown" (no peer to ask yet), "public", "mapped", "punchable",
  // "relayed only".
  std::string reach = "unknown";
  std::string summary;             // one sentence
  std::vector<std::string> found;  // one sentence for each thing that was tried
  std::string advice;              // what to do; empty = nothing
  bool testing = false;
  std::optional<WallTime> tested_at;
  std::string advertised;     // where peers dial it; empty = nowhere
  std::string relay;          // through which they reach it instead; empty = none
  std::string relay_trouble;  // why there is none, where one is needed
  std::string turn_server;    // of the settings; empty = none
  std::string turn;           // where peers dial it through that; empty = nowhere
  std::string turn_trouble;   // why not, where it is needed
  // A link that invites others to this network, with this node and some more as first peers. Empty: no
  // reachable peer is known yet.
  std::string invitation;
  // Node::query_invitation makes links that let the invited wallet vote.
  bool can_let_vote = false;
  bool votes_by_invitation = false;  // nobody becomes a voter without such a link
  bool relaying = false;             // for nodes that others can't dial
  std::uint32_t relayed_nodes = 0;
  std::uint64_t known_nodes = 0;    // by their signed records
  std::uint64_t table_members = 0;  // of the hash table
  std::uint64_t bytes_in = 0, bytes_out = 0;
  // Measured bandwidth of this node, bytes per second, as announced to peers; 0 = not measured yet.
  std::uint64_t upload = 0, download = 0;
  std::vector<SourceEntry> sources;
  std::vector<PeerEntry> peers;
  std::vector<BanEntry> bans;
  std::vector<RefusalEntry> refusals;
  std::vector<TrafficPoint> traffic;  // ascending, the last hour
};

// Answers for the engine in a node that has joined a network. Outlives the engine.
class NetworkSource {
 public:
  using Answer = std::function<void(Expected<NetworkView>)>;
  using InvitationAnswer = std::function<void(Expected<Invitation>)>;
  virtual ~NetworkSource() = default;
  // `answer` is called once, on a thread of the source's; must only enqueue.  Threads: any.
  virtual void view(Answer answer) = 0;
  // The short answer, for every snapshot.  Threads: any; never waits.
  virtual PeersView peers() const = 0;
  // Makes a link. Each call with `with_vote` uses up a voucher of this node's wallet.  Threads: any; `answer` as
  // above.
  virtual void invite(bool with_vote, InvitationAnswer answer) = 0;
  // Starts a test of whether peers reach this node; the view has the result.  Threads: any.
  virtual void test_reachability() = 0;
};

}  // namespace neuroshard::node
