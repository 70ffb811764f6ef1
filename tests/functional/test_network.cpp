// Real processes that find each other: a tracker and two nodes on the loopback interface; whom they know,
// what the hash table holds, and that they go on when the tracker is gone.
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QTcpSocket>
#include <QTemporaryDir>
#include <QTest>

#include "tests/support/network_run.h"
#include "tests/support/test_main.h"

using namespace neuroshard::test;  // NOLINT

class TestNetwork : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase();
  void three_processes_are_a_network();
  void questions_say_what_is_missing();
  void solo_stays_alone();
  void new_addresses_have_a_higher_number();
  void another_network_is_not_joined();
  void who_is_refused_is_counted_with_the_reason();

 private:
  QString path(const QString& name) const { return folder_.filePath(name); }
  QTemporaryDir folder_;
};

void TestNetwork::initTestCase() {
  QVERIFY(folder_.isValid());
  for (const char* name : {"village", "town"}) {
    const ProcessResult made = run_node(
        {"network", "create", "--from", "devnet", "--name", name, "--out", path(QString(name) + ".json")});
    QVERIFY2(made.ok(), made.text().constData());
  }
}

void TestNetwork::three_processes_are_a_network() {
  const QString village = path("village.json");
  NodeProcess tracker(
      {"tracker", "--json", "--profile", village, "--address", "127.0.0.1", "--port", "0", "--lan"});
  const QJsonObject ready = wait_for_object(tracker, "ready");
  QVERIFY2(!ready.isEmpty(), tracker.errors_so_far().constData());
  const QString tracker_at = ready["id"].toString() + "@" + ready["address"].toString();

  const auto arguments = [&](const QString& directory) {
    return QStringList{"run",        "--json",    "--data-dir", path(directory), "--profile",
                       village,      "--tracker", tracker_at,   "--p2p-address", "127.0.0.1",
                       "--p2p-port", "0",         "--lan"};
  };
  NodeProcess a(arguments("a")), b(arguments("b"));
  const QJsonObject at_a = wait_for_object(a, "peers"), at_b = wait_for_object(b, "peers");
  QVERIFY2(!at_a.isEmpty(), a.errors_so_far().constData());
  QVERIFY2(!at_b.isEmpty(), b.errors_so_far().constData());
  const QString id_a = at_a["id"].toString(), id_b = at_b["id"].toString();
  QVERIFY(id_a.size() == 64 && id_a != id_b);

  QTRY_COMPARE_WITH_TIMEOUT(peers(village, tracker_at).size(), 2, 60'000);
  QStringList known;
  for (const QJsonObject& node : peers(village, tracker_at)) known += node["id"].toString();
  QVERIFY(known.contains(id_a) && known.contains(id_b));
  // They know each other, and say so themselves.
  const QString a_itself = id_a + "@" + at_a["address"].toString();
  QTRY_COMPARE_WITH_TIMEOUT(peers(village, a_itself).size(), 1, 60'000);
  QCOMPARE(peers(village, a_itself).first()["id"].toString(), id_b);

  const ProcessResult put = run_node({"dht", "put", "/values/greeting", "good morning", "--json", "--lan",
                                      "--profile", village, "--at", a_itself});
  QVERIFY2(put.ok(), put.text().constData());
  QCOMPARE(json_lines(put.out).value(0)["stored"].toInt(), 2);

  tracker.kill_now();  // nobody needs it any more
  const QString b_itself = id_b + "@" + at_b["address"].toString();
  const ProcessResult get =
      run_node({"dht", "get", "/values/greeting", "--json", "--lan", "--profile", village, "--at", b_itself});
  QVERIFY2(get.ok(), get.text().constData());
  QCOMPARE(json_lines(get.out).value(0)["text"].toString(), QString("good morning"));
  const ProcessResult record =
      run_node({"dht", "get", "/nodes/" + id_a, "--json", "--lan", "--profile", village, "--at", b_itself});
  QVERIFY2(record.ok(), record.text().constData());
  QCOMPARE(json_lines(record.out).size(), 1);

  for (NodeProcess* node : {&a, &b}) {
    node->terminate();
    const ProcessResult stopped = node->finish();
    QVERIFY2(!stopped.crashed && !stopped.timed_out, stopped.text().constData());
  }
}

void TestNetwork::questions_say_what_is_missing() {
  const ProcessResult nothing = run_node({"peers"});
  QVERIFY(!nothing.ok());
  QVERIFY2(nothing.err.contains("--profile"), nothing.text().constData());
  const ProcessResult nobody = run_node({"peers", "--profile", "mainnet"});  // it names nobody
  QVERIFY2(nobody.err.contains("--at"), nobody.text().constData());
  const ProcessResult dead = run_node({"peers", "--profile", path("village.json"), "--at", "127.0.0.1:1"});
  QVERIFY(!dead.ok());
  QVERIFY2(dead.err.contains("can't be reached"), dead.text().constData());
  const ProcessResult wrong =
      run_node({"dht", "get", "/nowhere", "--profile", path("village.json"), "--at", "127.0.0.1:1"});
  QVERIFY2(wrong.err.contains("is not a path of the table"), wrong.text().constData());
  const ProcessResult address = run_node({"peers", "--profile", path("village.json"), "--at", "somewhere"});
  QVERIFY2(address.err.contains("\"somewhere\""), address.text().constData());
  const ProcessResult name =
      run_node({"peers", "--profile", path("village.json"), "--at", "nobody.invalid:9000"});
  QVERIFY2(name.err.contains("nobody.invalid"), name.text().constData());
}

void TestNetwork::solo_stays_alone() {
  const ProcessResult result =
      run_node({"run", "--data-dir", path("solo"), "--profile", "solo", "--p2p-port", "0"});
  QVERIFY(!result.ok());
  QVERIFY2(result.err.contains("the network solo has no peers"), result.text().constData());
}

// A node takes the addresses of a profile only if their number is higher than that of its own.
void TestNetwork::new_addresses_have_a_higher_number() {
  const QString moved = path("moved.json");
  const auto create = [&](const QStringList& words) {
    const ProcessResult made = run_node(QStringList{"network", "create"} + words);
    if (!made.ok()) qCritical("%s", made.text().constData());
    return made;
  };
  const auto number_of = [](const QByteArray& profile) {
    return QJsonDocument::fromJson(profile).object()["directory"].toObject()["sequence"].toInt();
  };
  const auto number_in = [&](const QString& file) {
    QFile profile(file);
    return profile.open(QIODevice::ReadOnly) ? number_of(profile.readAll()) : -1;
  };
  const QStringList from_devnet{"--from", "devnet", "--name", "moved", "--out", moved, "--force"};
  QVERIFY(create(from_devnet + QStringList{"--tracker", "192.0.2.1:28765"}).ok());
  QCOMPARE(number_in(moved), 1);
  QVERIFY(create(from_devnet + QStringList{"--tracker", "192.0.2.2:28765"}).ok());
  QCOMPARE(number_in(moved), 2);
  // The same network from its file, another network from it, and a number of one's own.
  QCOMPARE(number_of(create({"--from", moved, "--name", "moved"}).out), 3);
  QCOMPARE(number_of(create({"--from", moved, "--name", "other"}).out), 1);
  QCOMPARE(number_of(create({"--from", moved, "--name", "moved", "--sequence-number", "9"}).out), 9);
}

void TestNetwork::another_network_is_not_joined() {
  NodeProcess tracker({"tracker", "--json", "--profile", path("village.json"), "--address", "127.0.0.1",
                       "--port", "0", "--lan"});
  const QString at = wait_for_object(tracker, "ready")["address"].toString();
  QVERIFY(!at.isEmpty());
  const ProcessResult other = run_node({"peers", "--profile", path("town.json"), "--at", at});
  QVERIFY(!other.ok());
  QVERIFY2(other.err.contains("another network"), other.text().constData());
  tracker.terminate();
  QVERIFY(tracker.finish().ok());
}

void TestNetwork::who_is_refused_is_counted_with_the_reason() {
  NodeProcess node({"run", "--json", "--data-dir", path("door"), "--profile", path("village.json"),
                    "--p2p-address", "127.0.0.1", "--p2p-port", "0", "--lan"});
  const QString at = wait_for_object(node, "peers")["address"].toString();
  QVERIFY2(!at.isEmpty(), node.errors_so_far().constData());
  QTcpSocket stranger;
  stranger.connectToHost("127.0.0.1", at.section(':', -1).toUShort());
  QVERIFY(stranger.waitForConnected());
  stranger.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  stranger.waitForBytesWritten();
  const ProcessResult other = run_node({"peers", "--profile", path("town.json"), "--at", at, "--lan"});
  QVERIFY2(other.err.contains("another network"), other.text().constData());
  const auto refused = [this](const QString& reason) {
    const auto view = json_lines(run_node({"peers", "--json", "--data-dir", path("door")}).out).value(0);
    for (const QJsonValue& entry : view["refusals"].toArray())
      if (entry["reason"].toString() == reason) return entry["count"].toInt();
    return 0;
  };
  QTRY_COMPARE_WITH_TIMEOUT(refused("not a TLS connection"), 1, 60'000);
  QVERIFY(refused("another network") >= 1);
  const ProcessResult told = run_node({"peers", "--data-dir", path("door")});
  QVERIFY2(told.out.contains("refused 1 time(s): not a TLS connection"), told.text().constData());
  node.terminate();
  QVERIFY(!node.finish().crashed);
}

NS_TEST(TestNetwork)
#include "test_network.moc"
