// A population that trains together in fragments, in the simulated world: each node has what the real one has
// (rounds/fragment_nodes.h), one training and one line; and what is watched from outside.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/rounds/fragment_nodes.h"
#include "core/sim/fragment_trainer.h"
#include "core/sim/network.h"
#include "core/sim/population.h"

namespace neuroshard::sim {

struct FragmentWorldOptions {
  std::uint64_t seed = 1;
  std::size_t nodes = 4;
  std::size_t founders = 0;  // of the nodes, the first; the others join. 0: all
  std::size_t fragments = 4;
  NetworkOptions network;
  rounds::RoundOptions round;  // genesis, values and slot are filled in
  TrainerOptions trainer;
  Duration work_time = std::chrono::milliseconds(20);
  std::vector<float> initial;
};

struct FragmentWorldSeen {
  std::uint64_t conflicts = 0;  // certificates of one round of one fragment with different bodies
  std::uint64_t twice = 0;      // contributions in more than one certificate
  bool anchors_agree = true;    // whoever took a certificate held its anchor
  std::uint64_t certificates = 0, contributions = 0;  // of all fragments, and what they name
};

class FragmentWorld {
 public:
  using MakeModel = std::function<std::unique_ptr<LocalModel>(std::size_t node, std::uint64_t lives)>;
  FragmentWorld(FragmentWorldOptions options, MakeModel make_model);
  ~FragmentWorld();

  World& world() { return world_; }
  Network& network() { return network_; }
  void start(std::size_t node);
  // Votes, certificates and the newest anchors survive.
  void kill(std::size_t node);
  bool running(std::size_t node) const;

  // Until every running node has taken this round of every fragment; whether they did.
  bool run_to_round(std::uint64_t round, Duration limit);
  // All running nodes hold the same newest anchor of each fragment.
  bool agree() const;

  FragmentTrainer& trainer(std::size_t node);
  const rounds::FragmentNodes& nodes(std::size_t node) const;
  const rounds::RoundEndpoint& node(std::size_t node, std::size_t fragment) const;
  FragmentWorldSeen seen() const { return seen_; }
  // The newest certified anchors of all fragments, put together.
  std::vector<float> newest_weights() const;
  // When each certificate of a fragment was first taken, in virtual seconds.
  const std::vector<double>& certified_at(std::size_t fragment) const { return times_.at(fragment); }
  // Steps of this node's contributions in certificates of a fragment.
  std::uint64_t steps_named(std::size_t node, std::size_t fragment) const;

 private:
  struct Host;
  void certified(std::size_t node, std::size_t fragment, const rounds::RoundChain& chain,
                 const rounds::Anchor& state);

  const FragmentWorldOptions options_;
  const std::vector<rounds::Fragment> fragments_;
  NullLogger logger_;
  World world_;
  Network network_;
  MakeModel make_model_;
  std::vector<std::unique_ptr<Host>> hosts_;
  HostIndex by_id_;
  std::vector<net::NodeId> ids_;
  std::vector<rounds::KnownState> initial_;  // by fragment
  std::vector<rounds::RoundBody> genesis_;
  std::vector<rounds::KnownState> newest_;
  std::vector<std::vector<double>> times_;
  std::map<std::pair<std::size_t, std::uint64_t>, rounds::RoundBody> bodies_;  // by fragment and round
  std::map<std::pair<net::NodeId, Hash256>, std::pair<std::size_t, std::uint64_t>> counted_;
  FragmentWorldSeen seen_;
};

}  // namespace neuroshard::sim
