// TrainingRounds: the close and result sections, made and judged.
#include <algorithm>

#include "core/chain/ascending.h"
#include "core/chain/rights.h"
#include "core/rounds/training_rounds.h"

namespace neuroshard::rounds {
namespace {

// Whether the close names all members that are due by its vectors.
bool names_all_due(const chain::CloseSection& close, const chain::ChainTip& tip) {
  const auto due = chain::due_contributors(close.vectors, *tip.committee);
  return std::all_of(due.begin(), due.end(), [&](std::uint32_t member) {
    if (tip.registry->find(member) == nullptr) return true;  // left in mid-round
    return find_by(close.contributions, &chain::ContributionEntry::member, member) != nullptr;
  });
}

}  // namespace

bool TrainingRounds::is_due(const chain::ChainTip& tip) {
  if (!tip_ || tip.block->hash != tip_->block->hash) return false;
  if (tip.registry->closed()) return outcomes_.section(*tip_).has_value();
  const chain::Committee& committee = *tip.committee;
  if (!committee.is_quorum(vectors_.units(committee))) return false;
  const MonotonicTime now = services_.clock.monotonic_now();
  if (!quorum_at_) quorum_at_ = now;
  const bool all = vectors_.units(committee) == committee.units();
  return (all || now - *quorum_at_ >= clock_.grace()) && vectors_.can_close(committee, book_, *tip.registry);
}

std::optional<chain::CloseSection> TrainingRounds::close_section() const {
  if (tip_->registry->closed()) return std::nullopt;
  return vectors_.close(*tip_->committee, book_, *tip_->registry);
}

bool TrainingRounds::row_is_late(std::uint32_t row) const {
  return clock_.row_is_late(services_.clock.monotonic_now(), payloads_move() || states_.computes(row));
}

// ---- Proposals

void TrainingRounds::make(const chain::ChainTip& tip, std::function<void(chain::Sections)> done) {
  if (!tip_ || tip.block->hash != tip_->block->hash) return done({});
  if (is_due(tip)) return done({close_section(), outcomes_.section(*tip_)});
  making_ = std::move(done);
  look_soon();
}

void TrainingRounds::judge(const chain::ChainTip& tip, const chain::BlockPtr& block, bool binding,
                           std::function<void(bool)> done) {
  if (!tip_ || tip.block->hash != tip_->block->hash) return;
  std::erase_if(judging_, [&](const Judging& one) { return one.block->hash == block->hash; });
  constexpr std::size_t most_judged = 4;
  if (judging_.size() >= most_judged) judging_.erase(judging_.begin());
  judging_.push_back({block, binding, std::move(done)});
  look_soon();
}

void TrainingRounds::review() {
  const auto examine = [this](const Judging& one) {
    const chain::BlockBody& body = one.block->body;
    // Omissions do not bind for ever (demand.h).
    if (body.close && one.binding && !names_all_due(*body.close, *tip_)) return Finding::Wrong;
    Finding finding = body.result ? outcomes_.examine(*tip_, *body.result, one.binding) : Finding::Right;
    for (const chain::Evidence& evidence : body.evidence) {
      if (!chain::is_accusation(evidence) || finding == Finding::Wrong) continue;
      // The proposer and all that vote for the block have the proof.
      const auto found = accusations_.examine(evidence, *tip_, tip_->committee->others(self_));
      if (found != Accusations::Finding::Right)
        finding = found == Accusations::Finding::Wait ? Finding::Wait : Finding::Wrong;
    }
    return finding;
  };
  std::vector<std::pair<std::function<void(bool)>, bool>> answers;
  std::erase_if(judging_, [&](Judging& one) {
    const Finding finding = examine(one);
    if (finding == Finding::Wait) return false;
    answers.emplace_back(std::move(one.done), finding == Finding::Right);
    return true;
  });
  for (const auto& [done, right] : answers) done(right);
}

}  // namespace neuroshard::rounds
