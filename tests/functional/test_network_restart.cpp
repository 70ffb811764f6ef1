// The state that nodes keep for their next start, as real processes on the loopback interface: the port, the
// wallet's word for the node, good peers, bans; and what they do about names that nobody knows.
#include <QDateTime>
#include <QFile>
#include <QJsonArray>
#include <QTcpServer>
#include <QTemporaryDir>
#include <QTest>

#include "tests/support/network_run.h"
#include "tests/support/test_main.h"

using namespace neuroshard::test;  // NOLINT

class TestNetworkRestart : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase();
  void a_port_that_was_chosen_is_kept();
  void records_name_the_wallet();
  void a_protected_wallet_delegates_by_hand();
  void nodes_find_each_other_without_their_tracker();
  void a_damaged_cache_is_ignored();
  void bans_hold_over_a_restart();
  void a_name_that_is_unknown_at_the_start_is_tried_on();

 private:
  // Of a node on the loopback interface; port and further arguments as given.
  QStringList joining(const QString& directory, const QStringList& further) const {
    return QStringList{"run",           "--json",        "--data-dir",
                       path(directory), "--profile",     path("village.json"),
                       "--lan",         "--p2p-address", "127.0.0.1"} +
           further;
  }
  QString path(const QString& name) const { return folder_.filePath(name); }
  QTemporaryDir folder_;
};

void TestNetworkRestart::initTestCase() {
  QVERIFY(folder_.isValid());
  const ProcessResult made =
      run_node({"network", "create", "--from", "devnet", "--name", "village", "--out", path("village.json")});
  QVERIFY2(made.ok(), made.text().constData());
}

namespace {

void stop(NodeProcess& process) {
  process.terminate();
  const ProcessResult stopped = process.finish();
  QVERIFY2(!stopped.crashed && !stopped.timed_out, stopped.text().constData());
}

// The line with its port and id once it takes part.
QJsonObject joined(NodeProcess& process) {
  return wait_for_object(process, "peers");
}

// The wallets that the records name, by node.
QMap<QString, QString> wallets(const QString& profile, const QString& at) {
  QMap<QString, QString> named;
  for (const QJsonObject& record : peers(profile, at))
    named[record["id"].toString()] = record["wallet"].toString();
  return named;
}

QString wallet_of(const QString& directory) {
  const ProcessResult shown = run_node({"wallet", "show", "--json", "--data-dir", directory});
  return json_lines(shown.out).value(0)["wallet_id"].toString();
}

QByteArray content(const QString& file_name) {
  QFile file(file_name);
  return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

QByteArray log_of(const QString& directory) {
  return content(directory + "/logs/neuroshardd.log");
}

bool write(const QString& file_name, const QByteArray& bytes) {
  QFile file(file_name);
  return file.open(QIODevice::WriteOnly) && file.write(bytes) == bytes.size();
}

}  // namespace

void TestNetworkRestart::a_port_that_was_chosen_is_kept() {
  QTcpServer other;  // has the network's port
  QVERIFY(other.listen(QHostAddress::LocalHost));
  const QString port = QString::number(other.serverPort());
  const ProcessResult made = run_node({"network", "create", "--from", "devnet", "--name", "hamlet",
                                       "--p2p-port", port, "--out", path("hamlet.json")});
  QVERIFY2(made.ok(), made.text().constData());
  const QStringList arguments{
      "run",   "--json",        "--json",   "--data-dir", path("kept"), "--profile", path("hamlet.json"),
      "--lan", "--p2p-address", "127.0.0.1"};
  int chosen = 0;
  {
    NodeProcess node(arguments);
    chosen = joined(node)["port"].toInt();
    QVERIFY2(chosen > 0 && chosen != other.serverPort(), node.errors_so_far().constData());
    QVERIFY2(log_of(path("kept")).contains("also at the next starts"),
             log_of(path("kept")).right(900).constData());
    stop(node);
  }
  other.close();  // free again: the kept one stays all the same, as others remember it
  {
    NodeProcess node(arguments);
    QCOMPARE(joined(node)["port"].toInt(), chosen);
    stop(node);
  }
  QVERIFY(log_of(path("kept")).contains("--p2p-port " + port.toUtf8() + " selects that one again"));
  QVERIFY(write(path("kept/peers.port"), "nonsense"));
  NodeProcess node(arguments);
  QCOMPARE(joined(node)["port"].toInt(), port.toInt());
  QVERIFY2(log_of(path("kept")).contains("peers.port can't be read"),
           log_of(path("kept")).right(900).constData());
  stop(node);
}

void TestNetworkRestart::records_name_the_wallet() {
  NodeProcess tracker({"tracker", "--json", "--profile", path("village.json"), "--address", "127.0.0.1",
                       "--port", "0", "--lan"});
  const QString at = wait_for_object(tracker, "ready")["address"].toString();
  QVERIFY(!at.isEmpty());
  NodeProcess a(joining("wallet-a", {"--p2p-port", "0", "--tracker", at}));
  const QString id_a = joined(a)["id"].toString();
  const QString wallet_a = wallet_of(path("wallet-a"));
  QVERIFY(!id_a.isEmpty() && !wallet_a.isEmpty());
  QTRY_COMPARE_WITH_TIMEOUT(wallets(path("village.json"), at).value(id_a), wallet_a, 60'000);
  const QByteArray word = content(path("wallet-a/delegation"));
  QCOMPARE(word.size(), 184);

  // The word for another node is worth nothing here: the node makes its own, for its own wallet.
  {
    NodeProcess first(joining("wallet-b", {"--p2p-port", "0"}));
    QVERIFY(!joined(first).isEmpty());
    stop(first);
  }
  QVERIFY(write(path("wallet-b/delegation"), word));
  NodeProcess b(joining("wallet-b", {"--p2p-port", "0", "--tracker", at}));
  const QString id_b = joined(b)["id"].toString();
  QVERIFY2(log_of(path("wallet-b")).contains("the delegation is for another node"),
           log_of(path("wallet-b")).right(900).constData());
  QVERIFY(content(path("wallet-b/delegation")) != word);
  const QString wallet_b = wallet_of(path("wallet-b"));
  QVERIFY(wallet_b != wallet_a);
  QTRY_COMPARE_WITH_TIMEOUT(wallets(path("village.json"), at).value(id_b), wallet_b, 60'000);
  stop(a);
  stop(b);
  // Once and for all: the next start finds it.
  const QByteArray kept = content(path("wallet-a/delegation"));
  NodeProcess again(joining("wallet-a", {"--p2p-port", "0"}));
  QVERIFY(!joined(again).isEmpty());
  QCOMPARE(content(path("wallet-a/delegation")), kept);
  QCOMPARE(kept, word);
  stop(again);
}

void TestNetworkRestart::a_protected_wallet_delegates_by_hand() {
  NodeProcess tracker({"tracker", "--json", "--profile", path("village.json"), "--address", "127.0.0.1",
                       "--port", "0", "--lan"});
  const QString at = wait_for_object(tracker, "ready")["address"].toString();
  QVERIFY(write(path("pass"), "gr\xc3\xbc\xc3\x9f dich\n"));
  const ProcessResult made = run_node(
      {"wallet", "create", "--data-dir", path("locked"), "--passphrase-file", path("pass"), "--json"});
  QVERIFY2(made.ok(), made.text().constData());
  const QStringList arguments = joining("locked", {"--p2p-port", "0", "--tracker", at});
  {
    NodeProcess node(arguments);
    const QString id = joined(node)["id"].toString();
    QVERIFY2(log_of(path("locked")).contains("neuroshardd wallet delegate"),
             log_of(path("locked")).right(900).constData());
    QTRY_VERIFY_WITH_TIMEOUT(wallets(path("village.json"), at).contains(id), 60'000);
    QCOMPARE(wallets(path("village.json"), at).value(id), QString());
    stop(node);
  }
  const ProcessResult denied = run_node({"wallet", "delegate", "--data-dir", path("locked"), "--json"});
  QVERIFY(!denied.ok());
  const ProcessResult word = run_node(
      {"wallet", "delegate", "--data-dir", path("locked"), "--passphrase-file", path("pass"), "--json"});
  QVERIFY2(word.ok(), word.text().constData());
  NodeProcess node(arguments);
  const QString id = joined(node)["id"].toString();
  QCOMPARE(json_lines(word.out).value(0)["node_id"].toString(), id);
  QTRY_COMPARE_WITH_TIMEOUT(wallets(path("village.json"), at).value(id), wallet_of(path("locked")), 60'000);
  stop(node);
}

void TestNetworkRestart::nodes_find_each_other_without_their_tracker() {
  NodeProcess tracker({"tracker", "--json", "--profile", path("village.json"), "--address", "127.0.0.1",
                       "--port", "0", "--lan"});
  const QString at = wait_for_object(tracker, "ready")["address"].toString();
  const QStringList further{"--p2p-port", "0", "--tracker", at};
  QJsonObject before_a;
  {
    NodeProcess a(joining("cache-a", further)), b(joining("cache-b", further));
    before_a = joined(a);
    QVERIFY(!joined(b).isEmpty());
    QTRY_VERIFY_WITH_TIMEOUT(
        QFile::exists(path("cache-a/peers.cache")) && QFile::exists(path("cache-b/peers.cache")), 60'000);
    stop(a);
    stop(b);
  }
  tracker.kill_now();
  NodeProcess a(joining("cache-a", further)), b(joining("cache-b", further));
  const QJsonObject at_a = joined(a), at_b = joined(b);
  QCOMPARE(at_a["address"], before_a["address"]);
  const auto known = [&](const QJsonObject& asked) {
    const auto nodes =
        peers(path("village.json"), asked["id"].toString() + "@" + asked["address"].toString());
    return nodes.size() == 1 ? nodes.first()["id"].toString() : QString();
  };
  QTRY_COMPARE_WITH_TIMEOUT(known(at_a), at_b["id"].toString(), 60'000);
  QTRY_COMPARE_WITH_TIMEOUT(known(at_b), at_a["id"].toString(), 60'000);
  stop(a);
  stop(b);
}

void TestNetworkRestart::a_damaged_cache_is_ignored() {
  QByteArray cache = content(path("cache-a/peers.cache"));
  QVERIFY(cache.size() > 100);
  cache[60] = static_cast<char>(cache[60] ^ 1);
  QVERIFY(write(path("cache-a/peers.cache"), cache));
  NodeProcess node(joining("cache-a", {"--p2p-port", "0"}));
  QVERIFY2(!joined(node).isEmpty(), node.errors_so_far().constData());
  QVERIFY2(log_of(path("cache-a")).contains("the cache of peers is damaged"),
           log_of(path("cache-a")).right(900).constData());
  stop(node);
}

namespace {

QByteArray little_endian(quint64 value, int bytes) {
  QByteArray result;
  for (int i = 0; i < bytes; ++i) result.append(static_cast<char>(value >> 8 * i));
  return result;
}

}  // namespace

void TestNetworkRestart::bans_hold_over_a_restart() {
  QString id_b;
  {
    NodeProcess b(joining("banned", {"--p2p-port", "0"}));
    id_b = joined(b)["id"].toString();
    QCOMPARE(id_b.size(), 64);
    stop(b);
  }
  {
    NodeProcess a(joining("strict", {"--p2p-port", "0"}));
    QVERIFY(!joined(a).isEmpty());
    stop(a);
  }
  const auto until = static_cast<quint64>(QDateTime::currentMSecsSinceEpoch()) + 3'600'000;
  const QByteArray reason = "messages that can't be read (5 times)";
  QVERIFY(write(path("strict/peers.bans"), "NSBN" + little_endian(1, 4) + little_endian(1, 4) +
                                               QByteArray::fromHex(id_b.toLatin1()) +
                                               little_endian(until, 8) + little_endian(1, 4) +
                                               little_endian(quint64(reason.size()), 1) + reason));
  NodeProcess a(joining("strict", {"--p2p-port", "0"}));
  const QJsonObject at = joined(a);
  QVERIFY2(!at.isEmpty(), a.errors_so_far().constData());
  const auto view = [&](const QString& directory) {
    return json_lines(run_node({"peers", "--json", "--data-dir", path(directory)}).out).value(0);
  };
  const QJsonArray bans = view("strict")["bans"].toArray();
  QCOMPARE(bans.size(), 1);
  QCOMPARE(bans[0]["id"].toString(), id_b);
  QCOMPARE(bans[0]["reason"].toString().toUtf8(), reason);
  // And the banned node is refused, with the reason.
  NodeProcess b(joining("banned", {"--p2p-port", "0", "--tracker", at["address"].toString()}));
  QVERIFY(!joined(b).isEmpty());
  const auto state = [&] { return view("banned")["sources"].toArray().at(0)["state"].toString(); };
  QTRY_VERIFY2_WITH_TIMEOUT(state().contains("may not accept this node") || state().contains("banned"),
                            qPrintable(state()), 30'000);
  stop(b);
  stop(a);
  QVERIFY(content(path("strict/peers.bans")).contains(reason));
}

void TestNetworkRestart::a_name_that_is_unknown_at_the_start_is_tried_on() {
  NodeProcess node(joining("names", {"--p2p-port", "0", "--tracker", "nobody.invalid:8765"}));
  QVERIFY2(!joined(node).isEmpty(), node.errors_so_far().constData());
  QTRY_VERIFY_WITH_TIMEOUT(log_of(path("names")).count("nobody.invalid:8765: ") >= 2, 60'000);
  stop(node);
  const ProcessResult wrong = run_node(joining("names", {"--p2p-port", "0", "--tracker", "somewhere"}));
  QVERIFY(!wrong.ok());
  QVERIFY2(wrong.err.contains("somewhere"), wrong.text().constData());
}

NS_TEST(TestNetworkRestart)
#include "test_network_restart.moc"
