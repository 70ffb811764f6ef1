// TrainingRounds: the close and result sections, made and judged.
#include <algorithm>
#include <cstring>

#include "core/chain/rights.h"
#include "core/crypto/merkle.h"
#include "core/rounds/training_rounds.h"

namespace neuroshard::rounds {
namespace {

std::uint64_t bits_of(double value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// The commitments to the payloads of a row's contributors, all of which are here.
Hash256 payloads_root(const ContributionBook& book, const std::vector<std::uint32_t>& contributors,
                      std::uint32_t row) {
  std::vector<Hash256> payloads;
  for (const std::uint32_t member : contributors)
    for (const chain::RowWork& work : book.find(member)->contribution->rows)
      if (work.row == row) payloads.push_back(work.payload);
  return crypto::merkle_root(payloads);
}

}  // namespace

bool TrainingRounds::is_due(const chain::ChainTip& tip) {
  if (!tip_ || tip.block->hash != tip_->block->hash) return false;
  if (tip.registry->closed()) return result_section().has_value();
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

std::optional<chain::ResultSection> TrainingRounds::result_section() {
  const auto& closed = tip_->registry->closed();
  if (!closed) return std::nullopt;
  chain::ResultSection result;
  result.round = book_.round();
  const std::vector<std::uint32_t> rows = options_.chain.rows_of(result.round);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool late = row_is_late(rows[i]);
    const auto made = row_result(i, rows[i]);
    if (made) {
      result.rows.push_back(*made);
    } else if (late) {
      chain::RowResult carried;
      carried.row = rows[i];
      carried.carried = true;
      result.rows.push_back(carried);
    } else {
      return std::nullopt;
    }
  }
  return result;
}

bool TrainingRounds::row_is_late(std::uint32_t row) const {
  return clock_.row_is_late(services_.clock.monotonic_now(), payloads_move() || states_.computes(row));
}

// Of a row of the closed round, as this node computed it. Nothing: it can't say yet.
std::optional<chain::RowResult> TrainingRounds::row_result(std::size_t row_index, std::uint32_t row) const {
  chain::RowResult result;
  result.row = row;
  const auto& contributors = tip_->registry->closed()->contributors[row_index];
  const auto found = steps_.find(row);
  const bool computed = found != steps_.end() && found->second.step.has_value();
  const bool nothing_counts = contributors.empty() || (computed && found->second.step->report.counted == 0);
  if (nothing_counts || (found != steps_.end() && found->second.failed)) {
    result.carried = true;
    return result;
  }
  if (!computed) return std::nullopt;
  result.anchor = found->second.step->hash;
  result.payloads = found->second.payloads;
  result.norm_bits = bits_of(found->second.step->report.median_norm);
  return result;
}

std::optional<std::vector<StepInput>> TrainingRounds::inputs_of(std::size_t row_index,
                                                                std::uint32_t row) const {
  const chain::ClosedRound& closed = *tip_->registry->closed();
  std::vector<StepInput> inputs;
  for (const std::uint32_t member : closed.contributors[row_index]) {
    const ContributionBook::Entry* entry = book_.find(member);
    if (entry == nullptr || !RoundExchange::is_certified(*entry, *tip_)) return std::nullopt;
    const PayloadBytes payload = book_.payload(member, row);
    if (!payload) return std::nullopt;
    for (const chain::RowWork& work : entry->contribution->rows)
      if (work.row == row) inputs.push_back({entry->id, work.tokens, payload});
  }
  return inputs;
}

void TrainingRounds::compute_rows() {
  const chain::Registry& registry = *tip_->registry;
  const std::vector<std::uint32_t> rows = options_.chain.rows_of(book_.round());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::uint32_t row = rows[i];
    RowStep& step = steps_[row];
    if (step.step || step.computing || step.failed) continue;
    if (!states_.holds(row, registry.rows()[row].anchor)) continue;
    const auto inputs = inputs_of(i, row);
    if (!inputs || inputs->empty()) continue;
    step.computing = true;
    step.payloads = payloads_root(book_, registry.closed()->contributors[i], row);
    states_.compute(
        row, book_.round(), *inputs, chain::most_row_tokens(options_.chain, registry, row, book_.round()),
        registry.beacon(),
        [this, life = lifetime_.token(), row, round = book_.round()](const Expected<StepResult>& made) {
          if (!life.alive() || round != book_.round()) return;
          RowStep& done = steps_[row];
          done.computing = false;
          if (made.ok())
            done.step = *made;
          else
            done.failed = true;
          look_soon();
        });
  }
}

// ---- Proposals

void TrainingRounds::make(const chain::ChainTip& tip, std::function<void(chain::Sections)> done) {
  if (!tip_ || tip.block->hash != tip_->block->hash) return done({});
  if (is_due(tip)) return done({close_section(), result_section()});
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
  std::vector<std::pair<std::function<void(bool)>, bool>> answers;
  std::erase_if(judging_, [&](Judging& one) {
    const chain::BlockBody& body = one.block->body;
    const Finding finding = body.close    ? examine_close(*body.close, one.binding)
                            : body.result ? examine_result(*body.result, one.binding)
                                          : Finding::Right;
    if (finding == Finding::Wait) return false;
    answers.emplace_back(std::move(one.done), finding == Finding::Right);
    return true;
  });
  for (const auto& [done, right] : answers) done(right);
}

// All contributions that are due by the vectors must be there, as long as that binds.
TrainingRounds::Finding TrainingRounds::examine_close(const chain::CloseSection& close, bool binding) const {
  if (!binding) return Finding::Right;
  const auto due = chain::due_contributors(close.vectors, *tip_->committee);
  const bool all = std::all_of(due.begin(), due.end(), [&](std::uint32_t member) {
    if (tip_->registry->find(member) == nullptr) return true;  // left in mid-round
    return std::any_of(close.contributions.begin(), close.contributions.end(),
                       [&](const chain::ContributionEntry& entry) { return entry.member == member; });
  });
  return all ? Finding::Right : Finding::Wrong;
}

TrainingRounds::Finding TrainingRounds::examine_result(const chain::ResultSection& result, bool binding) {
  for (std::size_t i = 0; i < result.rows.size(); ++i) {
    const chain::RowResult& row = result.rows[i];
    const bool late = row_is_late(row.row);
    const auto own = row_result(i, row.row);
    if (row.carried) {
      if (!binding || (own && own->carried)) continue;
      if (own) return Finding::Wrong;
      if (!late) return Finding::Wait;
    } else {
      if (!own) return Finding::Wait;
      if (!(*own == row)) return Finding::Wrong;
    }
  }
  return Finding::Right;
}

}  // namespace neuroshard::rounds
