// A population that trains together in the simulated world: the round nodes of core/rounds as they are, with
// their signatures, on virtual time; and what is watched from outside, where all of it is seen at once:
// whether two certificates of a round ever differ, whether a contribution counts twice, and whether all hold
// the certified anchor.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "core/rounds/node.h"
#include "core/sim/network.h"
#include "core/sim/round_trainer.h"
#include "core/sim/world.h"

namespace neuroshard::sim {

struct RoundWorldOptions {
  std::uint64_t seed = 1;
  std::size_t nodes = 4;
  std::size_t founders = 0;  // members of the genesis; 0: all nodes
  NetworkOptions network;
  rounds::RoundOptions round;  // genesis, rules' network and slot are filled in
  TrainerOptions trainer;
  Duration work_time = std::chrono::milliseconds(20);  // of a computation beside the protocol
  std::vector<float> initial;                          // the first anchor's weights
  // Every node for itself: no genesis that all know. For the meeting of histories.
  bool found_alone = false;
};

struct RoundWorldSeen {
  std::uint64_t rounds = 0;     // certified
  std::uint64_t conflicts = 0;  // certificates of one round of one history with different bodies
  std::uint64_t twice = 0;      // contributions of honest nodes in more than one certificate
  std::uint64_t fetched = 0, corruptions = 0, provisional = 0, evidence = 0;
  std::uint64_t contributions = 0;  // in certificates
  double worst_agreement = 1;       // of the rounds that honest nodes took
};

class RoundWorld {
 public:
  // lives: how often this node was started before.
  using MakeModel = std::function<std::unique_ptr<LocalModel>(std::size_t node, std::uint64_t lives)>;
  // How a liar changes what its node sends; null where honest. The caller given is the honest way out.
  using MakeCaller = std::function<std::unique_ptr<net::PeerCaller>(std::size_t node, net::PeerCaller& out,
                                                                    const crypto::KeyPair& key)>;
  using MakeDistortion = std::function<RoundTrainer::Distortion(std::size_t node)>;

  RoundWorld(RoundWorldOptions options, MakeModel make_model, MakeDistortion distortion = {},
             MakeCaller caller = {});
  ~RoundWorld();

  World& world() { return world_; }
  Network& network() { return network_; }
  std::size_t size() const { return hosts_.size(); }

  // A node's power button. Votes, certificates and the newest state survive, as on a disk.
  void start(std::size_t node);
  void kill(std::size_t node);
  bool running(std::size_t node) const;
  void set_step_time(std::size_t node, Duration step_time);  // from its next start on
  void set_part(std::size_t node, int part);
  void forget_disk(std::size_t node);
  // Flips bits of the anchor that the node holds in memory, as broken memory does.
  void corrupt(std::size_t node);
  void set_honest(std::size_t node, bool honest);

  // Runs until every running honest node has taken `round`, at most for `limit`; whether they did.
  bool run_to_round(std::uint64_t round, Duration limit);
  // Share of the running honest nodes that hold, bit for bit, the anchor of the newest certificate.
  double agreement_rate() const;

  rounds::RoundNode& node(std::size_t node);
  const rounds::RoundNode& node(std::size_t node) const;
  RoundTrainer& trainer(std::size_t node);
  const net::NodeId& id(std::size_t node) const;
  const crypto::KeyPair& key(std::size_t node) const;
  RoundWorldSeen seen() const;
  std::uint64_t newest_round() const;
  // The newest certified anchor; null before the first round.
  rounds::Anchor newest_anchor() const { return newest_anchor_; }
  const rounds::RoundBody* body(std::uint64_t round) const;

  // Called before a post of a node leaves: true kills the sender in this instant.
  using Watch = std::function<bool(std::size_t from, const rounds::RoundItem& item)>;
  void watch(Watch watch) { watch_ = std::move(watch); }

 private:
  bool honest(const net::NodeId& id) const;
  struct Host;
  class Directory;
  class Store;
  class Work;
  class WatchedCaller;

  void certified(std::size_t node, const rounds::RoundCertificate& certificate, const rounds::Anchor& state,
                 const rounds::StepResult* step);

  const RoundWorldOptions options_;
  NullLogger logger_;
  World world_;
  Network network_;
  MakeModel make_model_;
  MakeDistortion make_distortion_;
  MakeCaller make_caller_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::map<net::NodeId, std::size_t> by_id_;
  rounds::Anchor initial_;
  std::optional<rounds::RoundBody> genesis_;
  Watch watch_;
  // By genesis and round.
  std::map<std::pair<Hash256, std::uint64_t>, rounds::RoundBody> certificates_;
  // Where each contribution is counted: sender and payload to histories and rounds.
  std::map<std::pair<net::NodeId, Hash256>, std::set<std::pair<Hash256, std::uint64_t>>> payloads_;
  std::map<std::pair<Hash256, std::uint64_t>, std::pair<std::size_t, std::size_t>> right_;  // of how many
  rounds::Anchor newest_anchor_;
  std::uint64_t newest_ = 0;
  RoundWorldSeen seen_;
};

}  // namespace neuroshard::sim
