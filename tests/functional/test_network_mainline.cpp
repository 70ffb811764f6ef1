// Real processes that know no node of their network: they meet in the mainline DHT, here one of 24
// libtorrent nodes on the loopback interface. One of another network, in the same DHT, stays alone.
#include <QElapsedTimer>
#include <QJsonArray>
#include <QTemporaryDir>
#include <QTest>

#include "tests/support/mainline_table.h"
#include "tests/support/network_run.h"
#include "tests/support/test_main.h"

using namespace neuroshard::test;  // NOLINT

class TestNetworkMainline : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase();
  void cleanupTestCase() { table_.stop(); }
  void two_find_each_other();

 private:
  QString path(const QString& name) const { return folder_.filePath(name); }
  QTemporaryDir folder_;
  neuroshard::testing::MainlineTable table_;
};

void TestNetworkMainline::initTestCase() {
  QVERIFY(folder_.isValid());
  for (const char* name : {"village", "hamlet"}) {
    const ProcessResult made = run_node(
        {"network", "create", "--from", "devnet", "--name", name, "--out", path(QString(name) + ".json")});
    QVERIFY2(made.ok(), made.text().constData());
  }
  QVERIFY2(table_.start(), "the DHT of this test has not formed");
}

void TestNetworkMainline::two_find_each_other() {
  const auto arguments = [&](const QString& home, const QString& profile) {
    return QStringList{"run",
                       "--json",
                       "--data-dir",
                       path(home),
                       "--profile",
                       path(profile + ".json"),
                       "--mainline-node",
                       QString::fromStdString(table_.entry()),
                       "--p2p-address",
                       "127.0.0.1",
                       "--p2p-port",
                       "0",
                       "--lan"};
  };
  NodeProcess other(arguments("other", "hamlet")), one(arguments("one", "village"));
  const QJsonObject at_one = wait_for_object(one, "peers");
  QVERIFY2(!at_one.isEmpty(), one.errors_so_far().constData());
  NodeProcess two(arguments("two", "village"));
  const QJsonObject at_two = wait_for_object(two, "peers");
  QVERIFY2(!at_two.isEmpty(), two.errors_so_far().constData());
  QElapsedTimer time;
  time.start();
  const auto view = [&](const QString& home) {
    const ProcessResult result = run_node({"peers", "--json", "--data-dir", path(home)});
    const QList<QJsonObject> lines = json_lines(result.out);
    return lines.isEmpty() ? QJsonObject() : lines.first();
  };
  const auto met = [&] {
    for (const QJsonValue& peer : view("one")["peers"].toArray())
      if (peer["id"] == at_two["id"] && peer["round_trip_s"].isDouble()) return true;
    return false;
  };
  QTRY_VERIFY2_WITH_TIMEOUT(met(), QJsonDocument(view("one")).toJson().constData(), 90'000);
  qInfo("met after %.1f s", double(time.elapsed()) / 1000);
  const QJsonObject alone = view("other");
  QVERIFY(!alone.isEmpty());
  QCOMPARE(alone["known_nodes"].toInt(), 0);
  QVERIFY(alone["peers"].toArray().isEmpty());
}

NS_TEST(TestNetworkMainline)
#include "test_network_mainline.moc"
