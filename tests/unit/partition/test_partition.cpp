// The parts of the partitioner, and what it promises on graphs too large for brute force.
#include <fmt/format.h>

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTest>
#include <algorithm>
#include <set>

#include "core/base/clock.h"
#include "core/base/rng.h"
#include "core/partition/render/drawing.h"
#include "core/partition/render/layout_json.h"
#include "core/partition/search/annealing.h"
#include "core/partition/search/detail/block_cut.h"
#include "core/partition/search/detail/bound_search.h"
#include "core/partition/search/forced_groups.h"
#include "core/partition/search/orders.h"
#include "core/partition/search/partition.h"
#include "core/partition/search/reduction.h"
#include "core/partition/search/slicing.h"
#include "tests/support/test_main.h"
#include "tests/unit/partition/graph_families.h"
#include "tests/unit/partition/oracle.h"

using namespace neuroshard;             // NOLINT
using namespace neuroshard::partition;  // NOLINT

namespace {

std::vector<Peer> equal_peers(std::size_t k) {
  Peer peer;
  peer.bandwidth = 1;
  return std::vector<Peer>(k, peer);
}

PartitionOptions rounds(std::uint32_t count, std::uint64_t seed = 1) {
  PartitionOptions options;
  options.time_limit = Duration(0);
  options.rounds = count;
  options.seed = seed;
  return options;
}

bool never() {
  return false;
}

GraphNode free_node(std::string id, double output_bytes, std::vector<std::uint32_t> inputs) {
  GraphNode node;
  node.id = std::move(id);
  node.output_bytes = output_bytes;
  node.inputs = std::move(inputs);
  return node;
}

// `count` sources, and a sink behind each; the source in the middle has the smallest output.
ComputationGraph pairs(std::uint32_t count) {
  ComputationGraph graph;
  for (std::uint32_t i = 0; i < count; ++i)
    graph.nodes.push_back(free_node(fmt::format("source {}", i), i == count / 2 ? 1 : 2, {}));
  for (std::uint32_t i = 0; i < count; ++i)
    graph.nodes.push_back(free_node(fmt::format("sink {}", i), 0, {i}));
  return graph;
}

}  // namespace

class TestPartition : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void segment_costs_are_those_of_the_definition();
  void overflow_has_the_right_units();
  void orders_are_topological();
  void cheapest_block_is_the_minimum();
  void reduction_keeps_the_optimum();
  void stars_are_reduced_at_once();
  void greedy_order_is_left_out_of_wide_graphs();
  void slicing_asks_for_a_stop();
  void forced_groups_ask_for_a_stop_at_each_edge();
  void bounds_rise_from_zero();
  void annealing_is_never_worse();
  void layered_models_are_proved();
  void families_are_feasible_and_bounded();
  void same_seed_same_answer();
  void time_limit_and_cancel_end_the_search();
  void unequal_peers_get_unequal_loads();
  void pictures();
};

void TestPartition::segment_costs_are_those_of_the_definition() {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    ComputationGraph graph = test::random_graph(14, 0.25, 1, seed);
    Rng rng(seed);
    for (GraphNode& node : graph.nodes) node.param_bytes = rng.uniform();
    Peer peer;
    peer.bandwidth = 1;
    peer.memory = 5;
    peer.stream_bandwidth = 3;
    const auto made = make_problem(graph, {peer, peer});
    if (!made.ok()) continue;  // a node with more tensors than fit
    SegmentSweep sweep(made->graph);
    const std::vector<NodeIndex> order = topological_order(made->graph);
    sweep.set_order(order);
    for (std::size_t i = 0; i < order.size(); ++i) {
      sweep.start(i);
      std::vector<std::uint32_t> block;
      for (std::size_t j = i; j < order.size(); ++j) {
        const SegmentCost& cost = sweep.grow();
        block.push_back(order[j]);
        const double mine =
            made->devices[0].block_cost(cost.work, cost.in + cost.out, cost.params, cost.peak);
        const double right = test::block_cost(graph, peer, order, block);
        QVERIFY2(mine == right || std::abs(mine - right) < 1e-9,
                 fmt::format("seed {}: {} {}", seed, mine, right).c_str());
      }
    }
  }
}

void TestPartition::overflow_has_the_right_units() {
  Device device;
  device.memory = 100;
  QCOMPARE(device.block_cost(2, 1, 60, 40), 3.0);        // fits: nothing
  QCOMPARE(device.block_cost(2, 1, 61, 40), unlimited);  // hard by default
  device.stream_factor = 0.5;                            // seconds per byte
  QCOMPARE(device.block_cost(2, 1, 61, 40), 3.5);        // one byte too many
  QCOMPARE(device.block_cost(2, 1, 60, 100), 33.0);      // all parameters stream
  QCOMPARE(device.block_cost(2, 1, 0, 101), unlimited);  // activations can't
}

void TestPartition::orders_are_topological() {
  const auto problem = make_problem(test::layered_random(120, 0.5, 1, 3), equal_peers(2));
  QVERIFY(problem.ok());
  const auto orders = simple_orders(problem->graph);
  QVERIFY(orders.size() >= 5);
  for (const auto& order : orders) {
    std::vector<std::size_t> place(order.size());
    QCOMPARE(order.size(), problem->graph.size());
    for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
    for (NodeIndex v = 0; v < order.size(); ++v) {
      for (const NodeIndex u : problem->graph.predecessors[v]) QVERIFY(place[u] < place[v]);
    }
    QCOMPARE(order_by_keys(problem->graph, keys_of_order(order)), order);
  }
}

void TestPartition::cheapest_block_is_the_minimum() {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const ComputationGraph graph = test::random_graph(9, 0.3, 1, seed);
    const auto problem = make_problem(graph, equal_peers(1));
    QVERIFY(problem.ok());
    partition::detail::BlockCut cut(problem->graph, 1, 1);
    Rng rng(seed);
    const auto inside = static_cast<NodeIndex>(rng.below(9));
    std::vector<std::uint8_t> outside(9);
    for (NodeIndex v = 0; v < 9; ++v) outside[v] = v != inside && rng.below(4) == 0;
    double best = unlimited;
    for (std::uint32_t set = 0; set < 512; ++set) {
      std::vector<std::uint32_t> block;
      bool allowed = (set >> inside) & 1;
      for (NodeIndex v = 0; v < 9; ++v) {
        if (!((set >> v) & 1)) continue;
        allowed = allowed && !outside[v];
        block.push_back(v);
      }
      if (allowed) best = std::min(best, test::block_cost(graph, equal_peers(1)[0], {}, block));
    }
    QVERIFY(std::abs(cut.cheapest({inside}, outside, 1e9) - best) < 1e-9);
    if (best > 0) QVERIFY(cut.cheapest({inside}, outside, best * 0.9) > best * 0.9);
    std::vector<std::uint32_t> attained;
    QVERIFY(std::abs(cut.cheapest({inside}, outside, best * 1.1 + 1e-9) - best) < 1e-9);
    for (NodeIndex v = 0; v < 9; ++v) {
      if (cut.block()[v]) attained.push_back(v);
    }
    QVERIFY(std::abs(test::block_cost(graph, equal_peers(1)[0], {}, attained) - best) < 1e-9);
  }
}

void TestPartition::reduction_keeps_the_optimum() {
  std::size_t reduced_graphs = 0, with_work = 0;
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    ComputationGraph graph = test::random_graph(8, 0.25, 1, seed);
    // No work at all, then little of it: what a tensor costs decides.
    const bool none = seed <= 60;
    for (std::size_t v = 0; v < graph.nodes.size(); v += 2) graph.nodes[v].work *= none ? 0 : 0.1;
    auto peers = equal_peers(3);
    if (seed % 3 == 0) peers[1].speed = 0.5, peers[2].bandwidth = 2;
    const auto problem = make_problem(graph, peers);
    QVERIFY(problem.ok());
    const Grouping grouping = reduce_dominated(problem->graph, problem->devices, never);
    reduced_graphs += grouping.count < 8;
    with_work += !none && grouping.count < 8;
    ComputationGraph merged = graph;
    for (NodeIndex v = 0; v < 8; ++v) {
      for (NodeIndex w = 0; w < v; ++w) {
        if (grouping.group_of[v] == grouping.group_of[w]) merged.colocated.push_back({w, v});
      }
    }
    QCOMPARE(test::best_bottleneck(merged, peers), test::best_bottleneck(graph, peers));
  }
  QVERIFY(reduced_graphs > 20 && with_work > 10);
}

// Many nodes around one: passes are counted, because a pass over a large graph takes long.
void TestPartition::stars_are_reduced_at_once() {
  constexpr std::uint32_t rays = 20'000;
  ComputationGraph sources, leaves;
  leaves.nodes.push_back(free_node("hub", 1, {}));
  std::vector<std::uint32_t> all;
  for (std::uint32_t i = 0; i < rays; ++i) {
    all.push_back(i);
    sources.nodes.push_back(free_node(fmt::format("source {}", i), 1, {}));
    leaves.nodes.push_back(free_node(fmt::format("leaf {}", i), 0, {0}));
  }
  sources.nodes.push_back(free_node("hub", 0, all));
  for (const ComputationGraph* graph : {&sources, &leaves}) {
    const auto problem = make_problem(*graph, equal_peers(2));
    QVERIFY(problem.ok());
    int passes = 0;
    const Grouping grouping =
        reduce_dominated(problem->graph, problem->devices, [&passes] { return ++passes > 4; });
    QCOMPARE(grouping.count, NodeIndex{1});
    const Grouping stopped = reduce_dominated(problem->graph, problem->devices, [] { return true; });
    QCOMPARE(stopped.count, NodeIndex{rays + 1});
  }
}

void TestPartition::greedy_order_is_left_out_of_wide_graphs() {
  for (const std::uint32_t count : {100u, 20'000u}) {
    const auto problem = make_problem(pairs(count), equal_peers(2));
    QVERIFY(problem.ok());
    const auto orders = simple_orders(problem->graph);
    QVERIFY(orders.size() >= 2);
    // Only the greedy order looks at costs, so only it begins with the smallest output.
    const bool greedy = std::any_of(orders.begin(), orders.end(),
                                    [&](const auto& order) { return order.front() == count / 2; });
    QCOMPARE(greedy, count == 100);
  }
}

// No segment is too long where no node has work.
void TestPartition::slicing_asks_for_a_stop() {
  constexpr std::uint32_t length = 2000;
  ComputationGraph graph;
  for (std::uint32_t i = 0; i < length; ++i)
    graph.nodes.push_back(
        free_node(fmt::format("node {}", i), 1, i == 0 ? std::vector<std::uint32_t>{} : std::vector{i - 1}));
  const auto peers = equal_peers(8);
  const auto problem = make_problem(graph, peers);
  QVERIFY(problem.ok());
  const auto order = topological_order(problem->graph);
  int asked = 0;
  Slicer slicer(problem->graph, problem->devices, [&asked] { return ++asked > 2; });
  const Slicing shares = slicer.slice(order, unlimited);
  QCOMPARE(asked, 3);
  QCOMPARE(shares.ends, (std::vector<std::uint32_t>{250, 500, 750, 1000, 1250, 1500, 1750, 2000}));
  QCOMPARE(shares.device, (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  QCOMPARE(shares.bottleneck, 2.0);  // one tensor in, one out
  QVERIFY(slicer.slice(order, 2).bottleneck == unlimited);
  CancelSource source;
  source.cancel();
  const auto result = find_partition(*problem, rounds(1), ManualClock(), source.token());
  QVERIFY(result.ok());
  QVERIFY(result->interrupted);
  QCOMPARE(test::find_fault(graph, peers, result->blocks, result->bottleneck), std::string());
}

void TestPartition::forced_groups_ask_for_a_stop_at_each_edge() {
  constexpr std::uint32_t side = 20;
  ComputationGraph graph;
  std::vector<std::uint32_t> all;
  for (std::uint32_t i = 0; i < side; ++i) {
    all.push_back(i);
    graph.nodes.push_back(free_node(fmt::format("source {}", i), 0.01, {}));
  }
  for (std::uint32_t i = 0; i < side; ++i)
    graph.nodes.push_back(free_node(fmt::format("sink {}", i), 0, all));
  for (GraphNode& node : graph.nodes) node.work = 1;
  const auto problem = make_problem(graph, equal_peers(4));
  QVERIFY(problem.ok());
  std::uint32_t asked = 0;
  const auto forced = force_groups(problem->graph, problem->devices, 1000, 1, [&asked] {
    ++asked;
    return false;
  });
  QVERIFY(!forced.refuted && forced.complete);
  QVERIFY2(asked >= side * side, fmt::format("asked {} times", asked).c_str());
}

// Without work there is no simple bound to start from: the bisection must leave 0.
void TestPartition::bounds_rise_from_zero() {
  ComputationGraph graph;
  for (std::uint32_t i = 0; i < 6; ++i)
    graph.nodes.push_back(
        free_node(fmt::format("node {}", i), 1, i == 0 ? std::vector<std::uint32_t>{} : std::vector{i - 1}));
  for (GraphNode& node : graph.nodes) node.param_bytes = 10;
  auto peers = equal_peers(3);
  for (Peer& peer : peers) peer.memory = 35;  // half of the chain and its tensors
  const double best = test::best_bottleneck_by_orders(graph, peers);
  QCOMPARE(best, 1.0);
  const auto problem = make_problem(graph, peers);
  QVERIFY(problem.ok() && problem->memory_binds);
  partition::detail::BoundSearch bounds(problem->graph, problem->devices, 0, never);
  QVERIFY(bounds.contract_at(10 * best));
  bounds.run(10 * best, 0);
  QVERIFY2(bounds.complete() && bounds.lower() <= best && bounds.lower() > best * (1 - 1e-6),
           fmt::format("{}", bounds.lower()).c_str());
  const auto result = find_partition(*problem, rounds(6), ManualClock(), {});
  QVERIFY(result.ok());
  QCOMPARE(test::find_fault(graph, peers, result->blocks, result->bottleneck), std::string());
  QCOMPARE(result->bottleneck, best);
  QVERIFY(result->proved());
}

void TestPartition::annealing_is_never_worse() {
  const auto problem = make_problem(test::layered_random(80, 0.5, 0.3, 5), equal_peers(4));
  QVERIFY(problem.ok());
  Slicer slicer(problem->graph, problem->devices);
  const auto order = topological_order(problem->graph);
  const Slicing sliced = slicer.slice(order, unlimited);
  BlockAssignment start{std::vector<std::uint32_t>(80), problem->devices};
  for (std::size_t i = 0, b = 0; i < 80; ++i) {
    if (i == sliced.ends[b]) ++b;
    start.block_of[order[i]] = static_cast<std::uint32_t>(b);
  }
  Rng rng(1);
  const BlockAssignment after = anneal(problem->graph, start, AnnealingPlan{20'000, 0.05, {}}, &rng);
  double most = 0;
  for (const auto& block : report_blocks(*problem, after.block_of, {0, 1, 2, 3}, order))
    most = std::max(most, block.cost);
  QVERIFY(most <= sliced.bottleneck * (1 + 1e-9));
  for (NodeIndex v = 0; v < 80; ++v) {
    for (const NodeIndex u : problem->graph.predecessors[v]) QVERIFY(after.block_of[u] <= after.block_of[v]);
  }
}

void TestPartition::layered_models_are_proved() {
  for (const test::Family& family : test::all_families()) {
    if (!family.is_layered_model || family.graph.nodes.size() > 100) continue;
    const auto peers = equal_peers(8);
    const auto problem = make_problem(family.graph, peers);
    QVERIFY(problem.ok());
    const auto result = find_partition(*problem, rounds(8), ManualClock(), {});
    QVERIFY(result.ok());
    const std::string fault = test::find_fault(family.graph, peers, result->blocks, result->bottleneck);
    QVERIFY2(fault.empty(), (family.name + ": " + fault).c_str());
    QVERIFY2(result->proved(),
             fmt::format("{}: {} over {}", family.name, result->bottleneck, result->lower_bound).c_str());
    QVERIFY(result->lower_bound >= result->simple_bound * (1 - 1e-12));
  }
}

void TestPartition::families_are_feasible_and_bounded() {
  const ComputationGraph graphs[] = {
      test::diamond_ladder(20, 0.5, 0.3, 1), test::transformer_operators(3, 0.5, 1, 2),
      test::inception(5, 0.5, 0.1, 3), test::u_net(5, 0.5, 1, 4), test::layered_random(34, 0.5, 0.1, 5)};
  for (const ComputationGraph& graph : graphs) {
    const auto peers = equal_peers(5);
    const auto problem = make_problem(graph, peers);
    QVERIFY(problem.ok());
    const auto result = find_partition(*problem, rounds(1), ManualClock(), {});
    QVERIFY(result.ok());
    const std::string fault = test::find_fault(graph, peers, result->blocks, result->bottleneck);
    QVERIFY2(fault.empty(), fault.c_str());
    QVERIFY(result->lower_bound <= result->bottleneck);
    QVERIFY(result->lower_bound >= result->simple_bound);
  }
}

void TestPartition::same_seed_same_answer() {
  const auto problem = make_problem(test::layered_random(34, 0.7, 0.2, 9), equal_peers(5));
  QVERIFY(problem.ok());
  const auto first = find_partition(*problem, rounds(1, 5), ManualClock(), {});
  const auto second = find_partition(*problem, rounds(1, 5), ManualClock(), {});
  QVERIFY(first.ok() && second.ok());
  QCOMPARE(first->bottleneck, second->bottleneck);
  QCOMPARE(first->lower_bound, second->lower_bound);
  QCOMPARE(first->blocks.size(), second->blocks.size());
  for (std::size_t b = 0; b < first->blocks.size(); ++b)
    QCOMPARE(first->blocks[b].nodes, second->blocks[b].nodes);
}

// A clock that moves each time it is read.
class TickingClock final : public Clock {
 public:
  MonotonicTime monotonic_now() const override { return MonotonicTime(std::chrono::milliseconds(++reads_)); }
  WallTime wall_now() const override { return {}; }

 private:
  mutable std::atomic<std::int64_t> reads_{0};
};

void TestPartition::time_limit_and_cancel_end_the_search() {
  const ComputationGraph graph = test::layered_random(300, 0.7, 0.2, 9);
  const auto peers = equal_peers(8);
  const auto problem = make_problem(graph, peers);
  QVERIFY(problem.ok());
  PartitionOptions options = rounds(1'000'000);
  options.time_limit = std::chrono::milliseconds(50);
  const auto timed = find_partition(*problem, options, TickingClock(), {});
  QVERIFY(timed.ok());
  QVERIFY(timed->interrupted);
  QCOMPARE(test::find_fault(graph, peers, timed->blocks, timed->bottleneck), std::string());
  CancelSource source;
  source.cancel();
  const auto cancelled = find_partition(*problem, rounds(1'000'000), ManualClock(), source.token());
  QVERIFY(cancelled.ok());  // the first order is sliced whatever happens
  QVERIFY(cancelled->interrupted);
  QCOMPARE(test::find_fault(graph, peers, cancelled->blocks, cancelled->bottleneck), std::string());
}

void TestPartition::unequal_peers_get_unequal_loads() {
  std::vector<Peer> peers = equal_peers(3);
  peers[1].speed = 4;
  for (Peer& peer : peers) peer.bandwidth = 1000;
  const ComputationGraph graph = test::chain(60, 0, 0.01, 1);
  const auto problem = make_problem(graph, peers);
  QVERIFY(problem.ok());
  const auto result = find_partition(*problem, rounds(3), ManualClock(), {});
  QVERIFY(result.ok());
  QCOMPARE(test::find_fault(graph, peers, result->blocks, result->bottleneck), std::string());
  QVERIFY(result->proved());
  for (const BlockReport& block : result->blocks)
    QCOMPARE(block.nodes.size(), std::size_t(block.device == 1 ? 40 : 10));
}

void TestPartition::pictures() {
  ComputationGraph graph = test::inception(3, 0.5, 0.1, 3);
  graph.nodes[0].op = "<stem> & \"more\"";
  const auto problem = make_problem(graph, equal_peers(3));
  QVERIFY(problem.ok());
  const auto result = find_partition(*problem, rounds(1), ManualClock(), {});
  QVERIFY(result.ok());
  const QByteArray svg = QByteArray::fromStdString(to_svg(graph, *result));
  QVERIFY(svg.startsWith("<svg ") && svg.trimmed().endsWith("</svg>"));
  QCOMPARE(svg.count("class=\"node\""), static_cast<int>(graph.nodes.size()));
  // One line per edge inside a block; per tensor and block that it is sent to one, with a thin one to each
  // reader there.
  std::vector<std::size_t> block_of(graph.nodes.size());
  for (std::size_t b = 0; b < result->blocks.size(); ++b) {
    for (const NodeIndex v : result->blocks[b].nodes) block_of[v] = b;
  }
  int inside = 0, cut = 0;
  std::set<std::pair<std::uint32_t, std::size_t>> sent;
  for (std::size_t v = 0; v < graph.nodes.size(); ++v) {
    for (const std::uint32_t u : graph.nodes[v].inputs) {
      ++(block_of[u] == block_of[v] ? inside : cut);
      if (block_of[u] != block_of[v]) sent.insert({u, block_of[v]});
    }
  }
  QCOMPARE(svg.count("class=\"edge\""), inside);
  QCOMPARE(svg.count("class=\"fan\""), cut);
  QCOMPARE(svg.count("class=\"cut\""), static_cast<int>(sent.size()));
  QVERIFY(cut > 0 && svg.contains("bottleneck") &&
          svg.contains(result->proved() ? "proved optimal" : "gap "));
  QVERIFY(svg.contains("&lt;stem&gt;") && !svg.contains("<stem>"));
  // The same boxes for who draws them himself.
  const QJsonObject layout =
      QJsonDocument::fromJson(QByteArray::fromStdString(layout_json(graph, *result))).object();
  QCOMPARE(layout["nodes"].toArray().size(), qsizetype(graph.nodes.size()));
  QCOMPARE(layout["columns"].toArray().size(), qsizetype(result->blocks.size()));
  QCOMPARE(layout["edges"].toArray().size(), qsizetype(graph.edge_count()));
  QVERIFY(!layout["contracted"].toBool(true));
  for (qsizetype v = 0; v < layout["nodes"].toArray().size(); ++v) {
    const QJsonObject node = layout["nodes"][v].toObject();
    const QJsonObject column = layout["columns"][node["block"].toInt()].toObject();
    QCOMPARE(node["block"].toInt(), int(block_of[std::size_t(v)]));
    QCOMPARE(node["id"].toString().toStdString(), graph.nodes[std::size_t(v)].id);
    QVERIFY(node["x"].toDouble() > column["left"].toDouble() &&
            node["x"].toDouble() < column["left"].toDouble() + column["width"].toDouble());
    QVERIFY(node["y"].toDouble() < column["bottom"].toDouble());
  }
  const QByteArray dot = QByteArray::fromStdString(to_dot(graph, *result));
  QCOMPARE(dot.count("subgraph cluster_"), static_cast<int>(result->blocks.size()));
  QCOMPARE(dot.count(" -> "), static_cast<int>(graph.edge_count()));
}

NS_TEST(TestPartition)
#include "test_partition.moc"
