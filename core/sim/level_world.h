// A population whose rounds change between one group and two levels as its members come and go
// (rounds/level_node.h), in the simulated world, and what is watched from outside.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "core/rounds/level_node.h"
#include "core/sim/population.h"

namespace neuroshard::sim {

struct LevelWorldOptions : PopulationOptions {
  rounds::LevelOptions round;  // genesis is filled in
  // No genesis that all know: whoever finds nobody begins one.
  bool found_alone = false;
};

class LevelWorld final : public Population {
 public:
  LevelWorld(LevelWorldOptions options, MakeModel make_model);
  ~LevelWorld() override;

  rounds::LevelNode& node(std::size_t node);
  const rounds::LevelNode& node(std::size_t node) const;
  double agreement_rate() const;
  // Rounds of two levels that were certified.
  std::uint64_t grouped_rounds() const { return grouped_rounds_; }
  // The newest certificate's bytes as a chain keeps it.
  std::size_t certificate_bytes() const { return certificate_bytes_; }

 private:
  std::unique_ptr<rounds::RoundEndpoint> make_node(std::size_t node, Host& host,
                                                   const rounds::RoundServices& services,
                                                   std::uint64_t seed) override;
  void begin(rounds::RoundEndpoint& node) override { static_cast<rounds::LevelNode&>(node).start(); }
  bool dies_with(std::size_t, ByteSpan) override { return false; }
  void certified(std::size_t node, const rounds::RoundChain& chain, const rounds::Anchor& state);

  const LevelWorldOptions options_;
  std::optional<rounds::RoundBody> genesis_;
  struct Certified {
    Hash256 tip{}, anchor{};
  };
  std::map<std::pair<Hash256, std::uint64_t>, Certified> certificates_;  // by genesis and round
  std::uint64_t grouped_rounds_ = 0;
  std::size_t certificate_bytes_ = 0;
};

}  // namespace neuroshard::sim
