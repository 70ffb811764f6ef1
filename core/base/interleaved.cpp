#include "core/base/interleaved.h"

#include <algorithm>
#include <cmath>

namespace neuroshard {
namespace {

// At most so many times the wanted rounds are tried on an unsteady machine.
constexpr std::uint32_t max_tries_per_round = 20;

struct Round {
  double yardstick_before = 0;
  double yardstick_after = 0;
  std::vector<double> speeds;  // by contender
  double yardstick() const { return (yardstick_before + yardstick_after) / 2; }
};

Expected<double> time_once(const Clock& clock, const Contender& contender) {
  if (contender.prepare) {
    auto prepared = contender.prepare();
    if (!prepared.ok()) return std::move(prepared).error().with_context("preparing " + contender.name);
  }
  const MonotonicTime start = clock.monotonic_now();
  auto units = contender.work();
  const double seconds = to_seconds(clock.monotonic_now() - start);
  if (!units.ok()) return std::move(units).error().with_context("measuring " + contender.name);
  return seconds > 0 ? *units / seconds : 0.0;
}

Expected<Round> run_round(const Clock& clock, const Contender& yardstick,
                          const std::vector<Contender>& contenders, bool backwards) {
  Round round;
  round.speeds.resize(contenders.size());
  NS_ASSIGN_OR_RETURN(round.yardstick_before, time_once(clock, yardstick));
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    const std::size_t which = backwards ? contenders.size() - 1 - i : i;
    NS_ASSIGN_OR_RETURN(round.speeds[which], time_once(clock, contenders[which]));
  }
  NS_ASSIGN_OR_RETURN(round.yardstick_after, time_once(clock, yardstick));
  return round;
}

std::vector<const Round*> steady_rounds(const std::vector<Round>& rounds, double max_move) {
  std::vector<double> yardsticks;
  for (const Round& round : rounds) yardsticks.push_back(round.yardstick());
  const double middle = median_of(yardsticks);
  std::vector<const Round*> kept;
  for (const Round& round : rounds) {
    const double within = std::abs(round.yardstick_after - round.yardstick_before);
    if (within <= max_move * round.yardstick() && std::abs(round.yardstick() - middle) <= max_move * middle) {
      kept.push_back(&round);
    }
  }
  return kept;
}

Speed summarise(const std::string& name, const std::vector<double>& speeds,
                const std::vector<double>& ratios) {
  Speed speed;
  speed.name = name;
  speed.median = median_of(speeds);
  speed.best = *std::max_element(speeds.begin(), speeds.end());
  speed.ratio_median = median_of(ratios);
  speed.ratio_best = *std::max_element(ratios.begin(), ratios.end());
  return speed;
}

}  // namespace

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

Expected<InterleavedResult> run_interleaved(const Clock& clock, const Contender& yardstick,
                                            const std::vector<Contender>& contenders,
                                            const InterleavedOptions& options, const CancelToken& cancel) {
  const MonotonicTime start = clock.monotonic_now();
  std::vector<Round> rounds;
  std::vector<const Round*> kept;
  // The first round warms caches and the clock of the processor.
  NS_RETURN_IF_ERROR(run_round(clock, yardstick, contenders, false));
  do {
    if (cancel.cancelled()) return make_error(ErrorCode::Cancelled, "the measurement was stopped");
    NS_ASSIGN_OR_RETURN(Round round, run_round(clock, yardstick, contenders, rounds.size() % 2 == 1));
    rounds.push_back(std::move(round));
    kept = steady_rounds(rounds, options.max_move);
  } while (kept.size() < options.rounds &&
           rounds.size() < std::size_t{options.rounds} * max_tries_per_round &&
           clock.monotonic_now() - start < options.budget);

  InterleavedResult result;
  result.kept = static_cast<std::uint32_t>(kept.size());
  result.dropped = static_cast<std::uint32_t>(rounds.size() - kept.size());
  result.steady = kept.size() >= options.rounds;
  if (kept.empty()) {
    for (const Round& round : rounds) kept.push_back(&round);
  }
  std::vector<double> yardsticks;
  for (const Round* round : kept) yardsticks.push_back(round->yardstick());
  result.yardstick = summarise(yardstick.name, yardsticks, std::vector<double>(kept.size(), 1.0));
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    std::vector<double> speeds, ratios;
    for (const Round* round : kept) {
      speeds.push_back(round->speeds[i]);
      ratios.push_back(round->yardstick() > 0 ? round->speeds[i] / round->yardstick() : 0);
    }
    result.contenders.push_back(summarise(contenders[i].name, speeds, ratios));
  }
  return result;
}

}  // namespace neuroshard
