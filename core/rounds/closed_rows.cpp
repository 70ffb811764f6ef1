#include "core/rounds/closed_rows.h"

#include <cstring>

#include "core/chain/rights.h"
#include "core/crypto/merkle.h"
#include "core/rounds/round_exchange.h"

namespace neuroshard::rounds {
namespace {

constexpr Duration retry_pause = std::chrono::seconds(5);

std::uint64_t bits_of(double value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

}  // namespace

ClosedRows::ClosedRows(const chain::ChainRules& rules, const ContributionBook& book, RowStates& states,
                       const Clock& clock, Events events)
    : rules_(rules), book_(book), states_(states), clock_(clock), events_(std::move(events)) {}

std::optional<chain::RowResult> ClosedRows::result(const chain::ChainTip& tip, std::size_t row_index,
                                                   std::uint32_t row) const {
  chain::RowResult result;
  result.row = row;
  const bool resized = tip.registry->size().changing;
  const auto& contributors = tip.registry->closed()->contributors[row_index];
  const auto found = steps_.find(row);
  const bool computed = found != steps_.end() && found->second.step != nullptr;
  const bool nothing_counts =
      !resized && (contributors.empty() || (computed && found->second.step->report->counted == 0));
  if (nothing_counts || (found != steps_.end() && found->second.failed)) {
    result.carried = true;
    return result;
  }
  if (!computed || (resized && found->second.before != tip.registry->rows()[row].anchor)) return std::nullopt;
  result.anchor = found->second.step->hash;
  if (resized) return result;
  const StepResult& step = *found->second.step;
  result.trace = step.trace ? step.trace->root : found->second.payloads;
  result.norm_bits = bits_of(found->second.step->report->median_norm);
  return result;
}

std::optional<RowInputs> ClosedRows::inputs_of(const chain::ChainTip& tip, std::size_t row_index,
                                               std::uint32_t row) const {
  const std::vector<std::uint32_t>& contributors = tip.registry->closed()->contributors[row_index];
  RowInputs inputs;
  std::vector<Hash256> payloads;
  inputs.work.reserve(contributors.size());
  payloads.reserve(contributors.size());
  for (const std::uint32_t member : contributors) {
    const ContributionBook::Entry* entry = book_.find(member);
    if (entry == nullptr || !RoundExchange::is_certified(*entry->held, member, tip)) return std::nullopt;
    const auto place = entry->place_of(row);
    if (!place || !entry->payloads[*place]) return std::nullopt;
    const chain::RowWork& work = entry->rows()[*place];
    inputs.work.push_back({entry->held->id(), work.tokens, entry->payloads[*place]});
    payloads.push_back(work.payload);
  }
  if (!payloads.empty()) inputs.payloads = crypto::merkle_root(payloads);
  return inputs;
}

void ClosedRows::compute(const chain::ChainTip& tip) {
  const chain::Registry& registry = *tip.registry;
  const std::vector<std::uint32_t> rows = rules_.rows_of(book_.round());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::uint32_t row = rows[i];
    if (registry.size().changing) {
      compute_resized(registry, row);
      continue;
    }
    if (!can_begin(registry, row)) continue;
    auto inputs = inputs_of(tip, i, row);
    if (!inputs || inputs->work.empty()) continue;
    steps_[row].payloads = inputs->payloads;
    begin(row, [&](RowStates::Computed done) {
      states_.compute(row, book_.round(), std::move(*inputs),
                      {chain::most_row_tokens(rules_, registry, row, book_.round()),
                       chain::most_row_norm(rules_, registry, row, book_.round())},
                      registry.beacon(), std::move(done));
    });
  }
}

// A row that is taken back meanwhile is made again.
void ClosedRows::compute_resized(const chain::Registry& registry, std::uint32_t row) {
  const Hash256& before = registry.rows()[row].anchor;
  if (!steps_[row].computing && steps_[row].before != before) {
    steps_[row] = {};
    steps_[row].before = before;
  }
  if (!can_begin(registry, row)) return;
  begin(row, [&](RowStates::Computed done) {
    states_.resize(row, book_.round(), registry.size().size, registry.size().next, std::move(done));
  });
}

bool ClosedRows::can_begin(const chain::Registry& registry, std::uint32_t row) const {
  const auto found = steps_.find(row);
  if (found != steps_.end()) {
    const RowStep& step = found->second;
    if (step.step || step.computing || step.failed || clock_.monotonic_now() < step.next_try) return false;
  }
  return states_.holds(row, registry.rows()[row].anchor);
}

void ClosedRows::begin(std::uint32_t row, const Begin& computation) {
  steps_[row].computing = true;
  computation([this, life = lifetime_.token(), row, round = book_.round()](const Expected<StepPtr>& made) {
    if (!life.alive() || round != book_.round()) return;
    RowStep& done = steps_[row];
    done.computing = false;
    if (made.ok()) {
      done.step = *made;
    } else if (is_own_failure(made.error())) {
      done.next_try = clock_.monotonic_now() + retry_pause;
      return events_.cannot(made.error());
    } else {
      done.failed = true;  // of the others, too
      events_.cannot(made.error());
    }
    events_.computed();
  });
}

}  // namespace neuroshard::rounds
