// The partitioner against brute force on tiny graphs. NS_LONG=1: 10,000 graphs instead of a few hundred.
#include <fmt/format.h>

#include <QTest>

#include "core/base/clock.h"
#include "core/base/rng.h"
#include "core/partition/search/partition.h"
#include "tests/support/test_main.h"
#include "tests/unit/partition/graph_families.h"
#include "tests/unit/partition/oracle.h"

using namespace neuroshard;             // NOLINT
using namespace neuroshard::partition;  // NOLINT

class TestPartitionOracle : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void equal_peers();
  void unequal_peers();
  void colocated_nodes();
  void limited_memory();
  void streamed_parameters();

 private:
  // Scales the count for the long run.
  static std::uint64_t graphs(std::uint64_t in_ci, std::uint64_t in_long) {
    return qEnvironmentVariableIsSet("NS_LONG") ? in_long : in_ci;
  }
  static PartitionResult solve(const ComputationGraph& graph, const std::vector<Peer>& peers) {
    const auto problem = make_problem(graph, peers);
    if (!problem.ok()) qFatal("%s", problem.error().describe().c_str());
    PartitionOptions options;
    options.time_limit = Duration(0);
    options.rounds = 6;
    const ManualClock clock;
    auto result = find_partition(*problem, options, clock, {});
    if (!result.ok()) qFatal("%s", result.error().describe().c_str());
    return std::move(*result);
  }
  static ComputationGraph draw(Rng* rng, std::uint32_t most, std::uint64_t seed) {
    const double densities[] = {0.15, 0.3, 0.6};
    const double ratios[] = {0.01, 0.3, 1, 5};
    return test::random_graph(2 + static_cast<std::uint32_t>(rng->below(most - 1)), densities[rng->below(3)],
                              ratios[rng->below(4)], seed);
  }
};

#define CHECK_ANSWER(graph, peers, result, best, seed)                                                    \
  do {                                                                                                    \
    const std::string fault = test::find_fault(graph, peers, (result).blocks, (result).bottleneck);       \
    QVERIFY2(fault.empty(), fmt::format("seed {}: {}", seed, fault).c_str());                             \
    QVERIFY2((result).lower_bound <= (best) * (1 + 1e-9),                                                 \
             fmt::format("seed {}: bound {} over optimum {}", seed, (result).lower_bound, best).c_str()); \
    QVERIFY2((result).bottleneck >= (best) * (1 - 1e-9),                                                  \
             fmt::format("seed {}: {} under optimum {}", seed, (result).bottleneck, best).c_str());       \
  } while (false)

#define CHECK_OPTIMAL(graph, peers, result, best, seed)                                   \
  do {                                                                                    \
    CHECK_ANSWER(graph, peers, result, best, seed);                                       \
    QVERIFY2((result).bottleneck <= (best) * (1 + proof_tolerance) && (result).proved(),  \
             fmt::format("seed {}: {} (bound {}), optimum {}", seed, (result).bottleneck, \
                         (result).lower_bound, best)                                      \
                 .c_str());                                                               \
  } while (false)

void TestPartitionOracle::equal_peers() {
  for (std::uint64_t seed = 1; seed <= graphs(400, 10'000); ++seed) {
    Rng rng(seed);
    const ComputationGraph graph = draw(&rng, 10, seed);
    Peer peer;
    peer.bandwidth = 1;
    const std::size_t k = 1 + rng.below(std::min<std::size_t>(5, graph.nodes.size()));
    const std::vector<Peer> peers(k, peer);
    const PartitionResult result = solve(graph, peers);
    CHECK_OPTIMAL(graph, peers, result, test::best_bottleneck(graph, peers), seed);
  }
}

void TestPartitionOracle::unequal_peers() {
  for (std::uint64_t seed = 1; seed <= graphs(150, 3'000); ++seed) {
    Rng rng(seed);
    const ComputationGraph graph = draw(&rng, 8, seed);
    std::vector<Peer> peers(1 + rng.below(std::min<std::size_t>(4, graph.nodes.size())));
    for (Peer& peer : peers) {
      peer.speed = 1 + static_cast<double>(rng.below(3));
      peer.bandwidth = 1 + static_cast<double>(rng.below(2));
    }
    const PartitionResult result = solve(graph, peers);
    CHECK_OPTIMAL(graph, peers, result, test::best_bottleneck(graph, peers), seed);
  }
}

void TestPartitionOracle::colocated_nodes() {
  for (std::uint64_t seed = 1; seed <= graphs(100, 2'000); ++seed) {
    Rng rng(seed);
    ComputationGraph graph = draw(&rng, 9, seed);
    const auto n = static_cast<std::uint32_t>(graph.nodes.size());
    graph.colocated.push_back(
        {static_cast<std::uint32_t>(rng.below(n)), static_cast<std::uint32_t>(rng.below(n))});
    Peer peer;
    peer.bandwidth = 1;
    const std::vector<Peer> peers(1 + rng.below(std::min<std::size_t>(4, n)), peer);
    const PartitionResult result = solve(graph, peers);
    CHECK_OPTIMAL(graph, peers, result, test::best_bottleneck(graph, peers), seed);
  }
}

// With memory the order inside a block counts: the bound holds and the answer fits; whether it is the best is
// not promised, but it is for most.
void TestPartitionOracle::limited_memory() {
  std::uint64_t best_found = 0, solvable = 0;
  for (std::uint64_t seed = 1; seed <= graphs(100, 1'000); ++seed) {
    Rng rng(seed);
    ComputationGraph graph = draw(&rng, 6, seed);
    for (GraphNode& node : graph.nodes) node.param_bytes = static_cast<double>(rng.below(4));
    Peer peer;
    peer.bandwidth = 1;
    peer.memory = 4 + static_cast<double>(rng.below(8));
    const std::vector<Peer> peers(1 + rng.below(std::min<std::size_t>(4, graph.nodes.size())), peer);
    const double best = test::best_bottleneck_by_orders(graph, peers);
    const auto problem = make_problem(graph, peers);
    if (best == unlimited) {
      if (problem.ok()) {
        PartitionOptions options;
        options.rounds = 2;
        options.time_limit = Duration(0);
        const auto result = find_partition(*problem, options, ManualClock(), {});
        QVERIFY2(!result.ok() && result.error().code == ErrorCode::NotFound,
                 fmt::format("seed {}", seed).c_str());
      }
      continue;
    }
    ++solvable;
    const PartitionResult result = solve(graph, peers);
    CHECK_ANSWER(graph, peers, result, best, seed);
    best_found += result.bottleneck <= best * (1 + 1e-9);
  }
  QVERIFY(solvable > 20);
  QVERIFY2(best_found * 100 >= solvable * 95, fmt::format("{} of {}", best_found, solvable).c_str());
}

void TestPartitionOracle::streamed_parameters() {
  std::uint64_t best_found = 0, count = 0;
  for (std::uint64_t seed = 1; seed <= graphs(60, 600); ++seed) {
    Rng rng(seed);
    ComputationGraph graph = draw(&rng, 6, seed);
    for (GraphNode& node : graph.nodes) node.param_bytes = static_cast<double>(rng.below(6));
    Peer peer;
    peer.bandwidth = 1;
    peer.memory = 6;
    peer.stream_bandwidth = 2;
    const std::vector<Peer> peers(1 + rng.below(std::min<std::size_t>(3, graph.nodes.size())), peer);
    const double best = test::best_bottleneck_by_orders(graph, peers);
    if (best == unlimited) continue;
    ++count;
    const PartitionResult result = solve(graph, peers);
    CHECK_ANSWER(graph, peers, result, best, seed);
    best_found += result.bottleneck <= best * (1 + 1e-9);
  }
  QVERIFY(count > 10);
  QVERIFY2(best_found * 100 >= count * 95, fmt::format("{} of {}", best_found, count).c_str());
}

NS_TEST(TestPartitionOracle)
#include "test_partition_oracle.moc"
