// A population of nodes in rounds of two levels (rounds/grouped_node.h) in the simulated world, and what is
// watched from outside: as RoundWorld is for small groups.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "core/rounds/grouped_node.h"
#include "core/sim/network.h"
#include "core/sim/round_trainer.h"
#include "core/sim/round_world.h"
#include "core/sim/world.h"

namespace neuroshard::sim {

struct GroupedWorldOptions {
  std::uint64_t seed = 1;
  std::size_t nodes = 100;
  std::size_t founders = 0;  // members of the genesis; 0: all nodes
  NetworkOptions network;
  rounds::GroupedOptions round;  // genesis is filled in
  TrainerOptions trainer;
  Duration work_time = std::chrono::milliseconds(20);
  std::vector<float> initial;
  bool shared = false;    // what all derive alike is computed once (shared_commons.h)
  bool disks = true;      // nodes remember over a restart
  std::size_t least = 0;  // signatures that decide above; 0: more than two thirds. For negative controls.
};

class GroupedWorld {
 public:
  GroupedWorld(GroupedWorldOptions options, RoundWorld::MakeModel make_model,
               RoundWorld::MakeDistortion distortion = {}, RoundWorld::MakeCaller caller = {});
  ~GroupedWorld();

  World& world() { return world_; }
  Network& network() { return network_; }
  std::size_t size() const { return hosts_.size(); }

  void start(std::size_t node);
  void kill(std::size_t node);
  bool running(std::size_t node) const;
  void set_part(std::size_t node, int part);
  void set_honest(std::size_t node, bool honest);
  void set_step_time(std::size_t node, Duration step_time);  // from its next start on
  void corrupt(std::size_t node);                            // only where nothing is shared

  // Runs until every running honest member has taken `round`, at most for `limit`; whether they did.
  bool run_to_round(std::uint64_t round, Duration limit);
  double agreement_rate() const;

  const rounds::GroupedNode& node(std::size_t node) const;
  RoundTrainer& trainer(std::size_t node);
  const net::NodeId& id(std::size_t node) const;
  std::size_t index_of(const net::NodeId& id) const { return by_id_.at(id); }
  RoundWorldSeen seen() const;
  std::uint64_t newest_round() const { return newest_; }
  rounds::Anchor newest_anchor() const { return newest_anchor_; }
  const rounds::GroupedBody* body(std::uint64_t round) const;
  // Of the newest certificate, in bytes.
  std::size_t certificate_bytes() const { return certificate_bytes_; }

  // Called before a post of a node leaves: true kills the sender in this instant.
  using Watch = std::function<bool(std::size_t from, ByteSpan post)>;
  void watch(Watch watch) { watch_ = std::move(watch); }

 private:
  struct Host;
  class Directory;
  class Store;
  class Work;
  class WatchedCaller;
  bool honest(const net::NodeId& id) const;
  void certified(std::size_t node, const rounds::GroupedLinkPtr& link, const rounds::Anchor& state);
  void count(RoundWorldSeen* seen, const rounds::GroupedNode& node) const;

  const GroupedWorldOptions options_;
  NullLogger logger_;
  World world_;
  Network network_;
  RoundWorld::MakeModel make_model_;
  RoundWorld::MakeDistortion make_distortion_;
  RoundWorld::MakeCaller make_caller_;
  std::unique_ptr<rounds::GroupedCommons> commons_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::map<net::NodeId, std::size_t> by_id_;
  rounds::Anchor initial_;
  rounds::GroupedBase genesis_;
  Watch watch_;
  std::map<std::uint64_t, rounds::GroupedLinkPtr> links_;  // as the first node took them
  std::map<std::pair<net::NodeId, Hash256>, std::set<std::uint64_t>> payloads_;
  std::map<std::uint64_t, std::pair<std::size_t, std::size_t>> right_;
  rounds::Anchor newest_anchor_;
  std::uint64_t newest_ = 0;
  std::size_t certificate_bytes_ = 0;
  RoundWorldSeen seen_;
};

}  // namespace neuroshard::sim
