// A TURN server of the person's own (coturn), as the product uses it: two nodes behind symmetric NATs that
// nobody can dial train together through it, a public node reaches them there, a wrong password is reported
// in words, and the relay of another node stands in while the server is away.
#include <QCoreApplication>
#include <QElapsedTimer>
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QtTest>

#include "tests/support/nat_homes.h"
#include "tests/support/process.h"
#include "tests/support/training_run.h"

using namespace neuroshard::test;  // NOLINT

namespace {

constexpr const char* password = "Kx7_correct_horse";
constexpr const char* wrong_password = "Kx8_battery_staple";
constexpr int patience_ms = 60'000;
constexpr const char* unpack =
    "import sys, zipfile; z = zipfile.ZipFile(sys.argv[1]); [print(z.read(n).decode()) for n in "
    "z.namelist()]";

}  // namespace

class TestNatTurn : public QObject {
  Q_OBJECT
 public:
  QString why_not;

 private Q_SLOTS:
  void initTestCase();
  void each_says_how_it_is_reached();
  void two_behind_symmetric_nats_train_through_it();
  void a_public_node_reaches_them_there();
  void a_relay_stands_in_while_it_is_away();
  void no_relay_is_needed_while_it_is_there();
  void the_password_is_told_nowhere();

 private:
  QJsonObject ask(const QString& home, const QString& command) const { return homes_.ask(home, command); }
  QByteArray log_of(const QString& home) const { return homes_.log_of(home); }
  QByteArray trouble(const QString& home) const {
    return home.toUtf8() + ": " + QJsonDocument(ask(home, "peers")).toJson() + log_of(home).right(3000) +
           coturn_->seen().right(2000);
  }
  // The path of `home` to the node of `other`; empty: none.
  QString way(const QString& home, const QString& other) const {
    for (const QJsonValue& peer : ask(home, "peers")["peers"].toArray())
      if (peer["id"].toString() == ids_[other] && peer["connected"].toBool()) return peer["way"].toString();
    return {};
  }
  bool both(const char* wanted) const {
    return way("symmetric", "blocked") == wanted && way("blocked", "symmetric") == wanted;
  }
  // The newest round to which both contributed and that both hold; 0: none.
  int round() const {
    const QJsonObject one = ask("symmetric", "status")["rounds"].toObject(),
                      two = ask("blocked", "status")["rounds"].toObject();
    for (const QJsonObject& seen : {one, two})
      if (seen["contributors"].toInt() != 2 || !seen["agrees"].toBool()) return 0;
    return qMin(one["round"].toInt(), two["round"].toInt());
  }
  // Two rounds that began after now.
  bool they_train_on() const {
    const int before = qMax(round(), 1);
    return QTest::qWaitFor([&] { return round() >= before + 2; }, patience_ms);
  }
  // With the lines that docs/guide/reachability.md asks for; what the command line adds is the laboratory's.
  bool start_coturn() {
    const QByteArray lines =
        QByteArray("listening-port=3478\nlt-cred-mech\nuser=nsd:") + password + "\nrealm=turn.example.org\n";
    if (!write("turnserver.conf", lines)) return false;
    coturn_ = std::make_unique<LabProcess>(
        "pub", "turnserver",
        QStringList{"-c", homes_.folder.filePath("turnserver.conf"), "--no-cli", "--log-file=stdout",
                    "--simple-log", "--userdb=" + homes_.folder.filePath("db"),
                    "--pidfile=" + homes_.folder.filePath("coturn.pid")});
    return true;
  }
  // link: an invitation; without one the node has the profile.
  void start(const QString& home, const QStringList& more, const QString& link = {}) {
    const QStringList network = link.isEmpty()
                                    ? QStringList{"--profile", homes_.folder.filePath("village.json")}
                                    : QStringList{"--join", link, "--yes"};
    nodes_[home] = std::make_shared<LabProcess>(
        home, node_program(),
        QStringList{"run", "--json", "--data-dir", homes_.folder.filePath(home), "--tracker",
                    "11.22.33.1:443", "--p2p-port", "9100", "--open-port", "off", "--relay-for-others", "off",
                    "--cpu-threads", "1", "--eval-interval-steps", "0", "--checkpoint-min-interval", "1d"} +
            network + more);
    const auto said = nodes_[home]->line("{\"peers\":true");
    QVERIFY2(said.has_value(), nodes_[home]->seen().constData());
    ids_[home] = QJsonDocument::fromJson("{\"peers\":true" + *said).object()["id"].toString();
  }
  bool write(const QString& name, const QByteArray& content) const {
    QFile file(homes_.folder.filePath(name));
    return file.open(QIODevice::WriteOnly) && file.write(content) == content.size();
  }

  NatHomes homes_;
  std::unique_ptr<LabProcess> tracker_, coturn_;
  QMap<QString, std::shared_ptr<LabProcess>> nodes_;
  QMap<QString, QString> ids_;
};

void TestNatTurn::initTestCase() {
  if (!why_not.isEmpty()) QSKIP(qPrintable(why_not));
  QVERIFY(homes_.build());
  QVERIFY(write("text", made_up_text(7, 60'000)));
  QVERIFY(write("password", password + QByteArray("\n")) && write("wrong", wrong_password));
  QVERIFY(
      NatHomes::run(QString("%1 network create --from devnet --name village --out %2 --layers 1 --hidden 32 "
                            "--head-dim 16 --vocab 300 --experts 2 --sequence 32 --batch-tokens 512 --h 100 "
                            "--grows 0")
                        .arg(node_program(), homes_.folder.filePath("village.json"))));
  QVERIFY(start_coturn());
  tracker_ = std::make_unique<LabProcess>(
      "pub", node_program(),
      QStringList{"tracker", "--json", "--profile", homes_.folder.filePath("village.json"), "--address",
                  "11.22.33.1", "--port", "443"});
  QVERIFY2(tracker_->line("{\"ready\"").has_value(), tracker_->seen().constData());
  const QStringList turn{"--turn-server", "11.22.33.9:3478", "--turn-user", "nsd", "--turn-password-file"};
  const QStringList trains{"--text", homes_.folder.filePath("text")};
  start("symmetric", turn + QStringList{homes_.folder.filePath("password")} + trains);
  // Else each might begin a history of its own.
  QVERIFY2(
      QTest::qWaitFor([&] { return ask("symmetric", "status")["rounds"].toObject()["round"].toInt() >= 1; },
                      patience_ms),
      trouble("symmetric").constData());
  // No voter vouches for a node by itself that it hears through a relay or a TURN server.
  const ShellResult invited = shell(QString("ip netns exec symmetric %1 network invite --json --data-dir %2")
                                        .arg(node_program(), homes_.folder.filePath("symmetric")));
  const QString link = json_lines(invited.text).value(0)["link"].toString();
  QVERIFY2(!link.isEmpty(), invited.text.constData());
  start("blocked", turn + QStringList{homes_.folder.filePath("password")} + trains, link);
  start("plain", turn + QStringList{homes_.folder.filePath("wrong")});
  start("public", turn + QStringList{"turn.password"});  // in its data directory, where there is none
}

void TestNatTurn::each_says_how_it_is_reached() {
  for (const char* home : {"symmetric", "blocked"}) {
    QVERIFY2(QTest::qWaitFor([&] { return !ask(home, "peers")["turn"].toString().isEmpty(); }, patience_ms),
             trouble(home).constData());
    const QJsonObject view = ask(home, "peers");
    QVERIFY2(view["turn"].toString().startsWith("11.22.33."), qPrintable(view["turn"].toString()));
    QCOMPARE(view["reach"].toString(), QString("relayed only"));
    QVERIFY(view["advertise"].toString().isEmpty() && view["turn_trouble"].toString().isEmpty());
  }
  // The wrong password: in words, and a relay stands in.
  QVERIFY2(QTest::qWaitFor(
               [&] {
                 return !ask("plain", "peers")["turn_trouble"].toString().isEmpty() &&
                        !ask("plain", "peers")["relay"].toString().isEmpty();
               },
               patience_ms),
           trouble("plain").constData());
  const ShellResult said = shell(QString("ip netns exec plain %1 reachability --data-dir %2")
                                     .arg(node_program(), homes_.folder.filePath("plain")));
  QVERIFY2(said.text.contains("11.22.33.9:3478") &&
               said.text.contains("does not accept this name and password") &&
               said.text.contains("through the relay 11.22.33.1:443"),
           said.text.constData());
  QVERIFY(log_of("plain").contains("does not accept this name and password"));
}

void TestNatTurn::two_behind_symmetric_nats_train_through_it() {
  QVERIFY2(QTest::qWaitFor([&] { return both("turn"); }, patience_ms),
           (trouble("symmetric") + trouble("blocked")).constData());
  QVERIFY2(they_train_on(), trouble("symmetric").constData());
}

void TestNatTurn::a_public_node_reaches_them_there() {
  for (const char* home : {"symmetric", "blocked"})
    QVERIFY2(QTest::qWaitFor([&] { return way("public", home) == "turn"; }, patience_ms),
             trouble("public").constData());
  // It has no use for a server of its own, and reports that it could not use it.
  QVERIFY(log_of("public").contains("its password is missing: write it into the first line of"));
  QVERIFY(ask("public", "peers")["turn_trouble"].toString().isEmpty());
}

void TestNatTurn::a_relay_stands_in_while_it_is_away() {
  QElapsedTimer time;
  time.start();
  coturn_->kill_now();
  for (const char* home : {"symmetric", "blocked"}) {
    QVERIFY2(QTest::qWaitFor([&] { return ask(home, "peers")["turn"].toString().isEmpty(); }, patience_ms),
             trouble(home).constData());
    QVERIFY(!ask(home, "peers")["turn_trouble"].toString().isEmpty());
  }
  const qint64 noticed = time.elapsed();
  QVERIFY2(QTest::qWaitFor([&] { return both("relayed"); }, patience_ms), trouble("symmetric").constData());
  const qint64 relayed = time.elapsed();
  QVERIFY2(they_train_on(), trouble("symmetric").constData());
  qInfo("the server's end was noticed after %lld ms, relayed after %lld ms, two rounds after %lld ms",
        noticed, relayed, time.restart());
  QVERIFY(start_coturn());
  QVERIFY2(QTest::qWaitFor([&] { return both("turn"); }, 2 * patience_ms), trouble("symmetric").constData());
  qInfo("there again after %lld ms", time.elapsed());
}

// The only node that relays goes; what the two say to each other does not pass it.
void TestNatTurn::no_relay_is_needed_while_it_is_there() {
  tracker_->kill_now();
  QVERIFY2(they_train_on(), trouble("symmetric").constData());
  QVERIFY(both("turn"));
}

void TestNatTurn::the_password_is_told_nowhere() {
  if (nodes_.isEmpty()) QSKIP("no node runs");
  for (const char* home : {"symmetric", "plain"}) {
    const QString folder = homes_.folder.filePath(home);
    const QString command = "ip netns exec %1 %2 %3 --json --data-dir %4";
    QByteArray told = log_of(home) + nodes_[home]->seen();
    for (const char* asked : {"settings list", "peers", "status", "logs"})
      told += shell(command.arg(home, node_program(), asked, folder)).text;
    const QString report = homes_.folder.filePath(home + QString(".zip"));
    QVERIFY(NatHomes::run(QString("ip netns exec %1 %2 diagnostics --data-dir %3 --out %4")
                              .arg(home, node_program(), folder, report)));
    told += shell("python3 -c '" + QString(unpack) + "' " + report).text;
    QVERIFY2(told.count("turn_password_file") >= 2, told.constData());  // in the list and in the report
    QVERIFY(!told.contains(password) && !told.contains(wrong_password));
  }
  for (const char* home : {"symmetric", "plain"}) {
    nodes_[home]->terminate();
    QVERIFY(QTest::qWaitFor([&] { return !nodes_[home]->running(); }, 30'000));
  }
}

int main(int argc, char** argv) {
  const QString why_not = enter_net_lab(argv, {"nft", "miniupnpd", "turnserver", "sysctl", "python3"});
  const QCoreApplication application(argc, argv);
  TestNatTurn test;
  test.why_not = why_not;
  return QTest::qExec(&test, argc, argv);
}
#include "test_nat_turn.moc"
