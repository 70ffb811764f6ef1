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

namespace {

// A new plan beside the present one, after a tenth of the peers has left and as many others have come.
struct Again {
  double seconds = 0, of_bound = 0;
  double moved = 0;  // copies of the model that present holders fetch
};

Again plan_again(PlanRequest request, const Plan& plan, Rng& rng) {
  for (const PlacedPeer& peer : plan.peers) request.present.push_back({peer.id, peer.range, peer.dealt});
  const std::size_t changed = std::max<std::size_t>(1, request.peers.size() / 10);
  std::vector<PlanPeer> others = random_peers(rng, changed);
  for (std::size_t i = 0; i < changed; ++i) {
    request.peers.erase(request.peers.begin() + static_cast<std::ptrdiff_t>(rng.below(request.peers.size())));
    others[i].id = fmt::format("other-{}", i);
    others[i].owner = others[i].id;
    request.peers.push_back(others[i]);
  }
  const auto start = std::chrono::steady_clock::now();
  const auto next = make_plan(request);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!next.ok()) return {seconds, 0, 0};
  const auto whole = static_cast<double>(request.chain->transfer(request.chain->whole()));
  return {seconds, next->throughput / next->bound.throughput, static_cast<double>(next->moved_bytes) / whole};
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t seeds = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 3;
  const GrowthRules rules = mainnet_rules();
  fmt::print("{:>6} {:>5} {:>6} {:>7} {:>8} {:>10} {:>7} {:>7} {:>8} {:>8} {:>9} {:>8} {:>7} {:>7}  {}\n",
             "peers", "seed", "layers", "hidden", "seconds", "tokens/s", "bound", "owners", "greedy",
             "propor.", "best resp", "again s", "again", "moved", "stages");
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
      const Again again = plan_again(request, *plan, rng);
      fmt::print(
          "{:>6} {:>5} {:>6} {:>7} {:>8.3f} {:>10.1f} {:>7.4f} {:>7} {:>8.2f} {:>8.2f} {:>9.2f} {:>8.3f} "
          "{:>7.4f} {:>7.3f}  {}\n",
          count, seed, shape.layers, shape.hidden, seconds, ours, ours / plan->bound.throughput,
          plan->least_owners, ours / greedy, ours / proportional, ours / response, again.seconds,
          again.of_bound, again.moved, plan->boundaries.size() + 1);
    }
  }
  return 0;
}
