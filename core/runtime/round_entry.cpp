#include "core/runtime/round_entry.h"

#include <fmt/format.h>

#include <algorithm>

namespace neuroshard::runtime {
namespace {

std::string rule_text(const outer::RuleChoice& ran) {
  std::string text;
  if (ran.clip_to_median_norm) text += "clip, ";
  if (ran.nearest_neighbour_mixing) text += "nearest-neighbour mixing, ";
  return text + std::string(to_string(ran.rule));
}

// Whether a hierarchical round has no result of a member's sub-group.
bool group_is_absent(const rounds::GroupedLink& link, const rounds::RoundMember& member) {
  const auto& groups = link.body->groups;
  return std::none_of(groups.begin(), groups.end(), [&](const rounds::GroupResult& result) {
    const auto& members = result.certificate.body.members;
    return rounds::member_index(members, member.id) < members.size();
  });
}

// Why a member's work is not in a round.
std::string absence(const rounds::RoundChain& chain, const rounds::RoundMember& member) {
  const rounds::RoundBody& body = chain.tip();
  if (chain.tip_grouped() && group_is_absent(*chain.tip_grouped(), member))
    return "its sub-group was late; its work goes into the next round";
  for (const rounds::RoundChange& change : body.changes) {
    if (change.kind == rounds::RoundChange::Kind::Leave && change.key == member.key) return "has left";
  }
  if (member.missed + 1 >= rounds::rounds_missed_to_expel)
    return fmt::format("missed {} rounds in a row: it is no member of the next one",
                       rounds::rounds_missed_to_expel);
  return "late: its work was not there when the round was closed";
}

void judge_contributor(const rounds::StepResult& step, const net::NodeId& id, node::RoundMemberEntry& entry) {
  const auto& judged = step.report.judged;
  const auto at = std::find_if(judged.begin(), judged.end(), [&](const auto& one) { return one.id == id; });
  if (at == judged.end()) {
    entry.note = "left out: its payload can't be read";
    return;
  }
  entry.share = at->share;
  if (at->refusal != outer::Refusal::None)
    entry.note = fmt::format("left out: {}", outer::to_string(at->refusal));
  else if (at->share == 0)
    entry.note = "left out by the rule";
  else if (at->clip_factor < 1)
    entry.note = fmt::format("made smaller, to {:.0f} %", 100 * at->clip_factor);
}

void set_rule(node::RoundEntry& entry, const rounds::GroupedLinkPtr& grouped,
              const rounds::StepResult* step) {
  if (step != nullptr) entry.rule = rule_text(step->report.ran);
  if (grouped) {
    // The report is about sub-groups here; the members of each have voted among themselves.
    entry.rule = fmt::format("{} sub-groups{}{}", grouped->body->groups.size(), step ? ": " : "", entry.rule);
  } else if (step != nullptr) {
    entry.too_few_to_vote = step->report.too_few_to_vote;
  }
}

}  // namespace

node::RoundEntry round_entry(const rounds::RoundChain& chain, const rounds::StepResult* step,
                             const net::NodeId& self) {
  const rounds::RoundBody& body = chain.tip();
  const rounds::GroupedLinkPtr& grouped = chain.tip_grouped();
  node::RoundEntry entry;
  entry.round = body.round;
  entry.anchor = to_hex(body.anchor);
  entry.fetched = step == nullptr;
  entry.tokens = body.tokens;
  entry.members = static_cast<std::uint32_t>(body.members.size());
  entry.contributors = static_cast<std::uint32_t>(body.contributors.size());
  set_rule(entry, grouped, step);
  std::vector<bool> contributed(body.members.size());
  for (const rounds::RoundContributor& one : body.contributors) {
    contributed[one.member] = true;
    const net::NodeId& id = body.members[one.member].id;
    node::RoundMemberEntry member{to_hex(id), id == self, true, one.steps, one.tokens, std::nullopt, {}};
    if (step != nullptr && !grouped) judge_contributor(*step, id, member);
    entry.who.push_back(std::move(member));
  }
  for (std::size_t i = 0; i < body.members.size(); ++i) {
    const rounds::RoundMember& member = body.members[i];
    if (!contributed[i])
      entry.who.push_back(
          {to_hex(member.id), member.id == self, false, 0, 0, std::nullopt, absence(chain, member)});
  }
  return entry;
}

}  // namespace neuroshard::runtime
