// The cost of a round for a node, by the number of members: messages, bytes, signature checks and writes to the disk.
// The nodes are those of core/chain and core/rounds on virtual time (sim/chain_world.h). They begin from a
// snapshot, all of them are voters, and a committee of at most 512 votes.
//
//   measure_chain [--members N]… [--rounds R] [--values P]
//
// Prints a line of JSON for each number of members. The process holds blocks, registries and contributions once,
// and verifies each signature once; the counts are those of a node by itself.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/sim/chain_world.h"

using namespace neuroshard;       // NOLINT
using namespace neuroshard::sim;  // NOLINT

namespace {

constexpr std::uint32_t inner_steps = 20;
constexpr Duration step_time = std::chrono::seconds(3);

// Weights that move a little each step, another way on each node: nothing is learned here.
class Drift final : public LocalModel {
 public:
  explicit Drift(std::uint64_t seed) : state_(seed * 2 + 1) {}
  void train(std::uint64_t, std::uint32_t, std::uint32_t steps, Span<float> weights) override {
    for (float& w : weights) {
      state_ ^= state_ << 13;
      state_ ^= state_ >> 7;
      state_ ^= state_ << 17;
      w += 1e-3f * static_cast<float>(steps) * (static_cast<float>(state_ >> 40) / 8388608.0f - 1);
    }
  }

 private:
  std::uint64_t state_;
};

ChainWorldOptions options_of(std::size_t members, std::size_t values) {
  ChainWorldOptions o;
  o.nodes = members;
  o.from_snapshot = true;
  o.beacon_length = 64;
  o.initial.assign(values, 0.0f);
  o.chain.rules.most_tokens = 1'000'000;
  o.chain.sync.poll = std::chrono::seconds(60);
  o.chain.tick = std::chrono::seconds(2);
  o.training.tick = std::chrono::seconds(2);
  o.training.clock.first_deadline = std::chrono::minutes(10);
  o.training.inner_steps = inner_steps;
  o.trainer.inner_steps = inner_steps;
  o.trainer.step_time = step_time;
  return o;
}

struct Sum {
  NodeCost total;
  std::size_t nodes = 0;
  void add(const NodeCost& cost) {
    total.messages += cost.messages;
    total.bytes += cost.bytes;
    total.received += cost.received;
    total.checks += cost.checks;
    total.written += cost.written;
    ++nodes;
  }
  std::string text(std::uint64_t rounds) const {
    const std::uint64_t by = std::max<std::uint64_t>(1, nodes * rounds);
    return fmt::format(
        "{{\"nodes\": {}, \"messages\": {}, \"sent\": {}, \"received\": {}, \"checks\": {}, "
        "\"written\": {}}}",
        nodes, total.messages / by, total.bytes / by, total.received / by, total.checks / by,
        total.written / by);
  }
};

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

bool measure(std::size_t members, std::uint64_t rounds, std::size_t values) {
  const auto begin = std::chrono::steady_clock::now();
  ChainWorld world(options_of(members, values), [](std::size_t node, std::uint64_t lives) {
    return std::make_unique<Drift>(1 + node + 1'000'003 * lives);
  });
  const double made = seconds_since(begin);
  world.start_all();
  // Looks at all nodes once a second of the world.
  bool done = false;
  const MonotonicTime until = world.world().now() + (rounds + 1) * 5 * inner_steps * step_time;
  while (!done && world.world().now() < until) {
    world.world().run_for(std::chrono::seconds(1));
    done = true;
    for (std::size_t node = 0; node < world.size() && done; ++node) done = world.round(node) >= rounds;
  }
  Sum voters, others;
  for (std::size_t node = 0; node < world.size(); ++node) {
    const bool votes = world.chain(node).view().state == chain::NodeState::Voting;
    (votes ? voters : others).add(world.cost(node));
  }
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  const ChainWorldSeen& seen = world.seen();
  std::size_t contributors = 0;
  for (const auto& [round, count] : seen.contributors) contributors = std::max(contributors, count);
  fmt::print(
      "{{\"members\": {}, \"rounds\": {}, \"done\": {}, \"conflicts\": {}, \"carried\": {}, "
      "\"contributors\": {}, \"voter\": {}, \"member\": {}, \"round_seconds\": {:.0f}, "
      "\"setup_seconds\": {:.1f}, \"wall_seconds\": {:.1f}, \"cpu_seconds\": {:.1f}, \"peak_mib\": {}, "
      "\"events\": {}}}\n",
      members, seen.rounds, done, seen.conflicts, seen.rows_carried, contributors, voters.text(rounds),
      others.text(rounds), to_seconds(world.world().now() - MonotonicTime{}) / static_cast<double>(rounds),
      made, seconds_since(begin),
      static_cast<double>(use.ru_utime.tv_sec) + 1e-6 * static_cast<double>(use.ru_utime.tv_usec),
      use.ru_maxrss / 1024, world.world().events());
  std::fflush(stdout);
  return done && seen.conflicts == 0 && seen.rows_carried == 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::size_t> members;
  std::uint64_t rounds = 2;
  std::size_t values = 64;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const auto value = std::strtoull(argv[i + 1], nullptr, 10);
    if (name == "--members") {
      members.push_back(value);
    } else if (name == "--rounds") {
      rounds = value;
    } else if (name == "--values") {
      values = value;
    } else {
      fmt::print(stderr, "unknown option {}\n", name);
      return 2;
    }
  }
  if (members.empty()) members = {8, 100};
  bool all = true;
  for (const std::size_t count : members) all = measure(count, rounds, values) && all;
  return all ? 0 : 1;
}
