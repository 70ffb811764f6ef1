// neuroshardd partition on TorchScript models: their graphs, and real processes that run them in blocks.
#include <signal.h>

#include <QDir>
#include <QFile>
#include <QJsonArray>
#include <QProcess>
#include <QTemporaryDir>
#include <QTest>
#include <map>
#include <memory>

#include "tests/support/process.h"
#include "tests/support/test_main.h"

using namespace neuroshard::test;  // NOLINT

class TestPartitionScript : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase();
  void graph_and_costs();
  void blocks_run_as_processes_data();
  void blocks_run_as_processes();
  void people_read_how_it_went();
  void killed_worker_ends_the_run();
  void stop_ends_the_workers();
  void bad_input_data();
  void bad_input();

 private:
  QString model(const char* name) const { return folder_.filePath(QString(name) + ".pt"); }
  static QStringList partition(const QString& model, const QStringList& more) {
    return QStringList{"partition", "--graph", model, "--time-limit", "0.5"} + more;
  }
  // Costs that need no measuring, where the test is about something else.
  static QStringList given_costs() {
    return {"--costs", "model", "--flops", "1e9", "--memory-bandwidth", "1e12"};
  }
  // Two processes that go on until somebody ends them.
  static QStringList pipeline_without_end() {
    return given_costs() + QStringList{"--input-shape", "8x64",  "--k",       "2",        "--bandwidth",
                                       "1e13",          "--run", "--batches", "100000000"};
  }
  // Processes of a parent, found as the system lists them.
  static QList<qint64> children(qint64 parent) {
    QList<qint64> found;
    for (const QString& entry : QDir("/proc").entryList(QDir::Dirs)) {
      QFile stat("/proc/" + entry + "/stat");
      if (entry.toLongLong() == 0 || !stat.open(QIODevice::ReadOnly)) continue;
      const QByteArray line = stat.readAll();
      const QList<QByteArray> fields = line.mid(line.lastIndexOf(')') + 2).split(' ');
      if (fields.size() > 1 && fields[1].toLongLong() == parent && fields[0] != "Z")
        found.append(entry.toLongLong());
    }
    return found;
  }
  static bool gone(qint64 pid) { return !QFile::exists(QString("/proc/%1").arg(pid)); }

  QTemporaryDir folder_;
  std::map<std::string, std::unique_ptr<NodeProcess>> wrong_;  // by the row of bad_input
};

void TestPartitionScript::initTestCase() {
  QVERIFY(folder_.isValid());
  QProcess python;
  python.start("/usr/bin/python3", {NS_SCRIPT_MODELS, folder_.path()});
  QVERIFY(python.waitForStarted() && python.waitForFinished(60'000));
  if (python.exitCode() == 77) QSKIP("Python has no PyTorch here, so there are no models to read.");
  QVERIFY2(python.exitCode() == 0, python.readAllStandardError().constData());
}

void TestPartitionScript::graph_and_costs() {
  const QStringList rates{"--flops", "1e9", "--memory-bandwidth", "1e12"};
  const ProcessResult result =
      run_node(partition(model("perceptron"), rates + QStringList{"--input-shape", "8x64", "--k", "2",
                                                                  "--bandwidth", "1e12", "--json"}));
  QVERIFY2(result.ok(), result.text().constData());
  const QJsonObject object = QJsonDocument::fromJson(result.out).object();
  QCOMPARE(object["nodes"].toInt(), 8);
  QVERIFY(object["proved"].toBool());
  // The largest layer, 2·8·256·256 operations at 1e9 a second, and the one before or after it.
  const double bottleneck = object["bottleneck"].toDouble();
  QVERIFY2(bottleneck > 1.0 && bottleneck < 1.6, QByteArray::number(bottleneck).constData());
  QVERIFY(object["convention"].toString().contains("TorchScript"));
  QCOMPARE(object["blocks"].toArray().size(), 2);
}

void TestPartitionScript::blocks_run_as_processes_data() {
  QTest::addColumn<QString>("name");
  QTest::addColumn<QStringList>("shapes");
  QTest::addColumn<int>("processes");
  const QStringList language{"--input-shape", "2x16:int64:100", "--input-shape", "16x16"};
  // The first with the costs that a run has by itself: measured.
  QTest::newRow("convolutional, 3") << "convolutional" << QStringList{"--input-shape", "2x3x32x32"} << 3;
  QTest::newRow("encoder, 2") << "encoder" << language + given_costs() << 2;
  QTest::newRow("control, 2") << "control" << QStringList{"--input-shape", "4x32"} + given_costs() << 2;
  QTest::newRow("a block without inputs")
      << "sourceless" << QStringList{"--input-shape", "8x64"} + given_costs() << 2;
  // Its micro-batches are larger than the connection holds, so it is still taking some at the end.
  const QStringList slow_memory{"--input-shape", "8x64",    "--input-shape", "2048x1024",          "--costs",
                                "model",         "--flops", "1e12",          "--memory-bandwidth", "1e9"};
  QTest::newRow("a block without results") << "watched" << slow_memory << 2;
}

void TestPartitionScript::blocks_run_as_processes() {
  QFETCH(QString, name);
  QFETCH(QStringList, shapes);
  QFETCH(int, processes);
  // A connection that costs next to nothing, so that it pays to use all the processes.
  const ProcessResult result = run_node(
      partition(model(name.toUtf8()), shapes + QStringList{"--k", QString::number(processes), "--bandwidth",
                                                           "1e13", "--run", "--batches", "8", "--json"}));
  QVERIFY2(result.ok(), result.text().constData());
  const QJsonObject object = QJsonDocument::fromJson(result.out).object();
  const QJsonObject run = object["run"].toObject();
  QCOMPARE(run["workers"].toInt(), processes);
  QCOMPARE(object["blocks"].toArray().size(), processes);
  QCOMPARE(run["batches"].toInt(), 8);
  QCOMPARE(run["compared"].toInt(), 8);
  QVERIFY(run["same_outputs"].toBool());
  QVERIFY(run["largest_relative_deviation"].toDouble(1) <= 1e-5);
  for (const char* rate : {"per_second", "predicted_per_second", "whole_per_second"})
    QVERIFY2(run[rate].toDouble() > 0, rate);
  // No process got the whole model.
  const qint64 whole = QFile(model(name.toUtf8())).size();
  for (const QJsonValue& bytes : run["block_file_bytes"].toArray()) {
    QVERIFY(bytes.toInteger() > 0);
    if (name == "convolutional" || name == "encoder") QVERIFY(bytes.toInteger() < whole);
  }
  const auto nodes_of = [&](qsizetype block) {
    QString nodes;
    for (const QJsonValue& node : object["blocks"][block]["nodes"].toArray())
      nodes += node.toString() + QLatin1Char('\n');
    return nodes;
  };
  if (name == "sourceless")
    QVERIFY2(nodes_of(0).contains(" rand") && !nodes_of(0).contains("input"), qPrintable(nodes_of(0)));
  if (name == "watched") {
    const qsizetype check = nodes_of(0).contains(" max") ? 0 : 1;
    QVERIFY2(nodes_of(check).contains(" max") && !nodes_of(check).contains("layers"),
             qPrintable(nodes_of(check)));
  }
}

void TestPartitionScript::people_read_how_it_went() {
  const ProcessResult result = run_node(
      partition(model("perceptron"), {"--input-shape", "8x64", "--k", "2", "--run", "--batches", "5"}));
  QVERIFY2(result.ok(), result.text().constData());
  for (const char* text : {"measured here", "the same as the whole model's", "micro-batches/s measured",
                           "predicted", "in one process of one thread"})
    QVERIFY2(result.out.contains(text), result.out.constData());
  // Nobody said what the connection between two processes carries, so it is measured: memory, not a disk.
  const qsizetype line = result.out.indexOf("connection ");
  QVERIFY2(line >= 0, result.out.constData());
  const double gigabytes = result.out.mid(line).simplified().split(' ').value(1).toDouble();
  QVERIFY2(gigabytes > 0.02 && gigabytes < 1000, result.out.constData());
}

void TestPartitionScript::killed_worker_ends_the_run() {
  NodeProcess node(partition(model("perceptron"), pipeline_without_end()));
  QVERIFY(node.started());
  QTRY_COMPARE_WITH_TIMEOUT(children(node.pid()).size(), 2, 60'000);
  const QList<qint64> workers = children(node.pid());
  QTRY_VERIFY_WITH_TIMEOUT(node.errors_so_far().contains("processes for the pipeline"), 120'000);
  QCOMPARE(kill(static_cast<pid_t>(workers[1]), SIGKILL), 0);
  const ProcessResult result = node.finish(30'000);
  QVERIFY2(!result.timed_out && !result.crashed, result.text().constData());
  QCOMPARE(result.exit_code, 69);
  QVERIFY2(result.err.contains("worker ") && result.err.contains(QByteArray::number(workers[1])) &&
               result.err.contains("was killed by signal 9"),
           result.text().constData());
  for (const qint64 pid : workers) QVERIFY(gone(pid));
}

void TestPartitionScript::stop_ends_the_workers() {
  NodeProcess node(partition(model("perceptron"), pipeline_without_end()));
  QVERIFY(node.started());
  QTRY_COMPARE_WITH_TIMEOUT(children(node.pid()).size(), 2, 60'000);
  const QList<qint64> workers = children(node.pid());
  node.terminate();
  const ProcessResult result = node.finish(30'000);
  QVERIFY2(!result.timed_out && !result.crashed, result.text().constData());
  QCOMPARE(result.exit_code, 130);
  for (const qint64 pid : workers) QVERIFY(gone(pid));
}

void TestPartitionScript::bad_input_data() {
  QTest::addColumn<int>("code");
  QTest::addColumn<QByteArray>("told");
  const auto row = [&](const char* name, const char* file, const QStringList& more, int code,
                       const char* told) {
    // All at once: most of the time goes into loading LibTorch.
    wrong_[name] =
        std::make_unique<NodeProcess>(partition(model(file), more + QStringList{"--k", "2", "--run"}));
    QTest::newRow(name) << code << QByteArray(told);
  };
  row("no shape", "perceptron", {}, 64, "--input-shape");
  row("bad shape", "perceptron", {"--input-shape", "8x"}, 64, "--input-shape is \"8x\"");
  row("bad type", "perceptron", {"--input-shape", "8x64:float"}, 64, "float32");
  row("wrong shape", "perceptron", {"--input-shape", "8x63"}, 64, "shapes cannot be multiplied");
  row("more than the memory", "perceptron", {"--input-shape", "1000000000x64"}, 74, "memory limit");
  row("weights only", "weights", {"--input-shape", "8x64"}, 65, "no TorchScript program");
  row("no such file", "none", {"--input-shape", "1"}, 66, "none.pt");
  QFile json(folder_.filePath("graph.pt"));
  QVERIFY(json.open(QIODevice::WriteOnly));
  json.write(R"({"nodes":[{"id":"a","work":1},{"id":"b","work":1,"inputs":["a"]}]})");
  json.close();
  row("no TorchScript to run", "graph", {}, 64, "only such a model can run");
}

void TestPartitionScript::bad_input() {
  QFETCH(int, code);
  QFETCH(QByteArray, told);
  const ProcessResult result = wrong_.at(QTest::currentDataTag())->finish();
  QVERIFY2(result.err.contains(told), result.text().constData());
  QCOMPARE(result.exit_code, code);
  QCOMPARE(result.err.count('\n'), 1);
}

NS_TEST(TestPartitionScript)
#include "test_partition_script.moc"
