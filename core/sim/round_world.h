// A population that trains together in the simulated world: the round nodes of core/rounds as they are, with
// their signatures, on virtual time; and what is watched from outside, where all of it is seen at once:
// whether two certificates of a round ever differ, whether a contribution counts twice, and whether all hold
// the certified anchor.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "core/rounds/node.h"
#include "core/sim/population.h"

namespace neuroshard::sim {

struct RoundWorldOptions : PopulationOptions {
  rounds::RoundOptions round;  // genesis, rules' network and slot are filled in
  // Every node for itself: no genesis that all know. For the meeting of histories.
  bool found_alone = false;
};

class RoundWorld final : public Population {
 public:
  RoundWorld(RoundWorldOptions options, MakeModel make_model, MakeDistortion distortion = {},
             MakeCaller caller = {});

  void forget_disk(std::size_t node);
  void corrupt(std::size_t node) { flip_bits(node); }
  double agreement_rate() const;
  rounds::RoundNode& node(std::size_t node);
  const rounds::RoundNode& node(std::size_t node) const;
  const rounds::RoundBody* body(std::uint64_t round) const;

  // Called before a post of a node leaves: true kills the sender in this instant.
  using Watch = std::function<bool(std::size_t from, const rounds::RoundItem& item)>;
  void watch(Watch watch) { watch_ = std::move(watch); }

 private:
  std::unique_ptr<rounds::RoundEndpoint> make_node(std::size_t node, Host& host,
                                                   const rounds::RoundServices& services,
                                                   std::uint64_t seed) override;
  void begin(rounds::RoundEndpoint& node) override { static_cast<rounds::RoundNode&>(node).start(); }
  bool dies_with(std::size_t node, ByteSpan post) override;
  void certified(std::size_t node, const rounds::RoundChain& chain, const rounds::Anchor& state);

  const RoundWorldOptions options_;
  std::optional<rounds::RoundBody> genesis_;
  Watch watch_;
  // By genesis and round.
  std::map<std::pair<Hash256, std::uint64_t>, rounds::RoundBody> certificates_;
};

}  // namespace neuroshard::sim
