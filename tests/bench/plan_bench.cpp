// Seconds and quality of plans for heterogeneous peers, beside other planners:
//   build/release/tests/bench_plan [SEEDS [PEERS]]
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>

#include "tests/unit/plan/other_planners.h"
#include "tests/unit/plan/random_peers.h"

using namespace neuroshard;
using namespace neuroshard::plan;
using namespace neuroshard::plan::test;

int main(int argc, char** argv) {
  const std::uint64_t seeds = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 3;
  const GrowthRules rules = mainnet_rules();
  fmt::print("{:>6} {:>5} {:>6} {:>7} {:>8} {:>10} {:>7} {:>7} {:>8} {:>8} {:>9}  {}\n", "peers", "seed",
             "layers", "hidden", "seconds", "tokens/s", "bound", "owners", "greedy", "propor.", "best resp",
             "stages");
  for (const std::size_t count : {3, 5, 8, 12, 20, 30, 50, 100, 300, 1000}) {
    if (argc > 2 && std::strtoull(argv[2], nullptr, 10) != count) continue;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      Rng rng(seed * 1000 + count);
      const std::vector<PlanPeer> peers = random_peers(rng, count);
      const compute::ModelShape shape = shape_for(rules, peers);
      const Chain chain = chain_of(rules, shape);
      PlanRequest request;
      request.chain = &chain;
      request.peers = peers;
      const auto start = std::chrono::steady_clock::now();
      const auto plan = make_plan(request);
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      if (!plan.ok()) {
        fmt::print("{:>6} {:>5} {:>6} {:>7} {:>8.3f} {}\n", count, seed, shape.layers, shape.hidden, seconds,
                   plan.error().message);
        continue;
      }
      const double ours = plan->throughput;
      const double greedy = shared_throughput(chain, peers, greedy_holds(chain, peers));
      const double response = shared_throughput(chain, peers, best_response_holds(chain, peers));
      const double proportional = proportional_throughput(chain, peers);
      fmt::print("{:>6} {:>5} {:>6} {:>7} {:>8.3f} {:>10.1f} {:>7.4f} {:>7} {:>8.2f} {:>8.2f} {:>9.2f}  {}\n",
                 count, seed, shape.layers, shape.hidden, seconds, ours, ours / plan->bound.throughput,
                 plan->least_owners, ours / greedy, ours / proportional, ours / response,
                 plan->boundaries.size() + 1);
    }
  }
  return 0;
}
