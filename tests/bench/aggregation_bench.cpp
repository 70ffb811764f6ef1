// Speed of robust aggregation, 8 deltas of 10M values, beside the plain mean of the same deltas and a copy of
// the memory (tests/long.sh aggregation). bench_aggregation [CONTRIBUTORS [MILLIONS [ROUNDS]]]. One thread.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

#include "core/base/interleaved.h"
#include "core/base/rng.h"
#include "core/outer/aggregate.h"

using namespace neuroshard;
using namespace neuroshard::outer;

namespace {

struct Row {
  const char* name;
  AggregationOptions options;
  const char* beside;  // what its target is a multiple of
  double target;       // at most this multiple of that one's time; 0: none
};

AggregationOptions with(Rule rule, bool clip, bool mixing) {
  AggregationOptions options;
  options.choice = RuleChoice{rule, clip, mixing};
  return options;
}

class ProcessorClock final : public Clock {
 public:
  MonotonicTime monotonic_now() const override {
    return MonotonicTime(
        Duration(static_cast<std::int64_t>(std::clock()) * (1'000'000'000 / CLOCKS_PER_SEC)));
  }
  WallTime wall_now() const override { return SystemClock().wall_now(); }
};

}  // namespace

int main(int argc, char** argv) {
  const std::size_t n = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 8;
  const std::size_t values = 1'000'000 * (argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 10);
  InterleavedOptions interleaved;
  interleaved.rounds = argc > 3 ? static_cast<std::uint32_t>(std::strtoul(argv[3], nullptr, 10)) : 7;
  interleaved.budget = std::chrono::seconds(200);

  std::vector<std::vector<float>> deltas(n, std::vector<float>(values));
  std::vector<Contribution> contributions(n);
  for (std::size_t i = 0; i < n; ++i) {
    Rng rng(i);
    for (float& value : deltas[i])
      value = (static_cast<float>(rng.next() >> 40) - 8388608.0f) * (1e-3f / 8388608.0f) *
              (1 + 0.1f * static_cast<float>(i));
    contributions[i].id[0] = static_cast<std::uint8_t>(i);
    contributions[i].tokens = 1000;
    contributions[i].delta = deltas[i];
  }
  std::vector<float> out(values);

  const std::vector<Row> rows = {
      {"plain mean", with(Rule::WeightedMean, false, false), nullptr, 0},
      {"trimmed mean", with(Rule::TrimmedMean, false, false), "plain mean", 1.2},
      {"median", with(Rule::CoordinateMedian, false, false), "plain mean", 1.2},
      {"clip + mean", with(Rule::WeightedMean, true, false), nullptr, 0},
      {"clip + trimmed mean", with(Rule::TrimmedMean, true, false), "clip + mean", 1.2},
      {"clip + median", with(Rule::CoordinateMedian, true, false), "clip + mean", 1.2},
      {"clip + CC", with(Rule::CenteredClipping, true, false), "plain mean", 2.5},
      {"clip + NNM + trimmed mean", with(Rule::TrimmedMean, true, true), "plain mean", 2.5},
      {"clip + NNM + CC", with(Rule::CenteredClipping, true, true), "plain mean", 2.5},
      {"Krum", with(Rule::Krum, false, false), nullptr, 0},
      {"Multi-Krum", with(Rule::MultiKrum, false, false), nullptr, 0},
      {"geometric median", with(Rule::GeometricMedian, false, false), nullptr, 0},
  };
  const double bytes = static_cast<double>(n * values * sizeof(float));
  // The yardstick: as much memory read as a pass over the deltas reads, one vector of it written.
  const Contender copy{"memory", [&]() -> Expected<double> {
                         for (const auto& delta : deltas)
                           std::memcpy(out.data(), delta.data(), values * sizeof(float));
                         return bytes;
                       }};
  std::vector<Contender> contenders;
  for (const Row& row : rows)
    contenders.push_back({row.name, [&]() -> Expected<double> {
                            NS_RETURN_IF_ERROR(aggregate(row.options, contributions, 1000, out));
                            return bytes;
                          }});
  const ProcessorClock clock;
  const auto result = run_interleaved(clock, copy, contenders, interleaved, CancelToken{});
  if (!result.ok()) {
    std::fputs((result.error().describe() + "\n").c_str(), stderr);
    return 1;
  }
  const auto speed = [&](std::string_view name) -> const Speed& {
    for (const Speed& s : result->contenders)
      if (s.name == name) return s;
    return result->yardstick;
  };
  fmt::print("{} deltas of {} values, one thread; {} rounds kept, {} dropped{}\n", n, values, result->kept,
             result->dropped, result->steady ? "" : " (NOT STEADY)");
  fmt::print(
      "| rule | GB/s of deltas, median | best | share of memcpy's speed | time beside "
      "|\n|---|---|---|---|---|\n");
  fmt::print("| memcpy of the deltas | {:.2f} | {:.2f} | | |\n", result->yardstick.median / 1e9,
             result->yardstick.best / 1e9);
  bool missed = false;
  for (const Row& row : rows) {
    const Speed& own = speed(row.name);
    std::string verdict;
    if (row.beside) {
      const double times = speed(row.beside).ratio_median / own.ratio_median;
      missed = missed || times > row.target;
      verdict = fmt::format("{:.2f} × {} (≤ {}{})", times, row.beside, row.target,
                            times > row.target ? ": MISSED" : "");
    }
    fmt::print("| {} | {:.2f} | {:.2f} | {:.2f} | {} |\n", row.name, own.median / 1e9, own.best / 1e9,
               own.ratio_median, verdict);
  }
  return missed ? 2 : 0;
}
