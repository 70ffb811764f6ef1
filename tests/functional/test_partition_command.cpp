// neuroshardd partition as scripts and people meet it.
#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QJsonArray>
#include <QProcess>
#include <QTemporaryDir>
#include <QTest>

#include "tests/support/process.h"
#include "tests/support/test_main.h"

using namespace neuroshard::test;  // NOLINT

class TestPartitionCommand : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase();
  void json_has_bound_and_blocks();
  void people_get_a_table();
  void foreign_text_does_not_reach_the_terminal();
  void pictures_are_printed();
  void memory_and_streaming();
  void peers_from_a_file();
  void seed_repeats();
  void graphs_are_converted();
  void models_of_ours();
  void ends_with_its_input();
  void bad_input_data();
  void bad_input();
  void public_graphs_are_proved_data();
  void public_graphs_are_proved();

 private:
  QString write(const QString& name, const QByteArray& content) const {
    QFile file(folder_.filePath(name));
    if (!file.open(QIODevice::WriteOnly) || file.write(content) != content.size()) return {};
    return file.fileName();
  }
  static ProcessResult partition(const QStringList& arguments) {
    return NodeProcess(QStringList{"partition"} + arguments).finish();
  }
  static QJsonObject json(const ProcessResult& result) {
    return QJsonDocument::fromJson(result.out).object();
  }

  QTemporaryDir folder_;
  QString chain_;
};

void TestPartitionCommand::initTestCase() {
  QVERIFY(folder_.isValid());
  chain_ = write("chain.json", R"({"unit":"ms","nodes":[
    {"id":"a","op":"embed","work":3,"param_bytes":600,"output_bytes":100},
    {"id":"b","op":"layer","work":3,"param_bytes":600,"output_bytes":100,"inputs":["a"]},
    {"id":"c","op":"layer","work":3,"param_bytes":600,"output_bytes":100,"inputs":["b"]},
    {"id":"d","op":"head","work":3,"param_bytes":600,"inputs":["c"]}]})");
  QVERIFY(!chain_.isEmpty());
}

void TestPartitionCommand::json_has_bound_and_blocks() {
  const ProcessResult result = partition({"--graph", chain_, "--k", "2", "--bandwidth", "1e5", "--json"});
  QVERIFY2(result.ok(), result.text().constData());
  const QJsonObject object = json(result);
  QCOMPARE(object["bottleneck"].toDouble(), 7.0);  // 3 + 3 and 100 bytes at 1e5 a second = 1 ms
  QVERIFY(object["lower_bound"].toDouble() <= 7.0 && object["lower_bound"].toDouble() > 6.9999);
  QVERIFY(object["proved"].toBool());
  QVERIFY(object["gap"].toDouble(1) < 1e-4);
  QCOMPARE(object["unit"].toString(), QString("ms"));
  QVERIFY(object["convention"].toString().contains("own form"));
  const QJsonArray blocks = object["blocks"].toArray();
  QCOMPARE(blocks.size(), 2);
  QCOMPARE(blocks[0].toObject()["nodes"].toArray(), (QJsonArray{"a", "b"}));
  QCOMPARE(blocks[1].toObject()["nodes"].toArray(), (QJsonArray{"c", "d"}));
  QCOMPARE(blocks[0].toObject()["out"].toDouble(), 1.0);
  QCOMPARE(blocks[1].toObject()["in"].toDouble(), 1.0);
  QCOMPARE(blocks[0].toObject()["param_bytes"].toDouble(), 1200.0);
}

void TestPartitionCommand::people_get_a_table() {
  const ProcessResult result = partition({"--graph", chain_, "--k", "2", "--bandwidth", "100KB"});
  QVERIFY2(result.ok(), result.text().constData());
  for (const char* text :
       {"bottleneck   7 ms", "lower bound  7 ms", "proved optimal", "convention", "peer 2"})
    QVERIFY2(result.out.contains(text), result.out.constData());
}

// Names of a file can't move the cursor or add lines, in tables or in errors.
void TestPartitionCommand::foreign_text_does_not_reach_the_terminal() {
  const QString graph = write("escapes.json", R"({"convention":"c\u001b[2J\nd","nodes":[
    {"id":"a\u001b[2J\nb","work":1}]})");
  const QString peers = write("escapes_peers.json", R"([{"name":"p\u001b[2J\nq"}])");
  const QString twice = write("escapes_twice.json", R"({"nodes":[
    {"id":"a\u001b[2J\nb","work":1},{"id":"a\u001b[2J\nb","work":1}]})");
  const ProcessResult table = partition({"--graph", graph, "--k", "1", "--peers", peers});
  QVERIFY2(table.ok(), table.text().constData());
  const ProcessResult saved = partition({"--graph", graph, "--save-graph", folder_.filePath("escapes.pb")});
  QVERIFY2(saved.ok(), saved.text().constData());
  const ProcessResult refused = partition({"--graph", twice, "--k", "1"});
  QCOMPARE(refused.exit_code, 64);
  for (const char* text : {"c [2J d", "p [2J q", "a [2J b"})
    QVERIFY2(table.out.contains(text), table.out.constData());
  QVERIFY2(saved.out.contains("c [2J d"), saved.out.constData());
  QVERIFY2(refused.err.contains("two nodes have the id \"a [2J b\""), refused.err.constData());
  for (const QByteArray& printed : {table.out, saved.out, refused.err})
    QVERIFY2(!printed.contains('\x1b'), printed.constData());
}

void TestPartitionCommand::pictures_are_printed() {
  const ProcessResult svg = partition({"--graph", chain_, "--k", "2", "--bandwidth", "1e5", "--svg"});
  QVERIFY2(svg.ok(), svg.text().constData());
  QVERIFY(svg.out.startsWith("<svg ") && svg.out.contains("Block 2") && svg.out.contains("class=\"cut\""));
  const ProcessResult dot = partition({"--graph", chain_, "--k", "2", "--bandwidth", "1e5", "--dot"});
  QVERIFY2(dot.ok(), dot.text().constData());
  QVERIFY(dot.out.startsWith("digraph ") && dot.out.contains("subgraph cluster_1"));
}

void TestPartitionCommand::memory_and_streaming() {
  const QStringList base{"--graph", chain_, "--k", "2", "--bandwidth", "1e5", "--json", "--memory", "1000"};
  const ProcessResult hard = partition(base);
  QCOMPARE(hard.exit_code, 64);
  QVERIFY2(hard.err.contains("2400 bytes of parameters"), hard.text().constData());
  const ProcessResult streamed = partition(base + QStringList{"--stream-bandwidth", "1e6"});
  QVERIFY2(streamed.ok(), streamed.text().constData());
  // 1200 bytes of parameters, 200 of tensors at most, 1000 of memory.
  const QJsonObject block = json(streamed)["blocks"].toArray()[0].toObject();
  QVERIFY(block["overflow"].toDouble() > 0);
  QCOMPARE(block["overflow"].toDouble(), (1200 + block["peak_bytes"].toDouble() - 1000) / 1e6 * 1e3);
}

void TestPartitionCommand::peers_from_a_file() {
  const QString peers = write("peers.json", R"([{"name":"slow","speed":1,"bandwidth":1e9},
                                                {"name":"fast","speed":3,"bandwidth":1e9}])");
  const ProcessResult result = partition({"--graph", chain_, "--k", "2", "--peers", peers, "--json"});
  QVERIFY2(result.ok(), result.text().constData());
  const QJsonObject object = json(result);
  QVERIFY(object["proved"].toBool());
  QVERIFY(object["bottleneck"].toDouble() < 3.001);
  for (const QJsonValue& block : object["blocks"].toArray()) {
    QCOMPARE(block["nodes"].toArray().size(), block["peer"].toString() == "fast" ? 3 : 1);
  }
}

void TestPartitionCommand::seed_repeats() {
  const QStringList line{"--graph", chain_, "--k", "3", "--bandwidth", "1e5", "--seed", "7", "--json"};
  QCOMPARE(json(partition(line))["blocks"].toArray(), json(partition(line))["blocks"].toArray());
}

void TestPartitionCommand::graphs_are_converted() {
  const QString binary = folder_.filePath("chain.pb"), text = folder_.filePath("again.json");
  const ProcessResult saved = partition({"--graph", chain_, "--save-graph", binary});
  QVERIFY2(saved.ok() && saved.out.contains("4 nodes"), saved.text().constData());
  const ProcessResult back = partition({"--graph", binary, "--save-graph", text, "--json"});
  QVERIFY2(back.ok(), back.text().constData());
  QCOMPARE(json(back)["work"].toDouble(), 12.0);
  const QStringList rest{"--k", "3", "--bandwidth", "1e5", "--json"};
  const QJsonArray blocks = json(partition(QStringList{"--graph", chain_} + rest))["blocks"].toArray();
  QVERIFY(!blocks.isEmpty());
  QCOMPARE(json(partition(QStringList{"--graph", binary} + rest))["blocks"].toArray(), blocks);
  QCOMPARE(json(partition(QStringList{"--graph", text} + rest))["blocks"].toArray(), blocks);
}

// Every level holds the same parameters and does the same operations; times follow the given machine.
void TestPartitionCommand::models_of_ours() {
  double params = 0, flops = 0;
  for (const char* level : {"layer", "slot", "operator"}) {
    const ProcessResult result =
        partition({"--graph", "model:devnet", "--level", level, "--sequences", "4", "--k", "2", "--flops",
                   "10G", "--memory-bandwidth", "10GB", "--bandwidth", "1e9", "--json"});
    QVERIFY2(result.ok(), result.text().constData());
    const QJsonObject object = json(result), machine = object["machine"].toObject();
    QCOMPARE(machine["flops_per_second"].toDouble(), 1e10);
    QCOMPARE(machine["source"].toString(), QString("given"));
    double held = 0;
    for (const QJsonValue& block : object["blocks"].toArray()) held += block["param_bytes"].toDouble();
    if (params == 0) params = held, flops = machine["graph_flops"].toDouble();
    QVERIFY(held > 0);
    QCOMPARE(held, params);
    QCOMPARE(machine["graph_flops"].toDouble(), flops);
    // No faster than the operations on two such machines allow.
    QVERIFY(object["bottleneck"].toDouble() >= 1e3 * flops / 1e10 / 2);
  }
}

// A program that starts a search and dies (its pipe is then closed) leaves no search behind.
void TestPartitionCommand::ends_with_its_input() {
  QJsonArray nodes;
  QStringList before;
  quint32 random = 7;
  for (int layer = 0; layer < 40; ++layer) {
    QStringList now;
    for (int i = 0; i < 12; ++i) {
      random = random * 1664525 + 1013904223;
      now << QStringLiteral("%1.%2").arg(layer).arg(i);
      nodes.append(QJsonObject{{"id", now.back()},
                               {"work", 0.1 + (random >> 20) / 1000.0},
                               {"output_bytes", 1000000},
                               {"inputs", QJsonArray::fromStringList(before.mid((random >> 8) % 8, 4))}});
    }
    before = now;
  }
  const QString hard =
      write("hard.json", QJsonDocument(QJsonObject{{"unit", "ms"}, {"nodes", nodes}}).toJson());
  QProcess process;
  process.start(node_program(), {"partition", "--graph", hard, "--k", "7", "--bandwidth", "1e12",
                                 "--time-limit", "3600", "--end-with-stdin", "--json"});
  QVERIFY(process.waitForStarted());
  process.write("what comes before the end is not read as anything\n");
  QVERIFY(!process.waitForFinished(1500));  // an open input changes nothing
  process.closeWriteChannel();
  QVERIFY(process.waitForFinished(30'000));
  QCOMPARE(process.exitStatus(), QProcess::NormalExit);
  const QByteArray output = process.readAllStandardOutput();
  if (output.isEmpty()) {
    QCOMPARE(process.exitCode(), 130);  // it had not come to a first answer
  } else {
    QCOMPARE(process.exitCode(), 0);
    const QJsonObject answer = QJsonDocument::fromJson(output).object();
    QVERIFY(answer["interrupted"].toBool());
    QVERIFY(answer["seconds"].toDouble() < 600);
    QVERIFY(!answer["blocks"].toArray().isEmpty());
  }
}

void TestPartitionCommand::bad_input_data() {
  QTest::addColumn<QStringList>("arguments");
  QTest::addColumn<int>("code");
  QTest::addColumn<QByteArray>("told");
  const QString cycle = write(
      "cycle.json", R"({"nodes":[{"id":"a","work":1,"inputs":["b"]},{"id":"b","work":1,"inputs":["a"]}]})");
  const QString two = write("two.json", R"([{"speed":1},{"speed":2}])");
  QTest::newRow("no graph") << QStringList{"--k", "2"} << 64 << QByteArray("--graph");
  QTest::newRow("no k") << QStringList{"--graph", chain_} << 64 << QByteArray("--k");
  QTest::newRow("missing file") << QStringList{"--graph", folder_.filePath("none"), "--k", "2"} << 66
                                << QByteArray("none");
  QTest::newRow("k too large") << QStringList{"--graph", chain_, "--k", "5"} << 64 << QByteArray("4 nodes");
  QTest::newRow("k is 0") << QStringList{"--graph", chain_, "--k", "0"} << 64 << QByteArray("--k is 0");
  QTest::newRow("negative k") << QStringList{"--graph", chain_, "--k", "-1"} << 64 << QByteArray("0 or more");
  QTest::newRow("no such form") << QStringList{"--graph", chain_, "--save-graph", folder_.filePath("x.txt")}
                                << 64 << QByteArray(".json or .pb");
  QTest::newRow("no such model") << QStringList{"--graph", "model:nowhere", "--k", "2"} << 66
                                 << QByteArray("nowhere");
  QTest::newRow("bad speed") << QStringList{"--graph", "model:devnet", "--k", "2", "--flops", "fast"} << 64
                             << QByteArray("--flops is \"fast\"");
  const QString onnx = write("cut.onnx", QByteArray("\x08\x07\x12\x02p", 5));
  QTest::newRow("cut ONNX") << QStringList{"--graph", onnx, "--k", "2"} << 65
                            << QByteArray("not an ONNX model");
  QTest::newRow("bad dimension") << QStringList{"--graph", onnx, "--k", "2", "--dim", "batch"} << 64
                                 << QByteArray("--dim is \"batch\"");
  QTest::newRow("no bandwidth") << QStringList{"--graph", chain_, "--k", "2"} << 64
                                << QByteArray("--bandwidth");
  QTest::newRow("bad bandwidth") << QStringList{"--graph", chain_, "--k", "2", "--bandwidth", "fast"} << 64
                                 << QByteArray("--bandwidth is \"fast\"");
  QTest::newRow("cycle") << QStringList{"--graph", cycle, "--k", "1"} << 64 << QByteArray("cycle");
  QTest::newRow("little memory") << QStringList{"--graph",     chain_, "--k",      "2",
                                                "--bandwidth", "1",    "--memory", "500"}
                                 << 64 << QByteArray("node \"a\"");
  QTest::newRow("more peers than k") << QStringList{"--graph", chain_, "--k", "1", "--peers", two} << 64
                                     << QByteArray("lists 2 peers");
  QTest::newRow("peers and memory") << QStringList{"--graph", chain_, "--k",      "2",
                                                   "--peers", two,    "--memory", "5"}
                                    << 64 << QByteArray("--peers");
}

void TestPartitionCommand::bad_input() {
  QFETCH(QStringList, arguments);
  QFETCH(int, code);
  QFETCH(QByteArray, told);
  const ProcessResult result = partition(arguments);
  QVERIFY2(!result.crashed && !result.timed_out, result.text().constData());
  QVERIFY2(result.exit_code == code && result.err.contains(told), result.text().constData());
  QVERIFY(result.out.isEmpty());
}

// Best known values; each was proved.
void TestPartitionCommand::public_graphs_are_proved_data() {
  QTest::addColumn<QString>("name");
  QTest::addColumn<int>("k");
  QTest::addColumn<double>("best");
  const auto add = [](const char* name, std::initializer_list<double> values) {
    int k = 2;
    for (const double value : values) {
      QTest::addRow("%s %d", name, k) << QString(name) << k << value;
      k *= 2;
    }
  };
  add("bert24_inference", {47.479, 24.917, 14.204, 7.196});
  add("bert_l-3_inference", {33.257, 27.187, 27.187, 27.187});
  add("gnmt_inference", {93.195, 47.161, 25.850, 24.789});
  add("resnet50_inference", {101.282, 50.990, 26.762, 18.998});
}

void TestPartitionCommand::public_graphs_are_proved() {
  QFETCH(QString, name);
  QFETCH(int, k);
  QFETCH(double, best);
  const QString file = qEnvironmentVariable("NS_SHARED_DATA") + "/mtpp/" + name + ".json";
  if (!QFileInfo::exists(file)) QSKIP("the public graphs are not here");
  const ProcessResult result = partition({"--graph", file, "--k", QString::number(k), "--json"});
  QVERIFY2(result.ok(), result.text().constData());
  const QJsonObject object = json(result);
  QVERIFY2(object["bottleneck"].toDouble() <= best, result.out.left(300).constData());
  QVERIFY2(object["proved"].toBool(), result.out.left(300).constData());
  QVERIFY(object["blocks"].toArray().size() <= k);
  QVERIFY(object["convention"].toString().contains("fpgaLatency"));
}

NS_TEST(TestPartitionCommand)
#include "test_partition_command.moc"
