#include "core/runtime/part_moves.h"

#include <algorithm>

#include "core/runtime/standing.h"

namespace neuroshard::runtime {
namespace {

constexpr Duration plan_lasts = std::chrono::seconds(10);

// Of a member that holds one part.
std::optional<std::uint32_t> part_of(const chain::MemberRecord& member, std::uint32_t parts) {
  for (std::uint32_t part = 0; part < parts && !member.rows.is_all(); ++part)
    if (member.rows.has(part)) return part;
  return std::nullopt;
}

// Those that the pipeline counts on (part_holders.h), and those that it will.
std::vector<plan::PartHolder> holders_in(const chain::Registry& registry, std::uint32_t parts,
                                         WallTime wall) {
  const auto now = static_cast<std::uint64_t>(std::max<std::int64_t>(0, to_unix_ms(wall)));
  std::vector<plan::PartHolder> holders;
  for (const chain::MemberRecord& member : registry.members()) {
    const auto part = part_of(member, parts);
    if (!part || !is_trusted(registry, member)) continue;
    plan::PartHolder holder{member.id,           member.wallet, *part, plan::HolderState::Active,
                            member.follows_plan, member.speed};
    if (member.presence == chain::Presence::Dormant) {
      holder.state = member.is_moving() ? plan::HolderState::Arriving : plan::HolderState::Asleep;
      const Duration counts = member.is_moving() ? PartMoves::arrival_patience : PartMoves::sleep_counts;
      const auto away = std::chrono::milliseconds(now - std::min(now, member.dormant_ms));
      if (away > counts) continue;
    }
    holders.push_back(holder);
  }
  return holders;
}

// A node can get a part that an active voter has, for anchors are fetched from voters, or that nobody has trained yet.
std::vector<plan::ModelPart> parts_in(const chain::Registry& registry, const std::vector<double>& work) {
  const auto count = static_cast<std::uint32_t>(work.size());
  std::vector<plan::ModelPart> parts;
  for (std::uint32_t part = 0; part < count; ++part) {
    const bool is_first = part < registry.rows().size() && registry.rows()[part].changed_round == 0;
    parts.push_back({is_first, work[part]});
  }
  for (const std::uint32_t position : registry.active()) {
    const chain::MemberRecord& member = registry.members()[position];
    const auto part = part_of(member, count);
    if (part && registry.is_voter(member) && member.can_share()) parts[*part].can_get = true;
  }
  return parts;
}

}  // namespace

PlannedParts planned_parts(const chain::Registry& registry, const std::vector<double>& work, WallTime wall) {
  PlannedParts planned{
      holders_in(registry, static_cast<std::uint32_t>(work.size()), wall), parts_in(registry, work), {}};
  planned.moves = plan::plan_part_moves(planned.parts, planned.holders, registry.beacon());
  return planned;
}

// Once, so that nodes that join together do not follow each other around.
PartMoves::Decision PartMoves::joining(const Facts& facts) {
  std::vector<plan::ModelPart> fitting = parts_in(facts.registry, work_);
  for (std::size_t part = 0; part < facts.fitting.size() && part < fitting.size(); ++part)
    fitting[part].can_get = fitting[part].can_get && facts.fitting[part];
  const bool any =
      std::any_of(fitting.begin(), fitting.end(), [](const plan::ModelPart& part) { return part.can_get; });
  if (!begins_with_ && any)
    begins_with_ = plan::choose_part(fitting, holders_in(facts.registry, parts_, facts.wall), self_);
  Decision decision;
  decision.wanted = begins_with_.value_or(facts.held);
  if (*decision.wanted != facts.held) decision.model = decision.wanted;
  return decision;
}

const std::vector<plan::PartMove>& PartMoves::moves(const Facts& facts) {
  if (!found_ || found_->height != facts.registry.height() || facts.now - found_->at > plan_lasts)
    found_ =
        Found{facts.registry.height(), facts.now, planned_parts(facts.registry, work_, facts.wall).moves};
  return found_->moves;
}

PartMoves::Decision PartMoves::decide(const Facts& facts) {
  const chain::MemberRecord* self = facts.registry.find(self_);
  if (self == nullptr) return joining(facts);
  begins_with_.reset();
  Decision decision;
  if (const auto registered = part_of(*self, parts_); registered && *registered != facts.held) {
    turn_.reset();
    decision.model = registered;
    return decision;
  }
  for (const plan::PartMove& move : moves(facts)) {
    const auto place = std::find(move.order.begin(), move.order.end(), self_);
    if (place == move.order.end() || (!facts.fitting.empty() && !facts.fitting.at(move.to))) continue;
    if (!turn_ || turn_->to != move.to) turn_ = Turn{move.to, facts.now};
    decision.reason = move.reason;
    const bool may_go = !facts.contributed && (move.reason == plan::MoveReason::NoHolder || !facts.trained);
    if (may_go && facts.now - turn_->since >= (place - move.order.begin()) * turn) decision.wanted = move.to;
    return decision;
  }
  turn_.reset();
  return decision;
}

}  // namespace neuroshard::runtime
