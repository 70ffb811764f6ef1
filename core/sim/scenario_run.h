// One run of a scenario: its rounds one after the other, with what happens in them, what liars send, and what
// must hold at the end. How rounds are made, in one group or in two levels, is the derived class's.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/outer/aggregate.h"
#include "core/outer/attack.h"
#include "core/outer/soft_learner.h"
#include "core/sim/population.h"
#include "core/sim/round_liar.h"
#include "core/sim/scenario.h"

namespace neuroshard::sim {

class ScenarioRun {
 public:
  virtual ~ScenarioRun() = default;
  // Once. Cancelled: by the options' `stop`.
  Expected<ScenarioResult> run();

 protected:
  // What differs by the sort of rounds.
  struct Timing {
    std::size_t liars = 0;          // where the scenario has any and the options name no number
    std::size_t looked_at = 0;      // deltas whose cosines are taken, and that liars know of, at most
    std::uint64_t event_round = 4;  // of the cut and of the late joiner
    Duration cut{};                 // how long the halves are apart
    Duration round_limit{};         // until all have taken a round
  };
  ScenarioRun(const ScenarioOptions& options, Timing timing);

  // Makes the population, watched; run() starts its nodes.
  virtual Population& make_world() = 0;
  virtual double agreement_rate() const = 0;
  virtual rounds::RoundView view(std::size_t node) const = 0;
  // What only these rounds have, in the middle of a round's training; and at the end.
  virtual void happen(std::uint64_t round) = 0;
  virtual void look_at_certificates(std::uint64_t rounds) = 0;

  void fill(PopulationOptions& population, rounds::ParticipantOptions& round) const;
  Population::MakeModel make_model() const;
  Population::MakeDistortion make_distortion();
  Population::MakeCaller make_caller();
  // An honest node's contribution passes by: liars listen.
  void overhear(const rounds::RoundItem& item);
  void revive();

  bool is(std::string_view name) const { return options_.name == name; }
  bool liar(std::size_t node) const { return node >= options_.nodes - liars_; }
  void expect(bool holds, std::string_view what) {
    if (!holds) result_.broken.emplace_back(what);
  }
  static Duration time_of_round(const ScenarioOptions& options);  // that its training takes
  Duration round_time() const { return time_of_round(options_); }

  const ScenarioOptions options_;
  std::size_t liars_ = 0;
  std::optional<Lie> lie_;
  std::vector<std::size_t> down_;  // killed, to be started again
  ScenarioResult result_;

 private:
  void play();
  void round(std::uint64_t number);
  void before_end_of(std::uint64_t round);
  void set_halves(bool apart);
  void measure_cosine();
  std::vector<std::vector<float>> honest_deltas() const;
  void forge_round(std::uint64_t round);
  void finish();
  void count();
  void check();

  const Timing timing_;
  std::shared_ptr<const outer::SoftTask> task_;
  outer::SoftLearnerOptions learner_;
  std::optional<outer::Attack> attack_;
  Overheard heard_;
  outer::AggregationOptions rule_;
  std::uint64_t forged_round_ = 0;
  std::vector<outer::ForgedDelta> forged_;
  Population* population_ = nullptr;
};

}  // namespace neuroshard::sim
