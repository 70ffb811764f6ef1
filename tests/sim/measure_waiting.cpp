// How long training waits for outer rounds over lines of 100 and 10 Mbit/s: the nodes of core/rounds in the
// simulated world, for a model of 25 million parameters (26 MB a delta at int8), plain against delayed-1.
//
//   measure_waiting [--members N]… [--rounds R]
//
// A tenth of everything but the speed of the lines: 2.5 million values, a tenth of each time. A round's
// phases and their overlap are what they are at full size, for a tenth of the memory and computing. The
// values are drawn, not learned: only time is looked at here. All members are equally fast, their lines carry
// nothing else, and messages pass a line one after the other.
#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/sim/round_world.h"

using namespace neuroshard;       // NOLINT
using namespace neuroshard::sim;  // NOLINT

namespace {

constexpr double scale = 10;
constexpr std::size_t full_values = 25'000'000;
constexpr std::uint32_t inner_steps = 100;

Duration scaled(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds / scale));
}

// Weights that move a little each step, another way on each node.
class Drift final : public LocalModel {
 public:
  explicit Drift(std::uint64_t seed) : state_(seed * 2 + 1) {}
  void train(std::uint64_t, std::uint32_t, std::uint32_t steps, Span<float> weights) override {
    const float size = 1e-6f * static_cast<float>(steps);
    for (float& w : weights) {
      state_ ^= state_ << 13;
      state_ ^= state_ >> 7;
      state_ ^= state_ << 17;
      w += size * (static_cast<float>(state_ >> 40) / 8388608.0f - 1);
    }
  }

 private:
  std::uint64_t state_;
};

struct Result {
  double waiting = 0, round_seconds = 0;
  double megabytes = 0;  // of a node in a round, one way, at full size
  double contributors = 0;
  bool good = false;
};

Result measure(std::size_t members, double megabits, double training_seconds, rounds::RoundSync sync,
               std::uint64_t rounds) {
  RoundWorldOptions o;
  o.nodes = members;
  o.network.least_delay = scaled(0.010);  // of each line: 20 to 60 ms from one to the other
  o.network.most_delay = scaled(0.030);
  o.network.bytes_per_second = megabits * 1e6 / 8;
  o.initial.assign(static_cast<std::size_t>(full_values / scale), 0.0f);
  o.round.sync = sync;
  o.round.rules.network.fill(3);
  o.round.rules.values = o.initial.size();
  o.round.rules.inner_steps = inner_steps;
  o.round.rules.most_tokens = 2 * inner_steps;
  o.round.tick = scaled(0.2);  // a real node hears of its last step at once
  o.round.grace = scaled(3);
  o.round.poll = scaled(5);
  o.round.first_deadline = scaled(1800);
  o.round.provisional_after = scaled(600);
  o.round.agreement = {scaled(10), scaled(120)};
  o.trainer.inner_steps = inner_steps;
  o.trainer.step_time = scaled(training_seconds / inner_steps);
  o.trainer.tokens_per_step = 1;
  o.work_time = scaled(1.5);  // an outer step and its hash at full size, on two cores
  RoundWorld world(o, [](std::size_t node, std::uint64_t) { return std::make_unique<Drift>(node + 1); });
  for (std::size_t i = 0; i < members; ++i) world.start(i);
  Result result;
  result.good = world.run_to_round(rounds, static_cast<int>(rounds) * 20 * scaled(training_seconds + 600));
  for (std::size_t i = 0; i < members; ++i)
    result.waiting += world.trainer(i).waiting_share() / static_cast<double>(members);
  const RoundWorldSeen seen = world.seen();
  result.good = result.good && seen.conflicts == 0 && seen.twice == 0 && seen.worst_agreement == 1;
  const auto count = static_cast<double>(seen.rounds);
  result.contributors = static_cast<double>(seen.contributions) / count;
  result.round_seconds = scale * to_seconds(world.world().now().time_since_epoch()) / count;
  result.megabytes = scale * static_cast<double>(world.network().counters().bytes) / 1e6 /
                     static_cast<double>(members) / count;
  return result;
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::size_t> members;
  std::uint64_t rounds = 6;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string flag = arguments[i];
    if (flag == "--members")
      members.push_back(std::strtoul(arguments[i + 1], nullptr, 10));
    else if (flag == "--rounds")
      rounds = std::strtoull(arguments[i + 1], nullptr, 10);
    else
      return fmt::print(stderr, "measure_waiting [--members N]... [--rounds R]\n"), 64;
  }
  if (members.empty()) members = {4, 8};
  bool good = true;
  const auto begun = std::chrono::steady_clock::now();
  fmt::print(
      "| members | line Mbit/s | training of a round | waits, plain | waits, delayed-1 | a round takes s | "
      "of "
      "contributors | MB sent by a node |\n|---|---|---|---|---|---|---|---|\n");
  for (const std::size_t n : members) {
    for (const double megabits : {100.0, 10.0}) {
      for (const double seconds : {60.0, 300.0, 900.0}) {
        const Result plain = measure(n, megabits, seconds, rounds::RoundSync::Plain, rounds);
        const Result delayed = measure(n, megabits, seconds, rounds::RoundSync::Delayed, rounds);
        good = good && plain.good && delayed.good;
        fmt::print(
            "| {} | {:.0f} | {:.0f} s | {:.1f} % | {:.1f} % | {:.0f}, {:.0f} | {:.1f}, {:.1f} | {:.0f}{} |\n",
            n, megabits, seconds, 100 * plain.waiting, 100 * delayed.waiting, plain.round_seconds,
            delayed.round_seconds, plain.contributors, delayed.contributors, delayed.megabytes,
            plain.good && delayed.good ? "" : ", **broken**");
        std::fflush(stdout);
      }
    }
  }
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  fmt::print("\n{} rounds each; {:.0f} s, {} MiB here\n", rounds, wall, used.ru_maxrss / 1024);
  return good ? 0 : 1;
}
