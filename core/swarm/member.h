// A node's part in its network: finds first peers, learns whether it is reached from outside, says so in its
// signed record, keeps it alive at trackers and in the hash table, and answers others. Whatever is dead at
// the start is tried again for ever, with pauses that grow and jitter; it never fails for good, and says what
// it tries.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/dht/dht_node.h"
#include "core/net/line_speed.h"
#include "core/net/peer_pool.h"
#include "core/swarm/first_peer.h"
#include "core/swarm/path_transport.h"
#include "core/swarm/peer_cache.h"
#include "core/swarm/public_services.h"
#include "core/swarm/reach_keeper.h"
#include "core/swarm/slot_keys.h"
#include "core/swarm/turn_door.h"

namespace neuroshard::swarm {

struct MemberOptions {
  Hash256 network_id{};
  std::string program;
  std::uint16_t port = 0;          // where it listens; 0 = it only dials
  bool one_lan = false;            // a network of one's own: private addresses
  bool tracker = false;            // serves as one
  std::vector<FirstPeer> sources;  // trackers and bootstrap peers
  std::vector<CachedPeer> cached;  // of an earlier run; tried first, four at a time
  net::NodeRecord facts;           // memory, speed, slots, delegation; the rest is filled in
  Duration heartbeat = std::chrono::seconds(10);
  Duration record_life = std::chrono::hours(1);
  Duration first_pause = std::chrono::seconds(1);
  Duration longest_pause = std::chrono::seconds(60);
  // Between two records for another number of what it gives, or another speed of its line.
  Duration capacity_told = std::chrono::seconds(60);
  std::string turn_server;   // of the person's own: "turn.example.org:3478"; empty: none
  std::string turn_trouble;  // why it is not used, where that is known already (the tunnels have no account)
};

struct MemberServices {  // all outlive
  const crypto::KeyPair& key;
  net::PeerTransport& transport;
  Executor& executor;
  const Clock& clock;
  Logger& logger;
  NameResolver* names = nullptr;  // null: no source has a name
  // How it is reached where it can't be dialled plainly; null: not at all, as in the simulated world.
  nat::RouterPort* router = nullptr;
  nat::Tunnels* tunnels = nullptr;
  nat::RelayRole* relay = nullptr;       // serves as a relay once it is reached
  net::Conduct* conduct = nullptr;       // told of others' faults
  const net::LineSpeed* line = nullptr;  // measured; null: the record says nothing of it
};

// What a node gives and does at present, as far as it is known; for its record.
struct Capacity {
  std::uint64_t memory_bytes = 0;
  std::uint32_t tokens_per_second = 0;
  std::vector<net::HeldSlot> slots;  // as net/node_record.h wants them
  bool gives = true;                 // them to whoever asks: it is found by them in the hash table
};

struct SourceView {
  platform::Endpoint endpoint;  // of a name: where it was looked for at last
  std::string name;             // empty: it is known by its address
  bool connected = false;
  bool tracker = false;
  std::string state;  // what is going on, in words
};

struct MemberPeer {
  net::PeerView connection;
  Way way = Way::Direct;
  Traffic traffic;
  std::uint64_t memory_bytes = 0;  // as its record says; 0 = no record
  std::uint32_t tokens_per_second = 0;
  std::uint64_t upload = 0, download = 0;  // of its line, bytes per second; 0 = it has not measured
};

struct MemberView {
  bool reachable = false;  // from outside, as another node found out
  bool tested = false;
  bool testing = false;
  std::optional<WallTime> tested_at;
  std::optional<platform::Endpoint> advertised, seen_at;
  std::string why_not;  // when it is not reachable
  nat::ReachabilityVerdict verdict;
  std::optional<platform::Endpoint> relay;  // where it can be called instead
  std::string relay_trouble;
  std::string turn_server;                 // of the options
  std::optional<platform::Endpoint> turn;  // where it is dialled through that
  std::string turn_trouble;
  bool relaying = false;                   // for others
  std::size_t relayed_nodes = 0;           // that hold a place here
  Traffic traffic;                         // with all peers, since the start
  std::uint64_t upload = 0, download = 0;  // this node's line, as its record says
  std::size_t known = 0;                   // nodes by their records
  std::uint64_t forged = 0;                // records that were refused because they never held
  std::size_t table = 0;                   // contacts of the hash table
  std::vector<SourceView> sources;
  std::vector<MemberPeer> peers;
};

class Member final : public net::PeerService {
 public:
  // Threads: the executor's, all members.
  Member(MemberServices services, MemberOptions options, std::uint64_t seed);
  ~Member() override;
  void start();

  MemberView view() const;
  // With all peers, since the start.
  Traffic traffic() const { return paths_.traffic()->sum(); }
  // What the router says now, from the thread that asks it.
  void router_says(nat::RouterNews news) { reach_.router_says(std::move(news)); }
  // Told to the others when it is something else than their record of this node says: other slots, or a
  // number that differs by a tenth.
  void set_capacity(Capacity capacity);
  // Somebody outside is asked to dial this node again, now.
  void test_reach();
  const net::NodeBook& book() const { return book_; }
  // Calls over the connections that are kept.
  net::PeerCaller& caller() { return pool_; }
  // Where the node is, by its record; nothing: not known, or not to be reached.
  std::optional<net::Contact> find(const net::NodeId& id) const;
  // Nodes that can be called, others each time; at most `most`.
  std::vector<net::Contact> some(std::size_t most);
  // A protocol beside the public services (core/rounds): takes a call, or says false. Null: none.
  using Protocol =
      std::function<bool(const net::Caller&, net::Method, ByteSpan request, const net::Respond& respond)>;
  void set_protocol(Protocol protocol) { protocol_ = std::move(protocol); }
  // The same for files by their hash (core/exchange).
  void set_exchange(Protocol exchange) { exchange_ = std::move(exchange); }
  dht::DhtNode& table() { return *dht_; }
  // Somebody to begin with who was found elsewhere (core/rendezvous): tried twice, eight at a time.
  void suggest(const FirstPeer& peer);
  // Nobody is connected and the hash table is empty.
  bool alone() const;
  // All first peers and trackers were tried, and whoever answered is a tracker that knows of no other node.
  bool knows_nobody() const;
  // Where it is reached from outside.
  std::optional<platform::Endpoint> advertised() const { return reach_.advertised(); }
  // To be remembered for the next run; those of an earlier one among them.
  std::vector<CachedPeer> good_peers() const { return good_.list(); }
  TrackerStatistics statistics() const { return tracker_.statistics(services_.clock.wall_now()); }

  void on_call(const net::Caller& from, net::Method method, Bytes request, net::Respond respond) override;
  void on_stream(const net::Caller& from, net::Method method,
                 std::shared_ptr<net::PeerStream> stream) override;

 private:
  struct Source;  // detail/member_source.h
  using Done = std::function<void(Expected<Bytes>)>;

  void add_cached();
  void next_cached(Source& source);
  bool give_up(Source& source, const Error& error);
  void remember_good();
  void try_source(Source& source);
  void dial(Source& source);
  void failed(Source& source, const Error& error);
  void ask(Source& source, net::Method method, Bytes request, Duration allowed, Done done);
  void learn_address(Source& source);
  void learn_reach(Source& source);
  void introduce(Source& source);
  void fetch_peers(Source& source);
  void beat(Source& source);
  void introduced(const net::NodeRecord& record);
  void take_peers(const std::vector<net::NodeRecord>& records, std::vector<net::Contact> contacts);
  ReachKeeper::Ask dial_back_by(Source& source);
  void keep_reach();
  void reach_changed();
  void make_puncher();
  void punch_if_needed(std::vector<platform::Endpoint> relays);
  void punchable_changed();
  void held_at(std::optional<platform::Endpoint> relay, std::string trouble);
  void endpoints_changed();
  void find_relays();
  void reserve_at(const platform::Endpoint& relay, const nat::Tunnels::Ticket& answer);
  void keep_turn();
  void find_turn(const nat::Tunnels::Found& found);
  void turned(std::optional<platform::Endpoint> at, std::string trouble);
  void tell_own_place();
  bool relays_for_others() const;
  net::Hello own_hello() const;
  void make_table();
  void join_again();
  void renew_record();
  void publish_record();  // in the hash table, if somebody is known there
  bool capacity_changed() const;
  bool line_changed() const;
  void upkeep();
  void exchange_peers();
  void greet();
  bool placed() const;
  std::vector<net::Contact> strangers() const;  // who have not been told where this node is
  void keep_neighbours();
  std::unique_ptr<TimerHandle> later(Duration delay, std::function<void()> task);

  MemberServices services_;
  const MemberOptions options_;
  const net::NodeId id_;
  Rng rng_;
  net::NodeBook book_;
  std::unique_ptr<Puncher> puncher_;  // null: no tunnels
  PathTransport paths_;
  net::PeerPool pool_;
  Tracker tracker_;
  PublicAnswers answers_;
  Protocol protocol_, exchange_;
  std::unique_ptr<dht::DhtNode> dht_;
  GoodPeers good_;
  std::deque<FirstPeer> spares_;  // of the cache, whose turn has not come
  std::size_t untried_ = 0;       // of them
  std::vector<std::unique_ptr<Source>> sources_;
  net::NodeRecord record_;
  std::optional<Capacity> capacity_;
  SlotKeys slot_keys_;
  MonotonicTime record_made_{}, neighbours_kept_{};
  std::set<net::NodeId> told_;  // where this node is, or were tried
  std::size_t greetings_ = 0;   // at once, since this place is known
  bool greeting_ = false;
  ReachKeeper reach_;
  std::optional<platform::Endpoint> relay_;  // that this node can be called through
  std::string relay_trouble_;
  std::optional<platform::Endpoint> turn_;  // that this node is dialled at, by those whom it lets in
  std::string turn_trouble_;
  TurnDoor turn_door_;
  std::unique_ptr<TimerHandle> timer_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace neuroshard::swarm
