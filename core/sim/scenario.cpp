#include "core/sim/scenario.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/rounds/dealing.h"
#include "core/sim/grouped_scenario.h"
#include "core/sim/round_world.h"
#include "core/sim/scenario_lies.h"
#include "core/sim/scenario_run.h"

namespace neuroshard::sim {
namespace {

using std::chrono::seconds;

// Rounds of one group.
class Run final : public ScenarioRun {
 public:
  explicit Run(const ScenarioOptions& options) : ScenarioRun(options, timing(options)) {}

 private:
  static Timing timing(const ScenarioOptions& options);
  Population& make_world() override;
  bool dies_with(std::size_t from, const rounds::RoundItem& item);
  double agreement_rate() const override { return world_->agreement_rate(); }
  rounds::RoundView view(std::size_t node) const override { return world_->node(node).view(); }
  void happen(std::uint64_t round) override;
  void look_at_certificates(std::uint64_t rounds) override;

  std::optional<RoundWorld> world_;
  std::uint64_t leader_died_in_ = 0;  // the round
};

ScenarioRun::Timing Run::timing(const ScenarioOptions& options) {
  Timing timing;
  timing.liars = options.nodes / 4;
  timing.looked_at = options.nodes;
  timing.event_round = 4;
  timing.cut = 4 * time_of_round(options);
  timing.round_limit = 40 * time_of_round(options) + seconds(120);  // calls that are lost take their 5 s
  return timing;
}

Population& Run::make_world() {
  RoundWorldOptions o;
  fill(o, o.round);
  o.round.provisional_after = 2 * round_time();
  o.round.agreement = {seconds(6), seconds(20)};
  world_.emplace(std::move(o), make_model(), make_distortion(), make_caller());
  world_->watch([this](std::size_t from, const rounds::RoundItem& item) { return dies_with(from, item); });
  return *world_;
}

// The leader goes when its first proposal leaves: some have it, others don't.
bool Run::dies_with(std::size_t from, const rounds::RoundItem& item) {
  if (lie_ && !liar(from)) overhear(item);
  const auto* proposal = std::get_if<rounds::ProposalPost>(&item);
  if (!is("leader-killed") || proposal == nullptr || !down_.empty()) return false;
  // One in each round: where three members are left, two deaths in a row would leave nobody to propose.
  if (proposal->body.round <= leader_died_in_) return false;
  leader_died_in_ = proposal->body.round;
  down_.push_back(from);
  return true;
}

void Run::happen(std::uint64_t round) {
  if (is("churn")) {
    // One is away in every second round: killed in mid-round, back in the next.
    if (!down_.empty()) {
      revive();
    } else {
      down_.push_back((round / 2) % options_.nodes);
      world_->kill(down_.back());
    }
  }
  if (is("leader-killed")) revive();
  if (is("corrupted-replica") && round == 5) world_->corrupt(options_.nodes - 1);
}

void Run::look_at_certificates(std::uint64_t rounds) {
  for (std::uint64_t r = 1; r <= rounds; ++r) {
    const rounds::RoundBody* body = world_->body(r);
    if (body == nullptr) continue;
    for (const auto& c : body->contributors)
      for (std::size_t i = options_.nodes - liars_; i < options_.nodes; ++i)
        if (body->members[c.member].id == world_->id(i)) ++result_.liars_counted;
  }
  // Who tells all but a few the same has a quorum for it before the evidence is there: one payload counts
  // then, in the rounds until everybody has proof.
  if (lie_ == Lie::TwoPayloads)
    expect(result_.liars_counted <= liars_, "a sender of two payloads was counted again and again");
  if (is("corrupted-replica")) expect(result_.corruptions == 1, "the broken anchor was found more than once");
}

std::size_t liars_of(const ScenarioOptions& options) {
  if (!attack_of(options.name) && !lie_of(options.name)) return 0;
  return options.liars != 0 ? options.liars : options.nodes / 4;
}

Expected<void> check(const ScenarioOptions& options) {
  const auto& all = scenarios();
  if (std::none_of(all.begin(), all.end(), [&](const auto& s) { return s.name == options.name; })) {
    std::string names;
    for (const ScenarioInfo& s : all) names += fmt::format("{}{}", names.empty() ? "" : ", ", s.name);
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("there is no scenario \"{}\"; there are {}", options.name, names));
  }
  const std::size_t most = options.one_group ? rounds::max_round_members : rounds::max_grouped_members;
  if (options.nodes < 4 || options.nodes > most || options.rounds < 1 || options.rounds > 10'000 ||
      options.inner_steps < 1 || options.inner_steps > 10'000 || options.loss < 0 || options.loss > 0.9 ||
      3 * liars_of(options) >= options.nodes)
    return make_error(
        ErrorCode::InvalidArgument,
        fmt::format("a simulation takes 4 to {} nodes{}, 1 to 10,000 rounds and steps, a loss of 0 "
                    "to 0.9, and fewer liars than a third",
                    most, options.one_group ? " in one group" : ""));
  return {};
}

}  // namespace

const std::vector<ScenarioInfo>& scenarios() {
  static const std::vector<ScenarioInfo> all = {
      {"clean", "nothing happens"},
      {"churn", "one node is killed in the middle of a round and back in the next, another each time"},
      {"lossy", "30 % of all messages are lost"},
      {"partition", "the network is cut in two halves for four rounds, then healed"},
      {"leader-killed", "each leader dies while it proposes and comes back a round later"},
      {"group-killed", "all members of a sub-group are killed in the third round and back in the next"},
      {"late-joiner", "a node joins in the fourth round"},
      {"corrupted-replica", "the memory of one node changes its anchor in the fifth round"},
      {"slow-node", "one node computes at a quarter of the others' speed"},
      {"sign-flip", "liars send minus the honest mean"},
      {"sign-flip-10", "liars send minus ten times the honest mean"},
      {"alie", "liars hide a little below the honest spread"},
      {"inner-product", "inner-product manipulation"},
      {"gaussian", "liars send strong noise"},
      {"zero", "liars send nothing, for full credit"},
      {"mimic", "liars repeat one honest node"},
      {"nan", "liars send what is no number"},
      {"inflated-tokens", "liars claim 10^12 tokens"},
      {"sybil", "liars send one random direction, all the same"},
      {"two-payloads", "liars send different deltas to different members"},
      {"replay", "liars send what they heard again in later rounds"},
      {"stale-base", "liars send deltas from another anchor"},
      {"copied-delta", "liars send another node's delta as theirs"},
      {"view-jump", "liars claim views that nobody is in, and propose nothing when they lead"},
      {"false-proof", "liars bring made-up proof of two payloads against the others"},
      {"false-votes", "liars vote for bodies that nobody proposed, as often as they may"},
  };
  return all;
}

Expected<ScenarioResult> run_scenario(const ScenarioOptions& options) {
  NS_RETURN_IF_ERROR(check(options));
  if (!options.one_group && options.nodes >= rounds::least_grouped_members) {
    if (options.sync != rounds::RoundSync::Plain)
      return make_error(ErrorCode::InvalidArgument,
                        "rounds of two levels know plain sync only; take --one-group, up to 64 nodes");
    return run_grouped_scenario(options);
  }
  if (options.name == "group-killed")
    return make_error(ErrorCode::InvalidArgument, "the scenario \"group-killed\" takes 32 nodes or more");
  return Run(options).run();
}

}  // namespace neuroshard::sim
