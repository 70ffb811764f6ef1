// An upgrade while a node runs: the program's file is replaced, and the same process goes on as the new one
// with everything that it has learned.
#include <QFile>
#include <QTest>

#include "tests/support/network_run.h"
#include "tests/support/test_main.h"
#include "tests/support/training_run.h"

using namespace neuroshard::test;  // NOLINT

class TestUpgrade : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    const QByteArray problem = lab_.prepare();
    QVERIFY2(problem.isEmpty(), problem.constData());
    // An installation of the test's own.
    QVERIFY(QDir().mkpath(lab_.path("installed/bin")));
    QVERIFY(QFile::link(qEnvironmentVariable("NS_BIN_DIR") + "/../lib", lab_.path("installed/lib")));
    install();
  }
  void a_running_node_goes_on_as_the_new_program();

 private:
  QString program() const { return lab_.path("installed/bin/neuroshardd"); }
  // As package managers do it.
  void install() const {
    QVERIFY(QFile::copy(node_program(), program() + ".new"));
    QVERIFY(!QFile::exists(program()) || QFile::remove(program()));
    QVERIFY(QFile::rename(program() + ".new", program()));
  }
  QStringList environment() const { return {"XDG_RUNTIME_DIR=" + lab_.path("runtime")}; }
  qint64 step() const {
    const ProcessResult result =
        NodeProcess({"status", "--data-dir", lab_.path("node"), "--json"}, environment()).finish();
    return json_lines(result.out).value(0)["training"].toObject()["step"].toInteger();
  }
  bool reaches(qint64 wanted) {
    const QDeadlineTimer deadline(60'000);
    while ((last_step_ = step()) < wanted && !deadline.hasExpired()) QTest::qWait(100);
    return last_step_ >= wanted;
  }

  TrainingLab lab_;
  qint64 last_step_ = 0;  // that reaches() has seen
};

void TestUpgrade::a_running_node_goes_on_as_the_new_program() {
  lab_.copy("node");
  const QString text = lab_.path("borrowed");
  QVERIFY(QDir().mkpath(text));
  QVERIFY(QFile::copy(lab_.path("text/tale.txt"), text + "/tale.txt"));
  NodeProcess node({"run", "--cpu-threads", "1", "--eval-interval-steps", "0", "--text", text, "--data-dir",
                    lab_.path("node"), "--json"},
                   environment(), {}, {}, program());
  const QJsonObject before = wait_for_object(node, "ready");
  QCOMPARE(before["pid"].toInteger(), node.pid());
  QVERIFY(reaches(3));
  const qint64 at_upgrade = step();

  QVERIFY(QDir(text).removeRecursively());  // it was imported
  install();
  const QJsonObject after = wait_for_object(node, "ready");
  QVERIFY2(!after.isEmpty(), node.errors_so_far().constData());
  QCOMPARE(after["pid"].toInteger(), node.pid());
  for (const char* key : {"data_dir", "node_id", "wallet_id"}) QCOMPARE(after[key], before[key]);
  // With the other arguments of the first start, and from its last step.
  QVERIFY(reaches(1));
  QVERIFY2(last_step_ >= at_upgrade,
           qPrintable(QString("step %1 after the upgrade at step %2").arg(last_step_).arg(at_upgrade)));
  QVERIFY(reaches(at_upgrade + 3));

  node.terminate();
  const ProcessResult ended = node.finish();
  QVERIFY2(ended.ok(), ended.text().constData());
  const ProcessResult list =
      run_node({"checkpoint", "verify", "--data-dir", lab_.path("node"), "latest", "--json"});
  QVERIFY2(list.ok(), list.text().constData());
}

NS_TEST(TestUpgrade)
#include "test_upgrade.moc"
