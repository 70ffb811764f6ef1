// What a simulated population of round nodes stands on, whatever their rounds are: hosts with keys,
// addresses, disks and trainers in one world, that are started, killed and cut off. The round nodes
// themselves, and what is watched from outside, are the derived class's (round_world.h, grouped_world.h).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "core/rounds/participant.h"
#include "core/sim/network.h"
#include "core/sim/round_trainer.h"
#include "core/sim/world.h"

namespace neuroshard::sim {

crypto::KeyPair key_of_node(std::uint64_t seed, std::size_t node);
platform::Endpoint endpoint_of_node(std::size_t node);

using Disk = std::map<rounds::RoundStore::Record, Bytes>;
using Alive = std::shared_ptr<bool>;
inline constexpr Duration usual_disk_time = std::chrono::milliseconds(1);  // of a write

// A write is on the disk when it is done, and lost with the node before.
class DiskStore final : public rounds::RoundStore {
 public:
  // disk: null remembers nothing. world and disk outlive it.
  DiskStore(World& world, Disk* disk, Duration time, Alive alive)
      : world_(world), disk_(disk), time_(time), alive_(alive) {}
  Expected<Bytes> load(Record record) override;
  void save(Record record, Bytes bytes, std::function<void(Expected<void>)> done) override;

 private:
  World& world_;
  Disk* const disk_;
  const Duration time_;
  const std::weak_ptr<bool> alive_;
};

// Computations take their time, all the same.
class TimedWork final : public rounds::RoundWork {
 public:
  TimedWork(World& world, Duration time, Alive alive) : world_(world), time_(time), alive_(alive) {}
  void run(std::function<void()> job, std::function<void()> done) override;

 private:
  World& world_;
  const Duration time_;
  const std::weak_ptr<bool> alive_;
};

// Everybody's address; some(): `some` of them, drawn.
using HostIndex = std::unordered_map<net::NodeId, std::size_t, net::NodeIdHash>;
class HostDirectory final : public rounds::RoundPeers {
 public:
  // ids: by node. Both outlive it.
  HostDirectory(const HostIndex& hosts, const std::vector<net::NodeId>& ids, std::size_t some,
                std::uint64_t seed)
      : hosts_(hosts), ids_(ids), some_(some), rng_(seed) {}
  std::optional<net::Contact> find(const net::NodeId& id) override;
  std::vector<net::Contact> some() override;
  void proven_liar(const net::NodeId& id) override { banned_.insert(id); }
  bool banned(const net::NodeId& id) const { return banned_.count(id) != 0; }

 private:
  std::set<net::NodeId> banned_;
  const HostIndex& hosts_;
  const std::vector<net::NodeId>& ids_;
  const std::size_t some_;
  Rng rng_;
};

struct PopulationOptions {
  std::uint64_t seed = 1;
  std::size_t nodes = 4;
  std::size_t founders = 0;  // members of the genesis; 0: all nodes
  NetworkOptions network;
  TrainerOptions trainer;
  Duration work_time = std::chrono::milliseconds(20);  // of a computation beside the protocol
  std::vector<float> initial;                          // the first anchor's weights
};

struct RoundWorldSeen {
  std::uint64_t rounds = 0;     // certified
  std::uint64_t conflicts = 0;  // certificates of one round of one history with different bodies
  std::uint64_t twice = 0;      // contributions of honest nodes in more than one certificate
  std::uint64_t fetched = 0, corruptions = 0, provisional = 0, evidence = 0;
  std::uint64_t contributions = 0;  // in certificates
  double worst_agreement = 1;       // of the rounds that honest nodes took
};

class Population {
 public:
  // lives: how often this node was started before.
  using MakeModel = std::function<std::unique_ptr<LocalModel>(std::size_t node, std::uint64_t lives)>;
  // How a liar changes what its node sends; null where honest. The caller given is the honest way out.
  using MakeCaller = std::function<std::unique_ptr<net::PeerCaller>(std::size_t node, net::PeerCaller& out,
                                                                    const crypto::KeyPair& key)>;
  // What a node answers, before it leaves.
  using Answers =
      std::function<void(std::size_t node, const net::Caller& to, net::Method method, Bytes* answer)>;
  using MakeDistortion = std::function<RoundTrainer::Distortion(std::size_t node)>;
  virtual ~Population();

  World& world() { return world_; }
  Network& network() { return network_; }
  std::size_t size() const { return hosts_.size(); }

  // A node's power button. What is on its disk survives.
  void start(std::size_t node);
  void kill(std::size_t node);
  bool running(std::size_t node) const { return hosts_.at(node)->alive != nullptr; }
  void set_step_time(std::size_t node,
                     Duration step_time);  // from its next start on
  void set_part(std::size_t node, int part);
  // Of a write, for nodes that are started from now on.
  void set_disk_time(Duration time) { disk_time_ = time; }
  void change_answers(Answers answers) { answers_ = std::move(answers); }
  void set_honest(std::size_t node, bool honest) { hosts_.at(node)->honest = honest; }

  // Runs until every running honest node has taken `round`, at most for `limit`; whether they did.
  bool run_to_round(std::uint64_t round, Duration limit);
  RoundTrainer& trainer(std::size_t node) { return *hosts_.at(node)->trainer; }
  const net::NodeId& id(std::size_t node) const { return hosts_.at(node)->id; }
  const crypto::KeyPair& key(std::size_t node) const { return hosts_.at(node)->key; }
  std::size_t index_of(const net::NodeId& id) const { return by_id_.at(id); }
  RoundWorldSeen seen() const;
  std::uint64_t newest_round() const { return newest_; }
  // The newest certified anchor; null before the first round.
  rounds::Anchor newest_anchor() const { return newest_anchor_; }

 protected:
  struct Host {
    explicit Host(crypto::KeyPair pair) : key(std::move(pair)), id(crypto::node_id(key.public_key())) {}
    const crypto::KeyPair key;
    const net::NodeId id;
    sim::Host address = 0;
    Disk disk;
    rounds::KnownState checkpoint;
    Duration step_time{};
    std::uint64_t lives = 0;
    bool honest = true;
    // Of one life; in the order of their making.
    Alive alive;
    std::unique_ptr<HostExecutor> executor;
    std::unique_ptr<LocalModel> model;
    std::unique_ptr<RoundTrainer> trainer;
    std::unique_ptr<HostDirectory> directory;
    std::unique_ptr<DiskStore> store;
    std::unique_ptr<TimedWork> work;
    std::unique_ptr<net::PeerCaller> watched, liar;
    std::unique_ptr<rounds::RoundEndpoint> node;

    void end();
  };

  // rules, outer: of the rounds. some: contacts that a directory gives to who knows nobody.
  Population(const PopulationOptions& options, const rounds::ParticipantOptions& round, std::size_t some,
             bool disks, MakeModel make_model, MakeDistortion distortion, MakeCaller caller);
  // A node for a host that is ready, with its seed; the derived class starts it in begin().
  virtual std::unique_ptr<rounds::RoundEndpoint> make_node(std::size_t node, Host& host,
                                                           const rounds::RoundServices& services,
                                                           std::uint64_t seed) = 0;
  virtual void begin(rounds::RoundEndpoint& node) = 0;
  // A post leaves: whether its sender dies in this instant.
  virtual bool dies_with(std::size_t node, ByteSpan post) = 0;

  bool honest(const net::NodeId& id) const;
  outer::AnchorIdentity identity(std::uint64_t round) const;
  Hash256 initial_hash() const { return rounds::hash_of(identity(0), *initial_); }
  std::vector<crypto::PublicKey> founders() const;
  void keep_checkpoint(std::size_t node, rounds::KnownState checkpoint);
  // Changes what the node holds in memory, as broken memory does.
  void flip_bits(std::size_t node);
  // Of (history, round): an honest node took this state, which should have `anchor`.
  void count_state(const Hash256& history, std::uint64_t round, const rounds::OuterState& state,
                   const Hash256& anchor);
  // A contribution is in the certificate of this round, seen for the first time.
  void count_contribution(const Hash256& history, std::uint64_t round, const net::NodeId& sender,
                          const Hash256& payload);
  void take_newest(std::uint64_t round, const rounds::Anchor& anchor);
  // Share of the running honest nodes that hold, bit for bit, the newest round's certified anchor.
  double share_holding(const std::function<const Hash256*(const rounds::RoundEndpoint&)>& anchor) const;

  const PopulationOptions population_;
  const Hash256 network_id_;
  const rounds::OuterRules outer_;
  const rounds::RoundSlot slot_;
  NullLogger logger_;
  World world_;
  Network network_;
  std::vector<std::unique_ptr<Host>> hosts_;
  HostIndex by_id_;
  rounds::Anchor initial_;
  rounds::Anchor newest_anchor_;
  std::uint64_t newest_ = 0;
  RoundWorldSeen seen_;

 private:
  class WatchedCaller;
  static void count(RoundWorldSeen* seen, const rounds::RoundEndpoint& node);

  const std::size_t some_;
  const bool disks_;
  Duration disk_time_ = usual_disk_time;
  MakeModel make_model_;
  MakeDistortion make_distortion_;
  MakeCaller make_caller_;
  Answers answers_;
  std::vector<net::NodeId> ids_;
  using InHistory = std::pair<Hash256, std::uint64_t>;                       // history and round
  std::map<std::pair<net::NodeId, Hash256>, std::set<InHistory>> payloads_;  // sender and payload
  std::map<InHistory, std::pair<std::size_t, std::size_t>> right_;           // of how many
};

}  // namespace neuroshard::sim
