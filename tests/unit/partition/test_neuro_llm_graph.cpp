// Graphs of our own models: parameters to the byte as the slots hold them, operations as bench counts them.
#include <QTest>
#include <map>

#include "core/compute/slot.h"
#include "core/partition/import/neuro_llm_graph.h"
#include "core/partition/search/partition.h"
#include "tests/support/test_main.h"

using namespace neuroshard;             // NOLINT
using namespace neuroshard::partition;  // NOLINT

namespace {

compute::ModelShape shape_of(std::uint32_t experts) {
  compute::ModelShape shape;
  shape.layers = 3;
  shape.hidden = 64;
  shape.head_dim = 16;
  shape.heads = 4;
  shape.kv_heads = 2;
  shape.ffn = 96;
  shape.experts = experts;
  shape.experts_per_token = experts > 1 ? 2 : 1;
  shape.vocab = 100;
  shape.sequence = 32;
  return shape;
}

// The slot that a node belongs to, by its name.
std::string slot_of(const std::string& id) {
  if (id.rfind("layer ", 0) == 0 || id.rfind("expert ", 0) == 0) return id.substr(0, id.find(' ', 7));
  return id.substr(0, id.find(' '));
}

}  // namespace

class TestNeuroLlmGraph : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void levels_data();
  void levels();
  void layers_are_a_chain();
  void training();
  void experts_may_be_cut_from_their_layer();
  void machine();
  void bad_options();
};

void TestNeuroLlmGraph::levels_data() {
  QTest::addColumn<int>("experts");
  QTest::addColumn<int>("level");
  for (const int experts : {1, 4}) {
    for (const int level : {0, 1, 2})
      QTest::addRow("%d experts, level %d", experts, level) << experts << level;
  }
}

void TestNeuroLlmGraph::levels() {
  QFETCH(int, experts);
  QFETCH(int, level);
  const compute::ModelShape shape = shape_of(static_cast<std::uint32_t>(experts));
  const auto costed = model_graph(shape, {static_cast<ModelLevel>(level), 5, false});
  QVERIFY2(costed.ok(), costed.ok() ? "" : costed.error().describe().c_str());
  QVERIFY(validate(costed->graph).ok());
  // Parameters per slot, exactly.
  std::map<std::string, double> params;
  for (const GraphNode& node : costed->graph.nodes) params[slot_of(node.id)] += node.param_bytes;
  for (const compute::SlotId slot : compute::model_slots(shape)) {
    double expected = 4.0 * static_cast<double>(compute::slot_parameter_count(shape, slot));
    if (level == 0 && slot.kind == compute::SlotKind::Expert) continue;
    if (level == 0 && slot.kind == compute::SlotKind::Layer) {
      expected += 4.0 * experts *
                  static_cast<double>(
                      compute::slot_parameter_count(shape, {compute::SlotKind::Expert, slot.layer, 0}));
    }
    QCOMPARE(params[compute::to_string(slot)], expected);
  }
  // Operations of a forward pass: a third of bench's 6 · parameters + 6 · layers · hidden · sequence.
  const double tokens = 5.0 * shape.sequence;
  const double expected = tokens * (2.0 * static_cast<double>(compute::active_parameter_count(shape)) +
                                    2.0 * shape.layers * shape.hidden * shape.sequence);
  QVERIFY2(std::abs(costed->total().flops - expected) <= 1e-9 * expected,
           qPrintable(QString("%1 instead of %2").arg(costed->total().flops).arg(expected)));
}

void TestNeuroLlmGraph::layers_are_a_chain() {
  for (const std::uint32_t experts : {1u, 4u}) {
    const auto costed = model_graph(shape_of(experts), {});
    QVERIFY(costed.ok());
    const auto& nodes = costed->graph.nodes;
    QCOMPARE(nodes.size(), std::size_t(5));
    for (std::uint32_t v = 1; v < nodes.size(); ++v)
      QCOMPARE(nodes[v].inputs, (std::vector<std::uint32_t>{v - 1}));
    QCOMPARE(nodes[1].output_bytes, 32.0 * 64 * 4);
    QCOMPARE(nodes.back().output_bytes, 0.0);
  }
}

void TestNeuroLlmGraph::training() {
  for (const ModelLevel level : {ModelLevel::Layer, ModelLevel::Slot, ModelLevel::Operator}) {
    const auto forward = model_graph(shape_of(4), {level, 1, false}),
               both = model_graph(shape_of(4), {level, 1, true});
    QVERIFY(forward.ok() && both.ok());
    QCOMPARE(both->total().flops, 3 * forward->total().flops);
    for (std::size_t v = 0; v < forward->costs.size(); ++v) {
      QCOMPARE(both->graph.nodes[v].param_bytes, 4 * forward->graph.nodes[v].param_bytes);
      QCOMPARE(both->graph.nodes[v].output_bytes, 2 * forward->graph.nodes[v].output_bytes);
    }
  }
}

// Two peers and one layer: experts on both sides is better than all in one block, and what crosses is their
// share of the tokens.
void TestNeuroLlmGraph::experts_may_be_cut_from_their_layer() {
  compute::ModelShape shape = shape_of(4);
  shape.layers = 1;
  shape.ffn = 2048;
  auto costed = model_graph(shape, {ModelLevel::Slot, 8, false});
  QVERIFY(costed.ok());
  const auto graph = with_work(std::move(*costed), {1e9, 1e12, 0});
  QVERIFY(graph.ok());
  Peer peer;
  peer.bandwidth = 1e10;
  const auto problem = make_problem(*graph, {peer, peer});
  QVERIFY2(problem.ok(), problem.ok() ? "" : problem.error().describe().c_str());
  PartitionOptions options;
  options.time_limit = Duration(0);
  const auto result = find_partition(*problem, options, ManualClock(), {});
  QVERIFY(result.ok() && result->proved());
  QCOMPARE(result->blocks.size(), std::size_t(2));
  double all = 0;
  for (const GraphNode& node : graph->nodes) all += node.work;
  QVERIFY2(result->bottleneck < 0.7 * all, qPrintable(QString::number(result->bottleneck / all)));
}

void TestNeuroLlmGraph::machine() {
  auto costed = model_graph(shape_of(1), {ModelLevel::Operator, 1, false});
  QVERIFY(costed.ok());
  const CostedGraph copy = *costed;
  const MachineModel machine{2e9, 1e10, 1e-6};
  const auto graph = with_work(std::move(*costed), machine);
  QVERIFY2(graph.ok(), graph.ok() ? "" : graph.error().describe().c_str());
  QCOMPARE(graph->unit, std::string("ms"));
  bool by_flops = false, by_bytes = false;
  for (std::size_t v = 0; v < copy.costs.size(); ++v) {
    const double compute = copy.costs[v].flops / 2e9, memory = copy.costs[v].bytes / 1e10;
    by_flops = by_flops || compute > memory;
    by_bytes = by_bytes || memory > compute;
    QVERIFY(std::abs(graph->nodes[v].work - 1e3 * (std::max(compute, memory) + 1e-6)) < 1e-12);
  }
  QVERIFY(by_flops && by_bytes);
  QVERIFY(graph->convention.find("FLOP / 2e9 per s") != std::string::npos);
  for (const MachineModel& bad : {MachineModel{0, 1, 0}, {1, -1, 0}, {1, 1, -1}, {NAN, 1, 0}})
    QVERIFY(!with_work(copy, bad).ok());
}

void TestNeuroLlmGraph::bad_options() {
  compute::ModelShape shape = shape_of(1);
  QVERIFY(!model_graph(shape, {ModelLevel::Layer, 0, false}).ok());
  shape.hidden = 63;
  QVERIFY(!model_graph(shape, {}).ok());
}

NS_TEST(TestNeuroLlmGraph)
#include "test_neuro_llm_graph.moc"
