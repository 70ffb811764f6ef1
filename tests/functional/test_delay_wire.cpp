// A line with delay, where the kernel has no netem (tests/support/delay_wire.cpp): what it costs by itself,
// beside a plain one in the same moment, and two real nodes that train together over 50 ms each way.
// NS_WIRE_SECONDS=5 measures longer, NS_WIRE_MS=150 over a longer line (docs/measurements.md).
#include <QCoreApplication>
#include <QElapsedTimer>
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTemporaryDir>
#include <QtTest>

#include "tests/support/net_lab.h"
#include "tests/support/process.h"
#include "tests/support/training_run.h"

using namespace neuroshard::test;  // NOLINT

namespace {

constexpr int patience_ms = 60'000;
const double one_way_ms = qEnvironmentVariable("NS_WIRE_MS", "50").toDouble();

}  // namespace

class TestDelayWire : public QObject {
  Q_OBJECT
 public:
  QString why_not;

 private Q_SLOTS:
  void initTestCase();
  void what_the_wire_costs();
  void two_nodes_train_over_a_long_line();

 private:
  // Between 10.9.0.1 in a and 10.9.0.2 in b; in place of the one before.
  bool stretch(double milliseconds, double jitter_ms = 0) {
    wire_.reset();
    wire_ =
        std::make_unique<LabProcess>("a", program_,
                                     QStringList{"join", "a", "10.9.0.1/24", "b", "10.9.0.2/24",
                                                 QString::number(milliseconds), QString::number(jitter_ms)});
    return wire_->line("ready").has_value();
  }
  QJsonObject measure(const QString& ip) const {
    const ShellResult result =
        shell(QString("ip netns exec a %1 measure %2 7000 %3").arg(program_, ip, seconds_), 120'000);
    if (result.exit_code != 0) qWarning("%s", result.text.constData());
    return QJsonDocument::fromJson(result.text).object();
  }
  static QByteArray words(const QJsonObject& measured) {
    return QByteArray::number(measured["median_us"].toDouble(), 'f', 1) + " us (p99 " +
           QByteArray::number(measured["p99_us"].toDouble(), 'f', 1) + "), " +
           QByteArray::number(measured["bytes_per_second"].toDouble() / 1e6, 'f', 0) + " MB/s";
  }
  QJsonObject ask(const QString& name, const QString& command) const {
    const ShellResult result = shell(QString("ip netns exec %1 %2 %3 --json --data-dir %4")
                                         .arg(name, node_program(), command, folder_.filePath(name)));
    for (const QByteArray& line : result.text.split('\n')) {
      const QJsonObject object = QJsonDocument::fromJson(line).object();
      if (!object.isEmpty()) return object;
    }
    return {};
  }
  QJsonObject rounds(const QString& name) const { return ask(name, "status")["rounds"].toObject(); }
  QByteArray log_of(const QString& name) const {
    QFile file(folder_.filePath(name) + "/logs/neuroshardd.log");
    return file.open(QIODevice::ReadOnly) ? file.readAll().right(3000) : QByteArray();
  }
  // The newest round to which both contributed and that both hold; 0: none.
  int together() const {
    int newest = 0;
    for (const char* name : {"a", "b"}) {
      const QJsonObject seen = rounds(name);
      if (seen["contributors"].toInt() != 2 || !seen["agrees"].toBool()) return 0;
      newest = newest == 0 ? seen["round"].toInt() : qMin(newest, seen["round"].toInt());
    }
    return newest;
  }
  void start(const QString& name) {
    nodes_[name] = std::make_shared<LabProcess>(
        name, node_program(),
        QStringList{"run", "--json", "--lan", "--data-dir", folder_.filePath(name), "--profile",
                    folder_.filePath("village.json"), "--tracker", "10.9.0.1:8765", "--p2p-port", "9100",
                    "--text", folder_.filePath("text"), "--cpu-threads", "1", "--eval-interval-steps", "0",
                    "--checkpoint-min-interval", "1d"});
    QVERIFY2(nodes_[name]->line("{\"peers\":true").has_value(), nodes_[name]->seen().constData());
  }

  const QString program_ = QCoreApplication::applicationDirPath() + "/delay_wire";
  const QString seconds_ = qEnvironmentVariable("NS_WIRE_SECONDS", "1");
  QTemporaryDir folder_{"/run/delay-wire-XXXXXX"};
  std::unique_ptr<LabProcess> wire_, server_, tracker_;
  QMap<QString, std::shared_ptr<LabProcess>> nodes_;
};

void TestDelayWire::initTestCase() {
  if (!why_not.isEmpty()) QSKIP(qPrintable(why_not));
  if (!QFile::exists("/dev/net/tun")) QSKIP("this system has no TUN devices, so this was not tested");
  const ShellResult made = shell(
      "for ns in a b; do ip netns add $ns; ip -n $ns link set lo up; done\n"
      "ip link add plain netns a type veth peer name plain netns b\n"
      "ip -n a addr add 10.8.0.1/24 dev plain; ip -n a link set plain up\n"
      "ip -n b addr add 10.8.0.2/24 dev plain; ip -n b link set plain up");
  QVERIFY2(made.exit_code == 0, made.text.constData());
}

void TestDelayWire::what_the_wire_costs() {
  server_ = std::make_unique<LabProcess>("b", program_, QStringList{"serve", "7000"});
  QVERIFY(server_->line("ready").has_value());
  QVERIFY2(stretch(0), wire_->seen().constData());
  const QJsonObject plain = measure("10.8.0.2"), wire = measure("10.9.0.2");
  QVERIFY(plain["bytes_per_second"].toDouble() > 0 && wire["bytes_per_second"].toDouble() > 0);
  qInfo("plain:            %s", words(plain).constData());
  qInfo("the wire, 0 ms:   %s", words(wire).constData());
  QVERIFY2(stretch(one_way_ms), wire_->seen().constData());
  const QJsonObject far = measure("10.9.0.2");
  qInfo("the wire, %g ms:  %s", one_way_ms, words(far).constData());
  QVERIFY2(far["least_us"].toDouble() >= 2 * one_way_ms * 1000, words(far).constData());
  QVERIFY(far["bytes_per_second"].toDouble() > 0);
  QVERIFY2(stretch(one_way_ms, one_way_ms / 5), wire_->seen().constData());
  const QJsonObject uneven = measure("10.9.0.2");
  qInfo("%g ms +- a fifth: %s", one_way_ms, words(uneven).constData());
  QVERIFY2(uneven["least_us"].toDouble() >= 2 * one_way_ms * 1000 * 0.8, words(uneven).constData());
}

void TestDelayWire::two_nodes_train_over_a_long_line() {
  QVERIFY2(stretch(one_way_ms), wire_ ? wire_->seen().constData() : "no wire");
  QCOMPARE(shell("ip -n a link del plain").exit_code, 0);  // nothing finds a shorter way
  QFile text(folder_.filePath("text"));
  QVERIFY(text.open(QIODevice::WriteOnly) && text.write(made_up_text(7, 60'000)) > 0);
  text.close();
  // A newcomer fetches the anchor within one round, in several round trips: rounds of a third of a second, which
  // a quick machine makes of 100 steps, are too short for it.
  const ShellResult made = shell(
      QString("%1 network create --from devnet --name village --out %2 --layers 1 --hidden 32 --head-dim 16 "
              "--vocab 300 --experts 2 --sequence 32 --batch-tokens 512 --h 300 --grows 0")
          .arg(node_program(), folder_.filePath("village.json")));
  QVERIFY2(made.exit_code == 0, made.text.constData());
  tracker_ = std::make_unique<LabProcess>(
      "a", node_program(),
      QStringList{"tracker", "--json", "--lan", "--profile", folder_.filePath("village.json"), "--address",
                  "10.9.0.1", "--port", "8765"});
  QVERIFY2(tracker_->line("{\"ready\"").has_value(), tracker_->seen().constData());
  start("a");
  // Else each might begin a history of its own.
  QVERIFY2(QTest::qWaitFor([&] { return rounds("a")["round"].toInt() >= 1; }, patience_ms),
           log_of("a").constData());
  start("b");
  QVERIFY2(QTest::qWaitFor([&] { return together() > 0; }, patience_ms),
           (log_of("a") + log_of("b")).constData());
  QElapsedTimer time;
  const int first = together();
  time.start();
  int newest = first;
  QVERIFY2(QTest::qWaitFor([&] { return (newest = together()) >= first + 8; }, patience_ms),
           (log_of("a") + log_of("b")).constData());
  const double seconds = static_cast<double>(time.elapsed()) / 1000;
  // Their records of each other describe that line.
  for (const char* name : {"a", "b"}) {
    const auto away = [&] {
      double most = 0;
      for (const QJsonValue& peer : ask(name, "peers")["peers"].toArray())
        most = std::max(most, peer["round_trip_s"].toDouble());
      return most;
    };
    QVERIFY(QTest::qWaitFor([&] { return away() >= 2 * one_way_ms / 1000; }, patience_ms));
  }
  qInfo("%d rounds of 300 steps over %g ms of round trip, %.2f s each", newest - first, 2 * one_way_ms,
        seconds / (newest - first));
  for (const auto& node : nodes_) node->kill_now();
}

int main(int argc, char** argv) {
  const QString why_not = enter_net_lab(argv, {});
  const QCoreApplication application(argc, argv);
  TestDelayWire test;
  test.why_not = why_not;
  return QTest::qExec(&test, argc, argv);
}
#include "test_delay_wire.moc"
