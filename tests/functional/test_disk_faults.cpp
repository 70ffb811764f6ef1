// A full disk, a read-only one, a torn newest checkpoint: the run says so, loses nothing it had, and goes on
// from the newest complete checkpoint with the losses of an undisturbed run. The disks are small tmpfs mounts
// and need root.
#include <signal.h>
#include <unistd.h>

#include <QDirIterator>
#include <QTest>

#include "tests/support/small_disk.h"
#include "tests/support/test_main.h"
#include "tests/support/training_run.h"

using namespace neuroshard;        // NOLINT
using namespace neuroshard::test;  // NOLINT

namespace {

// Writes zeros until `leave` bytes are free.
void fill_disk(const QString& folder, qint64 leave) {
  QFile filler(folder + "/filler");
  QVERIFY(filler.open(QIODevice::WriteOnly | QIODevice::Unbuffered));
  const QByteArray block(64 << 10, '\0');
  while (static_cast<qint64>(std::filesystem::space(folder.toStdString()).available) > leave + block.size())
    if (filler.write(block) != block.size()) break;
}

QStringList checkpoints(const QString& directory) {
  return QDir(directory + "/checkpoints").entryList(QDir::Dirs | QDir::NoDotAndDotDot, QDir::Name);
}

}  // namespace

class TestDiskFaults : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    const QByteArray problem = lab_.prepare();
    QVERIFY2(problem.isEmpty(), problem.constData());
    lab_.copy("straight");
    const ProcessResult straight = run_node(lab_.train("straight", 150));
    QVERIFY2(straight.ok(), straight.text().constData());
    expected_ = losses_of(straight.out);
    QCOMPARE(expected_.size(), 150);
  }
  void torn_newest_checkpoint();
  void full_disk();
  void read_only_disk();

 private:
  void goes_on_as_expected(const QString& directory, qint64 at_most_after);

  TrainingLab lab_;
  LossTexts expected_;
};

// A run in `directory` prints the expected losses from some step in (1, at_most_after + 1].
void TestDiskFaults::goes_on_as_expected(const QString& directory, qint64 at_most_after) {
  const ProcessResult run = run_node(lab_.train(directory, 3));
  QVERIFY2(run.ok(), run.text().constData());
  const LossTexts losses = losses_of(run.out);
  QCOMPARE(losses.size(), 3);
  QVERIFY(losses.firstKey() <= at_most_after + 1);
  for (auto it = losses.begin(); it != losses.end(); ++it) QCOMPARE(it.value(), expected_.value(it.key()));
}

void TestDiskFaults::torn_newest_checkpoint() {
  const QString directory = lab_.copy("torn");
  const ProcessResult run = run_node(lab_.train("torn", 6));
  QVERIFY2(run.ok(), run.text().constData());
  const QStringList names = checkpoints(directory);
  QVERIFY(names.size() >= 2);

  // Half of the largest file of the newest checkpoint is gone, as after a bad disk or a careless copy.
  QString largest;
  qint64 bytes = 0;
  for (QDirIterator it(directory + "/checkpoints/" + names.last(), QDir::Files); it.hasNext();) {
    it.next();
    if (it.fileInfo().size() > bytes) {
      bytes = it.fileInfo().size();
      largest = it.filePath();
    }
  }
  QVERIFY(QFile::resize(largest, bytes / 2));

  const ProcessResult verified = run_node({"checkpoint", "verify", names.last(), "--data-dir", directory});
  QVERIFY2(!verified.ok() && !verified.crashed, verified.text().constData());
  goes_on_as_expected("torn", 6);
}

void TestDiskFaults::full_disk() {
  const QString folder = lab_.path("disk");
  SmallDisk disk(folder, 160);
  if (!disk.mounted()) QSKIP(disk.problem().constData());
  const QString directory = lab_.copy("disk/data");
  const QStringList before = checkpoints(directory);
  QVERIFY(!before.isEmpty());

  {
    NodeProcess process(lab_.train(directory, 1'000'000));
    qint64 step = 0;
    QByteArray loss;
    while (step < 3) {
      const auto line = process.next_line();
      if (!line) QFAIL(process.finish(1000).text().constData());
      read_step(*line, &step, &loss);
    }
    // Held still, so that the newest checkpoint on the full disk is one of the compared steps.
    ::kill(static_cast<pid_t>(process.pid()), SIGSTOP);
    fill_disk(folder, 0);
    ::kill(static_cast<pid_t>(process.pid()), SIGCONT);
    // Training goes on: no checkpoint can be written, and that is no reason to lose the steps in memory.
    const qint64 full_at = step;
    while (step < full_at + 8) {
      const auto line = process.next_line();
      if (!line) QFAIL(process.finish(1000).text().constData());
      if (!read_step(*line, &step, &loss)) continue;
      if (expected_.contains(step)) QCOMPARE(loss, expected_.value(step));
    }
    process.terminate();
    const ProcessResult stopped = process.finish(30'000);
    QVERIFY2(!stopped.crashed && !stopped.timed_out, stopped.text().constData());
    const QByteArray said = (stopped.out + stopped.err).toLower();
    QVERIFY2(said.contains("disk") || said.contains("space"), stopped.text().constData());
  }

  // A new start on the full disk says what is missing instead of breaking anything.
  const ProcessResult refused = run_node(lab_.train(directory, 1));
  QVERIFY2(!refused.ok() && !refused.crashed, refused.text().constData());
  QVERIFY2(refused.err.toLower().contains("space") || refused.err.toLower().contains("disk"),
           refused.text().constData());

  QVERIFY(QFile::remove(folder + "/filler"));
  goes_on_as_expected(directory, expected_.lastKey() - 4);
}

void TestDiskFaults::read_only_disk() {
  const QString folder = lab_.path("readonly");
  SmallDisk disk(folder, 160);
  if (!disk.mounted()) QSKIP(disk.problem().constData());
  const QString directory = lab_.copy("readonly/data");
  const QStringList before = checkpoints(directory);
  QVERIFY(disk.remount(true));

  const ProcessResult refused = run_node(lab_.train(directory, 2));
  QVERIFY2(!refused.ok() && !refused.crashed && !refused.timed_out, refused.text().constData());
  QVERIFY2(refused.err.contains(directory.toUtf8()),
           refused.text().constData());  // names what can't be written
  QCOMPARE(checkpoints(directory), before);

  QVERIFY(disk.remount(false));
  goes_on_as_expected(directory, 1);
}

NS_TEST(TestDiskFaults)
#include "test_disk_faults.moc"
