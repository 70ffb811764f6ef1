// Graph and peer files: what is read, and the message for a bad one.
#include <QTest>

#include "core/partition/graph/graph_json.h"
#include "core/partition/search/problem.h"
#include "tests/support/test_main.h"

using namespace neuroshard;             // NOLINT
using namespace neuroshard::partition;  // NOLINT

namespace {

Expected<ComputationGraph> read(const QByteArray& text) {
  return parse_graph(as_bytes(std::string_view(text.constData(), static_cast<std::size_t>(text.size()))));
}

}  // namespace

class TestGraphJson : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void own_form();
  void device_placement_form();
  void bad_graphs_data();
  void bad_graphs();
  void too_large();
  void peers();
  void bad_peers_data();
  void bad_peers();
  void bad_problems();
};

void TestGraphJson::own_form() {
  const auto graph = read(R"({"unit":"ms","nodes":[
    {"id":"b","op":"matmul","work":0.5,"param_bytes":10,"output_bytes":20,"inputs":["a",3,"a"]},
    {"id":"a","work":1},{"id":3,"work":0}],"colocate":[["a","b"]],"note":"other fields are no matter"})");
  QVERIFY2(graph.ok(), graph.ok() ? "" : graph.error().describe().c_str());
  QCOMPARE(graph->nodes.size(), std::size_t(3));
  QCOMPARE(graph->unit, std::string("ms"));
  QCOMPARE(graph->unit_seconds, 1e-3);
  QCOMPARE(graph->nodes[0].op, std::string("matmul"));
  QCOMPARE(graph->nodes[0].work, 0.5);
  QCOMPARE(graph->nodes[0].param_bytes, 10.0);
  QCOMPARE(graph->nodes[0].output_bytes, 20.0);
  QCOMPARE(graph->nodes[0].inputs, (std::vector<std::uint32_t>{1, 2}));  // "a" once
  QCOMPARE(graph->nodes[2].id, std::string("3"));
  QCOMPARE(graph->colocated, (std::vector<std::vector<std::uint32_t>>{{1, 0}}));
  QVERIFY(!graph->printed_transfers);
}

void TestGraphJson::device_placement_form() {
  const auto graph = read(R"({"maxFPGAs":6,"nodes":[
    {"id":7,"name":"x","fpgaLatency":2.5,"cpuLatency":99,"size":64,"colorClass":1,"isBackwardNode":0,"supportedOnFpga":0},
    {"id":4,"name":"y","fpgaLatency":1,"size":0,"colorClass":1},{"id":5,"name":"z","fpgaLatency":1,"size":0}],
    "edges":[{"sourceId":7,"destId":4,"cost":0.25,"size":8},{"sourceId":7,"destId":5,"cost":0.5,"size":8}]})");
  QVERIFY2(graph.ok(), graph.ok() ? "" : graph.error().describe().c_str());
  QCOMPARE(graph->nodes[0].work, 2.5);
  QCOMPARE(graph->nodes[0].param_bytes, 64.0);
  QCOMPARE(graph->nodes[0].transfer, 0.5);
  QCOMPARE(graph->nodes[0].output_bytes, 8.0);
  QCOMPARE(graph->nodes[1].inputs, (std::vector<std::uint32_t>{0}));
  QVERIFY(graph->printed_transfers);
  QVERIFY(graph->colocated.empty());
  QVERIFY(graph->convention.find("fpgaLatency") != std::string::npos);
}

void TestGraphJson::bad_graphs_data() {
  QTest::addColumn<QByteArray>("text");
  QTest::addColumn<QByteArray>("told");
  const auto node = [](const QByteArray& fields) {
    return "{\"nodes\":[{\"id\":\"first\",\"work\":1}," + fields + "]}";
  };
  QTest::newRow("nothing") << QByteArray() << QByteArray("not valid JSON");
  QTest::newRow("no object") << QByteArray("[]") << QByteArray("not a JSON object");
  QTest::newRow("cut off") << QByteArray("{\"nodes\":[{\"id\":\"a\"") << QByteArray("not valid JSON");
  QTest::newRow("no nodes") << QByteArray("{}") << QByteArray("\"nodes\"");
  QTest::newRow("empty") << QByteArray("{\"nodes\":[]}") << QByteArray("no nodes");
  QTest::newRow("no id") << node("{\"work\":1}") << QByteArray("position 1 has no \"id\"");
  QTest::newRow("no work") << node("{\"id\":\"w\"}") << QByteArray("node \"w\" has no \"work\"");
  QTest::newRow("same id") << node("{\"id\":\"first\",\"work\":1}")
                           << QByteArray("two nodes have the id \"first\"");
  QTest::newRow("dangling") << node("{\"id\":\"d\",\"work\":1,\"inputs\":[\"nowhere\"]}")
                            << QByteArray("node \"d\": an input names node \"nowhere\"");
  QTest::newRow("negative") << node("{\"id\":\"n\",\"work\":-1}") << QByteArray("node \"n\": \"work\" is -1");
  QTest::newRow("absurd") << node("{\"id\":\"n\",\"work\":1,\"output_bytes\":1e19}")
                          << QByteArray("node \"n\": \"output_bytes\" is 1e+19");
  QTest::newRow("infinite") << node("{\"id\":\"n\",\"work\":1e999}") << QByteArray("not valid JSON");
  QTest::newRow("not a number") << node("{\"id\":\"n\",\"work\":NaN}") << QByteArray("not valid JSON");
  QTest::newRow("text for work") << node("{\"id\":\"n\",\"work\":\"1\"}")
                                 << QByteArray("\"work\" is not a number");
  QTest::newRow("misspelt") << node("{\"id\":\"n\",\"work\":1,\"output_byte\":5}")
                            << QByteArray("unknown field \"output_byte\"");
  QTest::newRow("own input") << node("{\"id\":\"n\",\"work\":1,\"inputs\":[\"n\"]}")
                             << QByteArray("node \"n\" reads itself");
  QTest::newRow("cycle")
      << node("{\"id\":\"p\",\"work\":1,\"inputs\":[\"q\"]},{\"id\":\"q\",\"work\":1,\"inputs\":[\"p\"]}")
      << QByteArray("cycle: \"p\" reads \"q\" reads \"p\"");
  QTest::newRow("unit") << QByteArray("{\"unit\":\"h\",\"nodes\":[]}") << QByteArray("\"unit\"");
  QTest::newRow("deep") << "{\"nodes\":" + QByteArray(2000, '[') + QByteArray(2000, ']') + "}"
                        << QByteArray("nests");
  QTest::newRow("edge to nowhere")
      << QByteArray(R"({"nodes":[{"id":1,"fpgaLatency":1}],"edges":[{"sourceId":1,"destId":2,"cost":1}]})")
      << QByteArray("position 0 names node \"2\"");
  QTest::newRow("edge without cost")
      << QByteArray(
             R"({"nodes":[{"id":1,"fpgaLatency":1},{"id":2,"fpgaLatency":1}],"edges":[{"sourceId":1,"destId":2}]})")
      << QByteArray("has no \"cost\"");
  QTest::newRow("edges in a cycle") << QByteArray(
                                           R"({"nodes":[{"id":1,"fpgaLatency":1},{"id":2,"fpgaLatency":1}],
          "edges":[{"sourceId":1,"destId":2,"cost":1},{"sourceId":2,"destId":1,"cost":1}]})")
                                    << QByteArray("cycle");
}

void TestGraphJson::bad_graphs() {
  QFETCH(QByteArray, text);
  QFETCH(QByteArray, told);
  const auto graph = read(text);
  QVERIFY(!graph.ok());
  QCOMPARE(static_cast<int>(graph.error().code), static_cast<int>(ErrorCode::InvalidArgument));
  QVERIFY2(QByteArray::fromStdString(graph.error().message).contains(told), graph.error().message.c_str());
}

void TestGraphJson::too_large() {
  const Bytes huge(max_graph_file_bytes + 1, ' ');
  const auto graph = parse_graph(huge);
  QVERIFY(!graph.ok());
  QCOMPARE(static_cast<int>(graph.error().code), static_cast<int>(ErrorCode::Exhausted));
}

void TestGraphJson::peers() {
  const auto peers =
      parse_peers(as_bytes(R"({"peers":[{"name":"a","speed":2,"memory":8e9,"bandwidth":1e8},{}]})"));
  QVERIFY(peers.ok());
  QCOMPARE(peers->size(), std::size_t(2));
  QCOMPARE((*peers)[0].speed, 2.0);
  QCOMPARE((*peers)[0].memory, 8e9);
  QCOMPARE((*peers)[1].name, std::string("peer 2"));
  QCOMPARE((*peers)[1].memory, unlimited);
}

void TestGraphJson::bad_peers_data() {
  QTest::addColumn<QByteArray>("text");
  QTest::addColumn<QByteArray>("told");
  QTest::newRow("none") << QByteArray("[]") << QByteArray("no peers");
  QTest::newRow("number") << QByteArray("3") << QByteArray("neither a list");
  QTest::newRow("text") << QByteArray("[{\"speed\":\"fast\"}]") << QByteArray("\"speed\" is not a number");
  QTest::newRow("negative") << QByteArray("[{\"memory\":-4}]") << QByteArray("position 0: \"memory\" is -4");
  QTest::newRow("misspelt") << QByteArray("[{\"bandwith\":1}]") << QByteArray("unknown field \"bandwith\"");
}

void TestGraphJson::bad_peers() {
  QFETCH(QByteArray, text);
  QFETCH(QByteArray, told);
  const auto peers =
      parse_peers(as_bytes(std::string_view(text.constData(), static_cast<std::size_t>(text.size()))));
  QVERIFY(!peers.ok());
  QVERIFY2(QByteArray::fromStdString(peers.error().message).contains(told), peers.error().message.c_str());
}

void TestGraphJson::bad_problems() {
  const auto graph = read(R"({"nodes":[{"id":"a","work":1,"param_bytes":100,"output_bytes":8},
                                       {"id":"b","work":1,"param_bytes":20,"inputs":["a"]}]})");
  QVERIFY(graph.ok());
  Peer peer;
  peer.bandwidth = 1;
  const auto told = [&](const std::vector<Peer>& peers) {
    const auto problem = make_problem(*graph, peers);
    return problem.ok() ? std::string() : problem.error().message;
  };
  const auto contains = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  QVERIFY(contains(told({}), "no peers"));
  QVERIFY(contains(told({peer, peer, peer}), "3 blocks for a graph of 2 nodes"));
  QVERIFY(contains(told({Peer{}, Peer{}}), "node \"a\" has an output of 8 bytes"));
  peer.memory = 107;
  QVERIFY(contains(told({peer, peer}), "node \"a\" needs 108 bytes"));
  peer.memory = 108;
  QCOMPARE(told({peer, peer}), std::string());
  QVERIFY(contains(told({peer}), "give more peers"));
  peer.memory = 50;
  peer.stream_bandwidth = 1;
  QCOMPARE(told({peer, peer}), std::string());
  peer.memory = 7;
  QVERIFY(contains(told({peer, peer}), "node \"a\""));
  peer = Peer{};
  peer.bandwidth = 1;
  peer.speed = 0;
  QVERIFY(contains(told({peer}), "speed is 0"));
  peer.speed = std::numeric_limits<double>::quiet_NaN();
  QVERIFY(contains(told({peer}), "speed is nan"));
}

NS_TEST(TestGraphJson)
#include "test_graph_json.moc"
