// plan_chain: the best cut of a chain over peers in a fixed order, against trying every cut.
#include <QTest>
#include <numeric>

#include "core/base/rng.h"
#include "core/partition/search/chain.h"
#include "tests/support/test_main.h"

using namespace neuroshard;             // NOLINT
using namespace neuroshard::partition;  // NOLINT

namespace {

ComputationGraph random_chain(std::uint32_t n, Rng& rng) {
  ComputationGraph graph;
  for (std::uint32_t v = 0; v < n; ++v) {
    GraphNode node;
    node.id = "n" + std::to_string(v);
    node.work = 1 + static_cast<double>(rng.below(20));
    node.param_bytes = static_cast<double>(rng.below(50));
    node.output_bytes = static_cast<double>(rng.below(6));
    if (v > 0) node.inputs = {v - 1};
    graph.nodes.push_back(std::move(node));
  }
  return graph;
}

std::vector<std::uint32_t> in_order(std::size_t n) {
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// The cost of nodes first…last−1 on a peer, straight from the model's definition; infinite where it is too
// large.
double cost_of(const ComputationGraph& graph, const Peer& peer, std::size_t first, std::size_t last) {
  double work = 0, params = 0, peak = 0;
  for (std::size_t v = first; v < last; ++v) {
    work += graph.nodes[v].work;
    params += graph.nodes[v].param_bytes;
    const double in = v > 0 ? graph.nodes[v - 1].output_bytes : 0;
    peak = std::max(peak, in + graph.nodes[v].output_bytes);
  }
  if (params + peak > peer.memory) return unlimited;
  const double in = first > 0 ? graph.nodes[first - 1].output_bytes : 0;
  const double out = last < graph.nodes.size() ? graph.nodes[last - 1].output_bytes : 0;
  return work / peer.speed + (in + out) / peer.bandwidth;
}

double best_by_trying(const ComputationGraph& graph, const std::vector<Peer>& peers, std::size_t at,
                      std::size_t peer) {
  if (at == graph.nodes.size()) return 0;
  if (peer == peers.size()) return unlimited;
  double best = best_by_trying(graph, peers, at, peer + 1);
  for (std::size_t end = at + 1; end <= graph.nodes.size(); ++end) {
    best = std::min(
        best, std::max(cost_of(graph, peers[peer], at, end), best_by_trying(graph, peers, end, peer + 1)));
  }
  return best;
}

}  // namespace

class TestChain : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void agrees_with_trying_every_cut();
  void more_peers_than_nodes();
  void bad_orders();
};

void TestChain::agrees_with_trying_every_cut() {
  Rng rng(7);
  int planned = 0;
  for (int round = 0; round < 300; ++round) {
    const ComputationGraph graph = random_chain(2 + static_cast<std::uint32_t>(rng.below(6)), rng);
    std::vector<Peer> peers(1 + rng.below(4));
    for (Peer& peer : peers) {
      peer.speed = 1 + static_cast<double>(rng.below(4));
      peer.bandwidth = 1 + static_cast<double>(rng.below(3));
      peer.memory = round % 2 == 0 ? unlimited : 60 + static_cast<double>(rng.below(100));
    }
    const double best = best_by_trying(graph, peers, 0, 0);
    const auto plan = plan_chain(graph, in_order(graph.nodes.size()), peers);
    if (best == unlimited) {
      QVERIFY(!plan.ok());
      continue;
    }
    QVERIFY2(plan.ok(), plan.ok() ? "" : plan.error().describe().c_str());
    ++planned;
    QVERIFY2(std::abs(plan->bottleneck - best) <= 1e-9 * best,
             qPrintable(QString("round %1: %2 instead of %3").arg(round).arg(plan->bottleneck).arg(best)));
    std::uint32_t next = 0, peer = 0;
    for (const ChainBlock& block : plan->blocks) {
      QCOMPARE(block.first, next);
      QVERIFY(block.count > 0 && (next == 0 || block.peer > peer));
      QVERIFY(std::abs(block.cost -
                       cost_of(graph, peers[block.peer], block.first, block.first + block.count)) < 1e-9);
      next += block.count;
      peer = block.peer;
    }
    QCOMPARE(next, static_cast<std::uint32_t>(graph.nodes.size()));
  }
  QVERIFY(planned > 200);
}

// A thousand peers for 64 layers: most are left out, and the fast ones are used.
void TestChain::more_peers_than_nodes() {
  Rng rng(3);
  ComputationGraph graph = random_chain(64, rng);
  for (GraphNode& node : graph.nodes) node.work = 8;
  std::vector<Peer> peers(1000);
  for (std::size_t i = 0; i < peers.size(); ++i) {
    peers[i].speed = i % 10 == 0 ? 4 : 1;
    peers[i].bandwidth = 1e9;
  }
  const auto plan = plan_chain(graph, in_order(64), peers);
  QVERIFY2(plan.ok(), plan.ok() ? "" : plan.error().describe().c_str());
  QVERIFY(std::abs(plan->bottleneck - 2) < 1e-6);
  QCOMPARE(plan->blocks.size(), std::size_t(64));
}

void TestChain::bad_orders() {
  Rng rng(1);
  const ComputationGraph graph = random_chain(3, rng);
  Peer peer;
  peer.bandwidth = 1;
  for (const std::vector<std::uint32_t>& order :
       {std::vector<std::uint32_t>{0, 1}, {0, 1, 1}, {0, 1, 5}, {1, 0, 2}, {}}) {
    const auto plan = plan_chain(graph, order, {peer});
    QVERIFY(!plan.ok() && plan.error().code == ErrorCode::InvalidArgument);
  }
  QVERIFY(!plan_chain(graph, in_order(3), {}).ok());
}

NS_TEST(TestChain)
#include "test_chain.moc"
