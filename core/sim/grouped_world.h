// A population of nodes in rounds of two levels (rounds/grouped_node.h) in the simulated world, and what is
// watched from outside: as RoundWorld is for small groups.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "core/rounds/grouped_node.h"
#include "core/sim/population.h"

namespace neuroshard::sim {

struct GroupedWorldOptions : PopulationOptions {
  rounds::GroupedOptions round;    // base is filled in
  bool shared = false;             // what all derive alike is computed once (shared_commons.h)
  bool shared_signatures = false;  // and every signature checked once, with `shared`
  bool disks = true;               // nodes remember over a restart
  std::size_t least = 0;  // signatures that decide above; 0: more than two thirds. For negative controls.
};

class GroupedWorld final : public Population {
 public:
  GroupedWorld(GroupedWorldOptions options, MakeModel make_model, MakeDistortion distortion = {},
               MakeCaller caller = {});
  ~GroupedWorld() override;

  void corrupt(std::size_t node);  // only where nothing is shared
  double agreement_rate() const;
  const rounds::GroupedNode& node(std::size_t node) const;
  const rounds::GroupedBody* body(std::uint64_t round) const;
  // Of the newest certificate, in bytes.
  std::size_t certificate_bytes() const { return certificate_bytes_; }

  // Called before a post of a node leaves: true kills the sender in this instant.
  using Watch = std::function<bool(std::size_t from, ByteSpan post)>;
  void watch(Watch watch) { watch_ = std::move(watch); }

 private:
  std::unique_ptr<rounds::RoundEndpoint> make_node(std::size_t node, Host& host,
                                                   const rounds::RoundServices& services,
                                                   std::uint64_t seed) override;
  void begin(rounds::RoundEndpoint& node) override { static_cast<rounds::GroupedNode&>(node).start(); }
  bool dies_with(std::size_t node, ByteSpan post) override { return watch_ && watch_(node, post); }
  void certified(std::size_t node, const rounds::RoundChain& chain, const rounds::Anchor& state);

  const GroupedWorldOptions options_;
  std::unique_ptr<rounds::GroupedCommons> commons_;
  rounds::ChainBase genesis_;
  Watch watch_;
  std::map<std::uint64_t, rounds::GroupedLinkPtr> links_;  // as the first node took them
  std::size_t certificate_bytes_ = 0;
};

}  // namespace neuroshard::sim
