// The memory limit is real: at several limits the run adapts or says what is missing, its resident size never
// passes limit + 5 %, and nobody kills it. A watchdog samples the resident size; where a memory cgroup can be
// made, the process also runs inside one of limit + 5 %, where exceeding it is fatal. NS_LONG=1: the profile
// solo at its real size.
#include <QElapsedTimer>
#include <QTest>

#include "tests/support/test_main.h"
#include "tests/support/training_run.h"

using namespace neuroshard;        // NOLINT
using namespace neuroshard::test;  // NOLINT

namespace {

constexpr qint64 mib = 1 << 20;

// A memory cgroup (version 1 or 2) of its own, gone with the object.
class MemoryCgroup {
 public:
  explicit MemoryCgroup(qint64 limit) {
    for (const char* root : {"/sys/fs/cgroup/memory", "/sys/fs/cgroup"}) {
      const bool first_version = QString(root).endsWith("memory");
      const QString folder =
          QString("%1/neuroshard-test-%2").arg(root).arg(QCoreApplication::applicationPid());
      if (!QDir().mkdir(folder)) continue;
      if (write(folder + (first_version ? "/memory.limit_in_bytes" : "/memory.max"),
                QByteArray::number(limit))) {
        folder_ = folder;
        return;
      }
      QDir().rmdir(folder);
    }
  }
  ~MemoryCgroup() {
    if (usable()) QDir().rmdir(folder_);
  }
  MemoryCgroup(const MemoryCgroup&) = delete;
  MemoryCgroup& operator=(const MemoryCgroup&) = delete;

  bool usable() const { return !folder_.isEmpty(); }
  // For the shell that moves itself inside and then becomes the program.
  QString processes_file() const { return folder_ + "/cgroup.procs"; }

 private:
  static bool write(const QString& path, const QByteArray& text) {
    QFile file(path);
    return file.open(QIODevice::WriteOnly | QIODevice::Unbuffered) && file.write(text) == text.size();
  }
  QString folder_;
};

struct LimitedRun {
  ProcessResult result;
  qint64 peak = 0;
  int micro_batch = 0;
  bool in_cgroup = false;
};

}  // namespace

class TestMemoryLimit : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    const QByteArray problem = lab_.prepare();
    QVERIFY2(problem.isEmpty(), problem.constData());
  }
  void runs_inside_every_limit();
  void a_hopeless_limit_is_refused_in_words();

 private:
  LimitedRun run(const QString& directory, qint64 limit, int steps);

  const bool full_ = qEnvironmentVariableIsSet("NS_LONG");
  // Wide enough that a micro-batch is felt: a few MiB per sequence.
  using Shape = QMap<QString, QString>;
  TrainingLab lab_{full_ ? Shape{{"layers", "6"},
                                 {"hidden", "256"},
                                 {"head-dim", "64"},
                                 {"experts", "8"},
                                 {"sequence", "256"},
                                 {"batch-tokens", "4096"}}
                         : Shape{{"hidden", "128"}, {"sequence", "128"}, {"batch-tokens", "1024"}}};
};

LimitedRun TestMemoryLimit::run(const QString& directory, qint64 limit, int steps) {
  LimitedRun run;
  const MemoryCgroup cgroup(limit + limit / 20);
  run.in_cgroup = cgroup.usable();
  QStringList arguments = lab_.train(directory, steps);
  if (limit != 0) arguments += {"--memory-limit", QString::number(limit)};
  NodeProcess process(arguments, {}, run.in_cgroup && limit != 0 ? cgroup.processes_file() : QString());
  QElapsedTimer clock;
  clock.start();
  while (process.running() && clock.elapsed() < 600'000) {
    const auto line = process.next_line(5);
    run.peak = qMax(run.peak, peak_resident(process.pid()));
    if (!line) continue;
    const QJsonObject object = QJsonDocument::fromJson(*line).object();
    if (object.contains("micro_batch")) run.micro_batch = object["micro_batch"].toInt();
  }
  run.result = process.finish(1000);
  return run;
}

void TestMemoryLimit::runs_inside_every_limit() {
  const int steps = full_ ? 12 : 4;
  lab_.copy("free");
  const LimitedRun free = run("free", 0, steps);
  QVERIFY2(free.result.ok(), free.result.text().constData());
  QVERIFY(free.peak > 0);
  qInfo("MEASURED no limit: peak resident %lld MiB, micro-batch %d", free.peak / mib, free.micro_batch);

  // Room to spare, a limit that asks for small micro-batches, and less than the program itself needs.
  int adapted = 0;
  const double shares[] = {3.0, 1.5, 0.85};
  for (const double share : shares) {
    const QString name = QString("limit-%1").arg(share * 100);
    lab_.copy(name);
    const qint64 limit = static_cast<qint64>(static_cast<double>(free.peak) * share);
    const LimitedRun limited = run(name, limit, steps);
    QVERIFY2(!limited.result.crashed && !limited.result.timed_out, limited.result.text().constData());
    QVERIFY2(limited.peak <= limit + limit / 20, QString("peak %1 MiB over the limit of %2 MiB")
                                                     .arg(limited.peak / mib)
                                                     .arg(limit / mib)
                                                     .toUtf8()
                                                     .constData());
    if (limited.result.ok()) {
      ++adapted;
      QCOMPARE(losses_of(limited.result.out).size(), steps);
    } else {
      QVERIFY2(limited.result.err.contains("MiB") || limited.result.err.contains("MB"),
               limited.result.text().constData());
    }
    qInfo("MEASURED limit %lld MiB: peak resident %lld MiB (%.1f %% of the limit), micro-batch %d, %s%s",
          limit / mib, limited.peak / mib,
          100.0 * static_cast<double>(limited.peak) / static_cast<double>(limit), limited.micro_batch,
          limited.result.ok() ? "trained" : "refused with the missing amount",
          limited.in_cgroup ? ", in a cgroup" : "");
  }
  QVERIFY(adapted >= 2);
}

void TestMemoryLimit::a_hopeless_limit_is_refused_in_words() {
  lab_.copy("hopeless");
  const LimitedRun refused = run("hopeless", 48 * mib, 2);
  QVERIFY2(!refused.result.ok() && !refused.result.crashed && !refused.result.timed_out,
           refused.result.text().constData());
  const QByteArray said = refused.result.err.toLower();
  QVERIFY2(said.contains("memory") && said.contains("mi"), refused.result.text().constData());
}

NS_TEST(TestMemoryLimit)
#include "test_memory_limit.moc"
