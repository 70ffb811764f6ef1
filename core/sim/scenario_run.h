// One run of a scenario: its rounds one after the other, what happens in them, what Byzantine nodes send, and
// what must hold at the end.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/outer/soft_learner.h"
#include "core/sim/byzantine_caller.h"
#include "core/sim/chain_world.h"
#include "core/sim/scenario.h"
#include "core/sim/scenario_values.h"

namespace neuroshard::sim {

inline constexpr Duration scenario_step_time = std::chrono::milliseconds(200);
inline constexpr std::uint64_t scenario_rounds_apart = 5;  // of a cut or a night

// How many nodes are Byzantine.
std::size_t byzantine_of(const ScenarioOptions& options);

class ScenarioRun {
 public:
  explicit ScenarioRun(const ScenarioOptions& options);
  // Once. Cancelled: by the options' `stop`.
  Expected<ScenarioResult> run();

 private:
  class LeaderWatch;  // the way out of a node that dies when it proposes
  class SilentCaller;

  bool is(std::string_view name) const { return options_.name == name; }
  bool is_byzantine(std::size_t node) const { return node >= options_.nodes - byzantine_; }
  void expect(bool holds, std::string_view what) {
    if (!holds) result_.broken.emplace_back(what);
  }
  Duration round_time() const;
  ChainWorldOptions world_options() const;
  void make_world();
  std::unique_ptr<net::PeerCaller> make_caller(std::size_t node, net::PeerCaller& out,
                                               const crypto::KeyPair& key);

  // ---- What happens
  void play();
  void round(std::uint64_t number);
  void before_end_of(std::uint64_t number);
  void cut_in_halves();
  void sleep_and_wake();
  void corrupt(std::size_t node);
  bool dies_with_proposal(std::size_t node);
  void revive();

  // ---- What is seen
  std::uint64_t newest_round() const;
  bool in_committee(std::size_t node) const;
  std::vector<std::vector<float>> honest_deltas() const;
  void count();
  void count_nodes();
  void check();

  const ScenarioOptions options_;
  const std::size_t byzantine_;
  const std::optional<Lie> lie_;
  std::shared_ptr<const outer::SoftTask> task_;
  outer::SoftLearnerOptions learner_;
  outer::AggregationOptions rule_;
  Overheard heard_;
  std::map<chain::Verdict, std::uint64_t> answers_;  // to lies
  std::optional<ValueAttack> attack_;
  std::vector<std::size_t> down_;  // killed, to be started again
  std::uint64_t leader_died_in_ = 0, proposals_ = 0;
  ScenarioResult result_;
  std::unique_ptr<ChainWorld> world_;
};

}  // namespace neuroshard::sim
