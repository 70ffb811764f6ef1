#include "core/sim/grouped_scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "core/rounds/dealing.h"
#include "core/sim/grouped_world.h"
#include "core/sim/scenario_run.h"

namespace neuroshard::sim {
namespace {

using std::chrono::seconds;

constexpr std::size_t most_that_check_signatures = 1000;  // each for itself; beyond, one for all

class GroupedRun final : public ScenarioRun {
 public:
  explicit GroupedRun(const ScenarioOptions& options) : ScenarioRun(options, timing(options)) {
    result_.shared = options.nodes >= shared_from;
    result_.groups = rounds::group_count(options.nodes);
  }

 private:
  static Timing timing(const ScenarioOptions& options);
  Population& make_world() override;
  bool dies_with(std::size_t from, ByteSpan bytes);
  double agreement_rate() const override { return world_->agreement_rate(); }
  rounds::RoundView view(std::size_t node) const override { return world_->node(node).view(); }
  void happen(std::uint64_t round) override;
  void kill_group();
  void look_at_certificates(std::uint64_t rounds) override;

  std::optional<GroupedWorld> world_;
  std::uint64_t killed_group_in_ = 0;
};

ScenarioRun::Timing GroupedRun::timing(const ScenarioOptions& options) {
  Timing timing;
  timing.liars = options.nodes / 8;
  timing.looked_at = 48;
  timing.event_round = 3;
  timing.cut = 8 * time_of_round(options) + seconds(60);
  timing.round_limit = 40 * time_of_round(options) + seconds(300);
  return timing;
}

Population& GroupedRun::make_world() {
  GroupedWorldOptions o;
  fill(o, o.round);
  o.shared = result_.shared;
  o.shared_signatures = options_.nodes > most_that_check_signatures;
  o.disks = is("churn") || is("leader-killed") || is("group-killed");
  o.round.provisional_after = 4 * round_time() + seconds(20);
  o.round.group_wait = seconds(5);
  o.round.group = {seconds(6), seconds(20)};
  // A leader fetches all aggregates, then all others do.
  o.round.fetches = std::max<std::size_t>(8, result_.groups / 8);
  o.round.top = {seconds(20 + result_.groups / 20), seconds(90)};
  world_.emplace(std::move(o), make_model(), make_distortion(), make_caller());
  if (lie_ || is("leader-killed"))
    world_->watch([this](std::size_t from, ByteSpan bytes) { return dies_with(from, bytes); });
  return *world_;
}

// The leader goes when its proposal has left for some.
bool GroupedRun::dies_with(std::size_t from, ByteSpan bytes) {
  if (lie_ && liar(from)) return false;
  const auto post = rounds::decode_grouped_post(bytes);
  if (!post.ok()) return false;
  if (const auto* group = std::get_if<rounds::GroupPost>(&*post); group && lie_) {
    if (const auto item = rounds::decode_item(group->item); item.ok()) overhear(*item);
  }
  const auto* proposal = std::get_if<rounds::GroupedProposal>(&*post);
  if (!is("leader-killed") || proposal == nullptr || !proposal->relay || !down_.empty()) return false;
  down_.push_back(from);
  return true;
}

// All members of one sub-group at once, in the middle of its round.
void GroupedRun::kill_group() {
  for (std::size_t i = 0; i < options_.nodes; ++i)
    if (world_->running(i)) {
      const rounds::Deal& deal = world_->node(i).deal();
      for (const rounds::RoundMember& member : *deal.groups[1]) down_.push_back(world_->index_of(member.id));
      break;
    }
  for (const std::size_t node : down_) world_->kill(node);
}

void GroupedRun::happen(std::uint64_t round) {
  if (is("churn")) {
    // One in twenty is away in every second round: killed in mid-round, back in the next.
    if (!down_.empty()) {
      revive();
    } else {
      for (std::size_t i = round % 20; i < options_.nodes; i += 20) down_.push_back(i);
      for (const std::size_t node : down_) world_->kill(node);
    }
  }
  if (is("leader-killed")) revive();
  if (is("group-killed")) {
    if (!down_.empty()) revive();
    if (round == 3) {
      killed_group_in_ = world_->newest_round() + 1;
      kill_group();
    }
  }
  if (is("corrupted-replica") && round == 3) world_->corrupt(options_.nodes - 1);
}

// Who tells nearly all of eight fellows the same has their quorum before the evidence: one payload counts
// then.
void GroupedRun::look_at_certificates(std::uint64_t rounds) {
  result_.certificate_bytes = world_->certificate_bytes();
  std::set<net::NodeId> lying;
  for (std::size_t i = options_.nodes - liars_; i < options_.nodes; ++i) lying.insert(world_->id(i));
  for (std::uint64_t r = 1; r <= rounds; ++r) {
    const rounds::GroupedBody* body = world_->body(r);
    if (body == nullptr) continue;
    result_.group_results += body->groups.size();
    if (r == killed_group_in_)
      expect(
          std::none_of(body->groups.begin(), body->groups.end(), [](const auto& g) { return g.group == 1; }),
          "the sub-group that was killed is in the certificate");
    for (const auto& group : body->groups)
      for (const auto& c : group.certificate.body.contributors)
        result_.liars_counted += lying.count(group.certificate.body.members[c.member].id);
  }
}

}  // namespace

Expected<ScenarioResult> run_grouped_scenario(const ScenarioOptions& options) {
  if (options.name == "corrupted-replica" && options.nodes >= shared_from)
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("the scenario \"corrupted-replica\" takes up to {} nodes: beyond, nodes "
                                  "share what they derive alike",
                                  shared_from - 1));
  if (options.name == "group-killed" && rounds::group_count(options.nodes) < 4)
    return make_error(
        ErrorCode::InvalidArgument,
        "the scenario \"group-killed\" takes 32 nodes or more: of three sub-groups none can be missing");
  return GroupedRun(options).run();
}

}  // namespace neuroshard::sim
