// kill -9 in the middle of the large writes of a round: three real nodes train a model whose outer state is larger than
// the spool's share of memory. A node is killed while it writes a new file of the spool, or a new anchor. Anchors on
// the disk are always whole, nodes never have two states of one round, and the killed node takes part again.
//
// NS_LONG=1 (tests/long.sh torn): 50 kills instead of 2. NS_SEED repeats the choices of a run, not its timing.
#include <fcntl.h>
#include <unistd.h>

#include <QCryptographicHash>
#include <QDateTime>
#include <QElapsedTimer>
#include <QTest>
#include <optional>

#include "core/base/rng.h"
#include "tests/support/chain_ledger.h"
#include "tests/support/rounds_run.h"
#include "tests/support/test_main.h"

using namespace neuroshard;        // NOLINT
using namespace neuroshard::test;  // NOLINT

namespace {

constexpr int inner_steps = 2, step_tokens = 64;
constexpr qint64 spool_memory = qint64{64} << 20;      // what the node keeps of the spool in memory
constexpr qint64 written_at_once = qint64{256} << 10;  // within a millisecond or a few
constexpr const char* anchor_file = "/chain/row-0";

// A file of core/engine/state_file.h, read with nothing of the product.
struct StateOnDisk {
  quint64 round = 0;
  QByteArray hash;  // of all before it
  qint64 size = 0;
  bool whole = false;
};
std::optional<StateOnDisk> state_on_disk(const QString& path) {
  QFile file(path);
  if (!file.open(QIODevice::ReadOnly)) return std::nullopt;
  const QByteArray bytes = file.readAll();
  StateOnDisk state;
  state.size = bytes.size();
  if (bytes.size() < 72) return state;
  memcpy(&state.round, bytes.constData() + 8, 8);
  state.hash = bytes.right(32);
  state.whole =
      bytes.startsWith("NSRSTATE") &&
      QCryptographicHash::hash(QByteArrayView(bytes).chopped(32), QCryptographicHash::Sha256) == state.hash;
  return state;
}

// The large files that a process has open for a round: those of the spool, which have no name, and a new anchor.
QSet<QString> large_files(qint64 pid, bool of_anchor) {
  QSet<QString> found;
  const QString folder = QString("/proc/%1/fd").arg(pid);
  for (const QFileInfo& entry :
       QDir(folder).entryInfoList(QDir::System | QDir::NoDotAndDotDot | QDir::Files)) {
    char to[512];
    const ssize_t length = ::readlink(entry.filePath().toLocal8Bit().constData(), to, sizeof(to));
    if (length <= 0) continue;
    const QString target = QString::fromLocal8Bit(to, static_cast<int>(length));
    if (of_anchor ? target.endsWith("row-0.new") : target.contains("/spool/")) found.insert(target);
  }
  return found;
}

// The bytes that the process has written so far.
qint64 written_by(qint64 pid) {
  QFile io(QString("/proc/%1/io").arg(pid));
  if (!io.open(QIODevice::ReadOnly)) return 0;
  for (const QByteArray& line : io.readAll().split('\n'))
    if (line.startsWith("wchar:")) return line.mid(6).trimmed().toLongLong();
  return 0;
}

}  // namespace

class TestRoundsTorn : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase();
  void the_check_notices_a_torn_file();
  void three_train_a_model_larger_than_the_spools_memory();
  void kills_in_the_middle_of_writes_tear_nothing();
  void all_have_one_history();

 private:
  // Empty: killed; else what went wrong.
  QByteArray kill_while_writing(const QString& name, bool the_anchor);
  // The anchors on the disk of all nodes are whole, and equal if they are of one round.
  QByteArray check_states();
  int below(int bound) { return static_cast<int>(rng_->below(static_cast<std::uint64_t>(bound))); }

  const bool full_ = qEnvironmentVariableIsSet("NS_LONG");
  const QStringList names_{"a", "b", "c"};
  std::optional<Rng> rng_;
  RoundsRun run_;
  QMap<quint64, QByteArray> states_;  // by round
  int compared_ = 0;
};

void TestRoundsTorn::initTestCase() {
  qputenv("NEUROSHARD_INSPECTABLE", "1");  // the open files of nodes are looked at
  const auto seed = qEnvironmentVariableIsSet("NS_SEED")
                        ? qEnvironmentVariable("NS_SEED").toULongLong()
                        : static_cast<std::uint64_t>(QDateTime::currentMSecsSinceEpoch());
  rng_.emplace(seed);
  qInfo("seed %llu (NS_SEED repeats it)", static_cast<unsigned long long>(seed));
  run_.model = {"--layers",  "1", "--hidden",   "512", "--head-dim",     "64", "--vocab", "300",
                "--experts", "5", "--sequence", "32",  "--batch-tokens", "64"};
  QCOMPARE(run_.make("torn", QString::number(inner_steps), {"--block-time-s", "1", "--stall-after-s", "10"}),
           QByteArray());
  run_.node_words = {"--precision", "fp32"};
}

void TestRoundsTorn::the_check_notices_a_torn_file() {
  QByteArray bytes = "NSRSTATE" + QByteArray(32, '\7') + QByteArray(1000, '\1');
  bytes += QCryptographicHash::hash(bytes, QCryptographicHash::Sha256);
  const auto whole = [&](const QByteArray& content) {
    return run_.write_text("made-up", content) && state_on_disk(run_.path("made-up"))->whole;
  };
  QVERIFY(whole(bytes));
  QVERIFY(!whole(bytes.chopped(1)));
  bytes[500] = '\2';
  QVERIFY(!whole(bytes));
}

void TestRoundsTorn::three_train_a_model_larger_than_the_spools_memory() {
  for (const QString& name : names_) run_.launch(name);
  for (const QString& name : names_) QCOMPARE(run_.joined(name), QByteArray());
  QVERIFY(run_.together(names_, 1));
  const auto state = state_on_disk(run_.path("a") + anchor_file);
  QVERIFY(state);
  qInfo("the state on the disk has %lld bytes", state->size);
  QVERIFY2(state->size > spool_memory, QByteArray::number(state->size).constData());
}

QByteArray TestRoundsTorn::kill_while_writing(const QString& name, bool the_anchor) {
  const qint64 pid = run_.node(name).pid();
  // Files of the spool have a name each; every new anchor has the same.
  const QSet<QString> before = the_anchor ? QSet<QString>() : large_files(pid, false);
  int samples = 1 + below(4);  // in a row in which it writes much
  qint64 written = written_by(pid);
  for (const QDeadlineTimer deadline(RoundsRun::patience_ms); samples > 0;) {
    if (deadline.hasExpired()) return "it writes nothing";
    QTest::qWait(1);
    const qint64 now = written_by(pid);
    const bool writes = now - written >= written_at_once;
    written = now;
    if (writes && !(large_files(pid, the_anchor) - before).isEmpty()) --samples;
  }
  run_.node(name).kill_now();
  return {};
}

QByteArray TestRoundsTorn::check_states() {
  for (const QString& name : names_) {
    const auto state = state_on_disk(run_.path(name) + anchor_file);
    if (!state || !state->whole) return (name + " has a torn anchor on its disk").toUtf8();
    QByteArray& known = states_[state->round];
    if (!known.isEmpty() && known != state->hash)
      return (name + " has another state of round " + QString::number(state->round)).toUtf8();
    if (!known.isEmpty()) ++compared_;
    known = state->hash;
  }
  return {};
}

void TestRoundsTorn::kills_in_the_middle_of_writes_tear_nothing() {
  const int kills = full_ ? 50 : 2;
  QElapsedTimer time;
  time.start();
  for (int i = 0; i < kills; ++i) {
    const QString name = names_[below(3)];
    QCOMPARE(kill_while_writing(name, i % 2 == 0), QByteArray());
    QCOMPARE(check_states(), QByteArray());
    const int round = run_.round(name == "a" ? "b" : "a");
    run_.launch(name);
    QCOMPARE(run_.joined(name), QByteArray());
    QVERIFY2(run_.together(names_, round), qPrintable(name));
    qInfo("kill %d of %s, after round %d: %lld s", i + 1, qPrintable(name), round, time.elapsed() / 1000);
  }
  qInfo("MEASURED kills %d, states compared %d", kills, compared_);
}

void TestRoundsTorn::all_have_one_history() {
  ChainLedger ledger(inner_steps * step_tokens);
  for (const QString& name : names_) run_.node(name).terminate();
  for (const QString& name : names_) {
    ledger.read_anchors(name, run_.certified(name));
    QFile log(run_.path(name) + "/logs/neuroshardd.log");
    QVERIFY(log.open(QIODevice::ReadOnly));
    const QByteArray said = log.readAll();
    QVERIFY2(!said.contains("fetches the state from other members"), name.toUtf8().constData());
    const ProcessResult ended = run_.node(name).finish();
    QVERIFY2(!ended.crashed && !ended.timed_out, ended.text().constData());
  }
  QCOMPARE(ledger.faults().join("; "), QString());
  QVERIFY(ledger.compared(3) >= 2);
  QCOMPARE(check_states(), QByteArray());
}

NS_TEST(TestRoundsTorn)
#include "test_rounds_torn.moc"
