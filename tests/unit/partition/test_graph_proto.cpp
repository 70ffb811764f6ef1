// The protobuf form of graphs: against the JSON form, against code that protoc generates, and bad bytes.
#include <QTest>

#include <proto/graph.pb.h>
#include "core/partition/graph/graph_json.h"
#include "core/partition/graph/graph_proto.h"
#include "core/partition/graph/wire_format.h"
#include "tests/support/test_main.h"
#include "tests/unit/partition/graph_families.h"

using namespace neuroshard;             // NOLINT
using namespace neuroshard::partition;  // NOLINT

namespace {

bool same(const ComputationGraph& a, const ComputationGraph& b) {
  if (a.nodes.size() != b.nodes.size() || a.colocated != b.colocated || a.unit != b.unit ||
      a.unit_seconds != b.unit_seconds || a.printed_transfers != b.printed_transfers ||
      a.convention != b.convention)
    return false;
  for (std::size_t v = 0; v < a.nodes.size(); ++v) {
    const GraphNode &x = a.nodes[v], &y = b.nodes[v];
    if (x.id != y.id || x.op != y.op || x.work != y.work || x.param_bytes != y.param_bytes ||
        x.output_bytes != y.output_bytes || x.transfer != y.transfer || x.inputs != y.inputs)
      return false;
  }
  return true;
}

ComputationGraph sample() {
  ComputationGraph graph = test::layered_random(60, 1, 0.3, 5);
  graph.unit = "us";
  graph.unit_seconds = 1e-6;
  graph.convention = "made by a test; work in µs";
  graph.nodes[3].id = "größer";
  graph.nodes[4].op = "matmul";
  graph.nodes[5].param_bytes = 1e17 / 3;
  graph.nodes[6].transfer = 0.1;
  graph.printed_transfers = true;
  graph.colocated = {{1, 2}, {7, 9, 8}};
  for (GraphNode& node : graph.nodes) std::sort(node.inputs.begin(), node.inputs.end());
  return graph;
}

ByteSpan bytes_of(const std::string& text) {
  return as_bytes(std::string_view(text));
}

}  // namespace

class TestGraphProto : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void round_trips();
  void libprotobuf_reads_ours();
  void we_read_libprotobuf();
  void bad_files_data();
  void bad_files();
  void every_cut_is_told();
  void long_texts_are_cut_between_characters();
};

void TestGraphProto::round_trips() {
  const ComputationGraph graph = sample();
  const auto binary = parse_graph_proto(format_graph_proto(graph));
  QVERIFY2(binary.ok(), binary.ok() ? "" : binary.error().describe().c_str());
  QVERIFY(same(*binary, graph));
  const auto text = parse_graph(bytes_of(format_graph(graph)));
  QVERIFY2(text.ok(), text.ok() ? "" : text.error().describe().c_str());
  QVERIFY(same(*text, graph));
  QVERIFY(is_graph_proto(format_graph_proto(graph)));
  QVERIFY(!is_graph_proto(bytes_of(format_graph(graph))));
}

void TestGraphProto::libprotobuf_reads_ours() {
  const ComputationGraph graph = sample();
  const Bytes bytes = format_graph_proto(graph);
  graph::v1::Graph message;
  QVERIFY(message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
  QCOMPARE(message.format(), std::string("neuroshard graph 1"));
  QCOMPARE(message.unit(), graph.unit);
  QCOMPARE(message.convention(), graph.convention);
  QVERIFY(message.printed_transfers());
  QCOMPARE(message.nodes_size(), 60);
  for (int v = 0; v < 60; ++v) {
    const GraphNode& node = graph.nodes[static_cast<std::size_t>(v)];
    QCOMPARE(message.nodes(v).id(), node.id);
    QCOMPARE(message.nodes(v).op(), node.op);
    QCOMPARE(message.nodes(v).work(), node.work);
    QCOMPARE(message.nodes(v).param_bytes(), node.param_bytes);
    QCOMPARE(message.nodes(v).output_bytes(), node.output_bytes);
    QCOMPARE(message.nodes(v).transfer(), node.transfer);
    QVERIFY(std::equal(message.nodes(v).inputs().begin(), message.nodes(v).inputs().end(),
                       node.inputs.begin(), node.inputs.end()));
  }
  QCOMPARE(message.colocated_size(), 2);
  QCOMPARE(message.colocated(1).nodes(1), 9u);
}

void TestGraphProto::we_read_libprotobuf() {
  graph::v1::Graph message;
  message.set_format("neuroshard graph 1");
  for (const char* id : {"a", "b", "c"}) {
    graph::v1::Node* node = message.add_nodes();
    node->set_id(id);
    node->set_work(2.5);
    node->set_output_bytes(8);
  }
  message.mutable_nodes(0)->add_inputs(1);
  message.mutable_nodes(0)->add_inputs(2);
  message.mutable_nodes(1)->add_inputs(2);
  message.add_colocated()->add_nodes(2);
  message.mutable_colocated(0)->add_nodes(1);
  // Fields of a newer program are skipped.
  message.mutable_nodes(1)
      ->GetReflection()
      ->MutableUnknownFields(message.mutable_nodes(1))
      ->AddFixed32(900, 7);
  message.GetReflection()->MutableUnknownFields(&message)->AddLengthDelimited(901, "later");
  const auto graph = parse_graph_proto(bytes_of(message.SerializeAsString()));
  QVERIFY2(graph.ok(), graph.ok() ? "" : graph.error().describe().c_str());
  QCOMPARE(graph->unit, std::string("s"));
  QCOMPARE(graph->nodes[0].inputs, (std::vector<std::uint32_t>{1, 2}));
  QCOMPARE(graph->nodes[1].work, 2.5);
  QCOMPARE(graph->colocated, (std::vector<std::vector<std::uint32_t>>{{2, 1}}));
}

void TestGraphProto::bad_files_data() {
  QTest::addColumn<QByteArray>("file");
  QTest::addColumn<QByteArray>("told");
  const auto made = [](const std::function<void(graph::v1::Graph&)>& change) {
    graph::v1::Graph message;
    message.set_format("neuroshard graph 1");
    message.add_nodes()->set_id("a");
    message.add_nodes()->set_id("b");
    change(message);
    return QByteArray::fromStdString(message.SerializePartialAsString());
  };
  using Message = graph::v1::Graph;
  QTest::newRow("nothing") << QByteArray() << QByteArray("damaged");
  QTest::newRow("JSON") << QByteArray("{\"nodes\":[]}") << QByteArray("damaged");
  QTest::newRow("version") << made([](Message& m) { m.set_format("neuroshard graph 2"); })
                           << QByteArray("\"neuroshard graph 2\"");
  QTest::newRow("unit") << made([](Message& m) { m.set_unit("weeks"); }) << QByteArray("\"weeks\"");
  QTest::newRow("dangling") << made([](Message& m) { m.mutable_nodes(0)->add_inputs(2); })
                            << QByteArray("\"a\" reads a node that does not exist");
  QTest::newRow("cycle") << made([](Message& m) {
    m.mutable_nodes(0)->add_inputs(1);
    m.mutable_nodes(1)->add_inputs(0);
  }) << QByteArray("cycle");
  QTest::newRow("same id") << made([](Message& m) { m.mutable_nodes(1)->set_id("a"); })
                           << QByteArray("two nodes");
  QTest::newRow("no id") << made([](Message& m) { m.add_nodes(); }) << QByteArray("position 2 has no id");
  QTest::newRow("negative") << made([](Message& m) { m.mutable_nodes(1)->set_work(-1); })
                            << QByteArray("\"b\": work");
  QTest::newRow("not a number") << made([](Message& m) { m.mutable_nodes(1)->set_param_bytes(NAN); })
                                << QByteArray("\"b\": parameter bytes");
  QTest::newRow("co-located with nobody")
      << made([](Message& m) { m.add_colocated()->add_nodes(9); }) << QByteArray("co-located");
  QByteArray text = made([](Message&) {});
  text += QByteArray("\x1a\x03\x0a\x01\xff", 5);  // a node whose id is no UTF-8
  QTest::newRow("no text") << text << QByteArray("damaged");
}

void TestGraphProto::bad_files() {
  QFETCH(QByteArray, file);
  QFETCH(QByteArray, told);
  const auto graph = parse_graph_proto(bytes_of(file.toStdString()));
  QVERIFY(!graph.ok());
  QVERIFY2(graph.error().message.find(told.toStdString()) != std::string::npos,
           graph.error().describe().c_str());
}

// A cut inside a field is damage; one between two fields is a smaller graph or an error, never something
// else.
void TestGraphProto::every_cut_is_told() {
  const Bytes whole = format_graph_proto(sample());
  std::size_t refused = 0;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto graph = parse_graph_proto(ByteSpan(whole.data(), size));
    refused += !graph.ok();
    if (graph.ok()) QVERIFY(validate(*graph).ok());
  }
  QVERIFY(refused > whole.size() * 9 / 10);
}

// The protobuf form must be able to hold a text that the JSON form has cut.
void TestGraphProto::long_texts_are_cut_between_characters() {
  const std::string cut(max_id_length - 1, 'a');
  const auto graph =
      parse_graph(bytes_of(R"({"nodes": [{"id": "x", "work": 1, "op": ")" + cut + "\u00e4\"}]}"));
  QVERIFY2(graph.ok(), graph.ok() ? "" : graph.error().describe().c_str());
  QCOMPARE(graph->nodes[0].op, cut);
  const auto back = parse_graph_proto(format_graph_proto(*graph));
  QVERIFY2(back.ok(), back.ok() ? "" : back.error().describe().c_str());
  QVERIFY(same(*back, *graph));
}

NS_TEST(TestGraphProto)
#include "test_graph_proto.moc"
