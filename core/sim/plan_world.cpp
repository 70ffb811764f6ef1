#include "core/sim/plan_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/rng.h"
#include "core/plan/placeable.h"
#include "core/plan/schedule.h"
#include "core/sim/slot_transfers.h"
#include "core/sim/unit_owners.h"

namespace neuroshard::sim {
namespace {

using plan::UnitRange;

constexpr double step_seconds = 30;
constexpr std::size_t measurements = 3;     // of a node's speed, by others, in a round
constexpr double measurement_error = 0.15;  // at most, either way
constexpr double hour = 3'600;

struct Node : TransferNode {
  const Home* home = nullptr;
  std::size_t session = 0;
  bool present = false;
  double since = 0;    // of the session
  UnitRange assigned;  // by the newest plan
  UnitRange serving;
  bool dealt = false;
  UnitSet stale;      // that it had when it left; older than the others' state
  double unused = 0;  // bytes fetched and not served yet
  std::vector<double> measured;
  std::optional<std::uint64_t> proven;  // bytes of memory, of a node that could not hold what it was given

  double leaves() const { return static_cast<double>(home->sessions[session].to); }
  bool returns() const { return session + 1 < home->sessions.size(); }
};

class PlanWorld {
 public:
  explicit PlanWorld(const PlanWorldOptions& options)
      : o_(options), homes_(make_homes(options.homes)), rng_(options.homes.seed + 1), nodes_(homes_.size()) {
    std::map<std::string_view, std::uint32_t> owners;
    for (std::size_t i = 0; i < homes_.size(); ++i) {
      Node& node = nodes_[i];
      node.home = &homes_[i];
      node.up = homes_[i].peer.up * o_.transfer_share;
      node.down = homes_[i].peer.down * o_.transfer_share;
      const auto next = static_cast<std::uint32_t>(owners.size());
      owner_.push_back(owners.try_emplace(homes_[i].peer.owner, next).first->second);
    }
    make_chain_ = [this](const compute::ModelShape& shape) {
      return plan::Chain::of_shape(o_.rules, shape, o_.boundary_bytes(shape));
    };
  }

  Expected<PlanWorldResult> run() {
    come_and_go();
    NS_RETURN_IF_ERROR(begin());
    const double end = o_.homes.hours * hour;
    double next_round = o_.round_seconds;
    while (now_ < end) {
      if (o_.stop.cancelled()) return make_error(ErrorCode::Cancelled, "the simulation was stopped");
      pass(std::min({step_seconds, next_round - now_, end - now_}));
      come_and_go();
      keep_units();
      if (now_ + 1e-6 < next_round) continue;
      next_round += o_.round_seconds;
      NS_RETURN_IF_ERROR(round());
    }
    result_.shape = shape_;
    result_.units = chain_->size();
    result_.homes = homes_.size();
    result_.present_at_end = present().size();
    if (rounds_with_units_ > 0) result_.short_share /= rounds_with_units_;
    return std::move(result_);
  }

 private:
  // The nodes at the start have what the first plan gives them.
  Expected<void> begin() {
    std::vector<plan::PlanPeer> peers;
    for (const Node* node : present()) peers.push_back(counted(*node));
    if (peers.empty()) return make_error(ErrorCode::Exhausted, "no home is there at the start");
    shape_ = o_.shape ? *o_.shape : plan::placeable_shape(o_.rules, peers, o_.plan, make_chain_).shape;
    NS_ASSIGN_OR_RETURN(chain_, make_chain_(shape_));
    NS_RETURN_IF_ERROR(plan_nodes(true));
    for (Node* node : present()) {
      node->has = set_of(node->wanted);
      node->serving = node->wanted;
      archived_ |= node->has;
      if (!(node->wanted == node->assigned)) prove(*node);
    }
    archived_.flip();  // everybody can compute what no node has yet
    serve();
    return {};
  }

  std::vector<Node*> present() {
    std::vector<Node*> found;
    for (Node& node : nodes_)
      if (node.present) found.push_back(&node);
    return found;
  }

  void come_and_go() {
    for (Node& node : nodes_) {
      if (node.present && node.leaves() <= now_) leave(node);
      // A session that was shorter than a step is over before it was seen.
      const std::vector<Session>& sessions = node.home->sessions;
      while (!node.present && node.session < sessions.size() && node.leaves() <= now_) ++node.session;
      if (node.present || node.session >= sessions.size()) continue;
      if (static_cast<double>(sessions[node.session].from) > now_) continue;
      node.present = true;
      node.since = now_;
      if (now_ > 0) ++result_.arrivals;
    }
    result_.most_present = std::max(result_.most_present, present().size());
  }

  void leave(Node& node) {
    ++result_.departures;
    result_.unused_bytes += node.unused;
    node.stale = node.returns() ? node.has | node.stale : UnitSet{};
    node.present = false;
    ++node.session;
    node.has.reset();
    node.gives.reset();
    node.assigned = node.serving = node.wanted = {};
    node.progress = node.unused = 0;
    node.dealt = false;
    changed_ = true;
  }

  // A unit that nobody has comes back from a node that was away, waits for one, or is lost and comes from an archive.
  void keep_units() {
    if (!changed_) return;
    UnitSet had = archived_;
    for (const Node& node : nodes_) had |= node.has;
    for (std::uint32_t unit = 0; unit < chain_->size(); ++unit) {
      if (had.test(unit)) continue;
      bool comes_back = false;
      for (Node& node : nodes_) {
        if (!node.stale.test(unit)) continue;
        comes_back = true;
        if (node.present) node.has.set(unit);
      }
      if (comes_back) continue;
      ++result_.lost;
      archived_.set(unit);
    }
    serve();
  }

  // Sets anew which units the nodes give and train, after any change.
  void serve() {
    changed_ = false;
    UnitSet served;
    std::vector<plan::Holder> holders;
    for (const Node* node : present()) {
      served |= set_of(node->serving);
      const plan::PlanPeer peer = for_training(node->home->peer);
      holders.push_back({node->serving, peer.speed, std::min(peer.up, peer.down)});
    }
    for (Node* node : present()) node->gives = set_of(node->serving) | (node->has & ~served);
    archived_ &= ~served;
    throughput_ = plan::best_schedule(*chain_, holders).throughput;
    const bool stands = throughput_ <= 0;
    if (stands && !stands_) ++result_.stalls;
    stands_ = stands;
  }

  void pass(double seconds) {
    result_.tokens += throughput_ * seconds;
    result_.bound_tokens += bound_ * seconds;
    if (stands_) result_.stalled_seconds += seconds;
    std::vector<TransferNode*> nodes;
    for (Node* node : present()) nodes.push_back(node);
    std::vector<UnitSet> before;
    for (const TransferNode* node : nodes) before.push_back(node->has);
    result_.bytes += transfer(*chain_, nodes, archived_, seconds);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const UnitSet fresh = nodes[i]->has & ~before[i];
      for (std::uint32_t unit = 0; fresh.any() && unit < chain_->size(); ++unit)
        if (fresh.test(unit))
          static_cast<Node*>(nodes[i])->unused += static_cast<double>(chain_->unit(unit).transfer_bytes);
    }
    now_ += seconds;
  }

  Expected<void> round() {
    ++result_.rounds;
    switch_ranges();
    measure();
    note_owners();
    serve();
    result_.throughput.push_back(throughput_);
    if (o_.grows) NS_RETURN_IF_ERROR(change_shape());
    return plan_nodes(false);
  }

  // Nodes that have all of their new range go over to it, where two owners of what they leave stay.
  void switch_ranges() {
    const std::vector<Node*> nodes = present();
    std::vector<RangeSwitch> switches;
    for (const Node* node : nodes) {
      const bool ready =
          !(node->serving == node->wanted) && next_unit(*node, chain_->size()) >= chain_->size();
      switches.push_back({node->serving, node->wanted, owner_of(*node), ready});
    }
    keep_replicas(&switches, chain_->size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (!switches[i].goes) continue;
      Node& node = *nodes[i];
      node.serving = node.wanted;
      node.unused = 0;
      if (!(node.wanted == node.assigned)) prove(node);
    }
    release();
  }

  // It could not hold all that it was given.
  void prove(Node& node) const {
    const std::uint64_t needed =
        o_.plan.baseline_bytes + (node.wanted.empty() ? 0 : chain_->memory(node.wanted));
    node.proven = (needed + plan::memory_tier_bytes - 1) / plan::memory_tier_bytes * plan::memory_tier_bytes;
  }

  // Disks keep a unit that is no longer theirs until two others serve it.
  void release() {
    const std::vector<std::uint32_t> owners = owners_now();
    UnitSet safe;
    for (std::uint32_t unit = 0; unit < chain_->size(); ++unit)
      safe.set(unit, owners[unit] >= plan::least_replicas);
    for (Node* node : present()) node->has &= ~safe | set_of(node->serving) | set_of(node->wanted);
  }

  std::uint32_t owner_of(const Node& node) const {
    return owner_[static_cast<std::size_t>(&node - nodes_.data())];
  }
  // Distinct ones of each unit.
  std::vector<std::uint32_t> owners_now() {
    std::vector<ServedRange> served;
    for (const Node* node : present()) served.push_back({node->serving, owner_of(*node)});
    return count_owners(served, chain_->size());
  }

  void note_owners() {
    const std::vector<std::uint32_t> owners = owners_now();
    const std::uint32_t least = *std::min_element(owners.begin(), owners.end());
    result_.least_owners = result_.rounds == 1 ? least : std::min(result_.least_owners, least);
    for (const std::uint32_t of_unit : owners) result_.short_share += of_unit < o_.plan.replicas ? 1 : 0;
    rounds_with_units_ += chain_->size();
  }

  // The nodes of neighbouring ranges measure the speed of those that train.
  void measure() {
    for (Node* node : present()) {
      std::vector<double> measured;
      for (std::size_t i = 0; i < measurements; ++i) {
        const double error = measurement_error * (2 * rng_.uniform() - 1);
        measured.push_back(node->home->peer.speed * (1 + error));
      }
      if (!node->serving.empty()) node->measured = std::move(measured);
    }
  }

  plan::PlanPeer for_training(plan::PlanPeer peer) const {
    peer.up *= 1 - o_.transfer_share;
    peer.down *= 1 - o_.transfer_share;
    return peer;
  }

  // As the network counts it.
  plan::PlanPeer counted(const Node& node) const {
    plan::PlanPeer peer = for_training(node.home->declared);
    peer.speed = plan::counted_speed(peer.speed, node.measured);
    peer.memory = plan::counted_memory(peer, o_.fill_seconds, o_.plan.baseline_bytes);
    if (node.proven) peer.memory = std::min(peer.memory, *node.proven);
    return peer;
  }

  UnitRange that_fits(const Node& node, UnitRange range) const {
    const std::uint64_t usable = plan::usable_bytes(node.home->peer, o_.plan.baseline_bytes);
    while (!range.empty() && chain_->memory(range) > usable) --range.end;
    return range.empty() ? UnitRange{} : range;
  }

  Expected<void> change_shape() {
    std::vector<plan::PlanPeer> peers;
    for (const Node* node : present()) peers.push_back(counted(*node));
    const plan::Change change = plan::decide_placeable_change(o_.rules, shape_, peers, o_.plan, make_chain_);
    if (change.kind == plan::ChangeKind::Keep) return {};
    result_.changes.push_back({now_ / hour, shape_, change.shape});
    const std::uint32_t before = shape_.layers, after = change.shape.layers;
    shape_ = change.shape;
    NS_ASSIGN_OR_RETURN(chain_, make_chain_(shape_));
    for (Node& node : nodes_) {
      node.has = carried(node.has, before, after);
      node.stale = carried(node.stale, before, after);
      node.assigned = that_fits(node, plan::carried_range(node.assigned, before, after));
      node.wanted = node.assigned;
      node.serving = that_fits(node, plan::carried_range(node.serving, before, after));
      node.progress = 0;
    }
    archived_ = carried(archived_, before, after);
    serve();
    return {};
  }

  static UnitSet carried(const UnitSet& units, std::uint32_t before, std::uint32_t after) {
    UnitSet set;
    for (std::uint32_t unit = 0; units.any() && unit < before + 2; ++unit)
      if (units.test(unit)) set |= set_of(plan::carried_range({unit, unit + 1}, before, after));
    return set;
  }

  // Newcomers have a place in the plan that follows their first whole round.
  bool has_place(const Node& node) const {
    if (!node.assigned.empty()) return true;
    if (now_ > 0 && now_ - node.since < o_.round_seconds) return false;
    return node.leaves() - now_ > o_.foreseen_hours * hour;
  }

  Expected<void> plan_nodes(bool first) {
    plan::PlanRequest request;
    request.chain = &*chain_;
    request.options = o_.plan;
    for (std::size_t i = 0; i < sizeof(std::uint64_t); ++i)
      request.beacon[i] = static_cast<std::uint8_t>(std::uint64_t{result_.rounds} >> (8 * i));
    const auto copy = static_cast<double>(chain_->transfer(chain_->whole()));
    request.options.migration_bytes = static_cast<std::uint64_t>(o_.moved_copies * copy);
    std::vector<Node*> placed;
    std::vector<plan::PlanPeer> real;
    for (Node* node : present()) {
      real.push_back(for_training(node->home->peer));
      if (!has_place(*node)) continue;
      placed.push_back(node);
      request.peers.push_back(counted(*node));
      if (!node->wanted.empty()) request.present.push_back({node->home->peer.id, node->wanted, node->dealt});
    }
    const auto begun = o_.clock == nullptr ? MonotonicTime() : o_.clock->monotonic_now();
    const auto plan = plan::make_plan(request);
    if (o_.clock != nullptr)
      result_.slowest_plan_seconds =
          std::max(result_.slowest_plan_seconds, to_seconds(o_.clock->monotonic_now() - begun));
    bound_ = bound_of(real);
    if (!plan.ok() && first) return plan.error();
    if (!plan.ok()) {
      ++result_.refused;
      return {};
    }
    if (!first) {
      result_.joined_bytes += static_cast<double>(plan->joined_bytes);
      result_.moved_bytes += static_cast<double>(plan->moved_bytes);
    }
    // Ids ascend as homes do.
    for (std::size_t i = 0; i < placed.size(); ++i) {
      const plan::PlacedPeer& place = plan->peers[i];
      if (!placed[i]->wanted.empty() && !(placed[i]->wanted == place.range)) ++result_.moves;
      assign(*placed[i], place);
    }
    return {};
  }

  void assign(Node& node, const plan::PlacedPeer& place) const {
    node.assigned = place.range;
    node.dealt = place.dealt;
    const UnitRange wanted = that_fits(node, place.range);
    if (!(wanted == node.wanted)) node.progress = 0;
    node.wanted = wanted;
  }

  double bound_of(const std::vector<plan::PlanPeer>& peers) const {
    std::vector<std::uint64_t> usable;
    for (const plan::PlanPeer& peer : peers)
      usable.push_back(plan::usable_bytes(peer, o_.plan.baseline_bytes));
    return plan::throughput_bound(*chain_, peers, usable).throughput;
  }

  const PlanWorldOptions& o_;
  const std::vector<Home> homes_;
  Rng rng_;
  std::vector<Node> nodes_;
  std::vector<std::uint32_t> owner_;  // of each home
  plan::MakeChain make_chain_;
  compute::ModelShape shape_;
  std::optional<plan::Chain> chain_;
  UnitSet archived_;
  double now_ = 0, throughput_ = 0, bound_ = 0;
  bool changed_ = false, stands_ = false;
  double rounds_with_units_ = 0;
  PlanWorldResult result_;
};

}  // namespace

Expected<PlanWorldResult> run_plan_world(const PlanWorldOptions& options) {
  return PlanWorld(options).run();
}

}  // namespace neuroshard::sim
