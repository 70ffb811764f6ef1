// A crash leaves a note that the next start can read, and the process still dies of its signal.
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <QDir>
#include <QFile>
#include <QTemporaryDir>
#include <QtTest>

#include "core/platform/process/crash_record.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::platform;

class TestCrashRecord : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_fatal_signal_is_recorded_data();
  void a_fatal_signal_is_recorded();
  void stack_overflow_is_recorded();
  void a_clean_end_leaves_nothing();
  void newest_ten_are_kept();
  void a_crash_after_the_clock_was_set_back_is_told();
  void what_older_versions_told_is_not_told_again();
  void strange_files_are_left_alone();
};

namespace {

// Runs `crash` in a child that records, and returns the signal that ended the child.
template <class Crash>
int crash_in_child(const std::string& directory, Crash crash) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    const auto recorder = CrashRecorder::install(directory, "neuroshardd 0.1 test\nsecond line");
    if (!recorder.ok()) _exit(1);
    // The test program's own handlers are the ones being replaced: nothing but ours runs.
    crash();
    _exit(2);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

volatile int sink = 0;

__attribute__((noinline)) int overflow_stack(int depth) {
  volatile char frame[4096];
  frame[0] = static_cast<char>(depth);
  if (depth < 1'000'000'000) sink = overflow_stack(depth + 1) + frame[0];
  return sink;
}

void write_record(const QString& path, int second) {
  QFile file(path);
  QVERIFY(file.open(QIODevice::WriteOnly));
  file.write(QString("neuroshard crash 1\nsignal 11\ntime %1\npid 5\naddress 16\ncounter 32\nbuild b\n")
                 .arg(second * 1000)
                 .toUtf8());
}

}  // namespace

void TestCrashRecord::a_fatal_signal_is_recorded_data() {
  QTest::addColumn<int>("number");
  QTest::addColumn<QString>("name");
  QTest::newRow("segv") << SIGSEGV << "SIGSEGV";
  QTest::newRow("bus") << SIGBUS << "SIGBUS";
  QTest::newRow("fpe") << SIGFPE << "SIGFPE";
  QTest::newRow("ill") << SIGILL << "SIGILL";
  QTest::newRow("abrt") << SIGABRT << "SIGABRT";
}

void TestCrashRecord::a_fatal_signal_is_recorded() {
  QFETCH(int, number);
  QFETCH(QString, name);
  const QTemporaryDir directory;
  const std::string crash = directory.filePath("crash").toStdString();
  QCOMPARE(
      crash_in_child(crash, [number] { number == SIGABRT ? abort() : static_cast<void>(raise(number)); }),
      number);
  const auto records = read_crash_records(crash, {});
  QCOMPARE(records.size(), std::size_t{1});
  QCOMPARE(QString::fromStdString(records[0].signal), name);
  QCOMPARE(records[0].build, std::string("neuroshardd 0.1 test"));
  QVERIFY(records[0].pid > 0);
  QVERIFY(std::abs(to_unix_ms(records[0].time) - QDateTime::currentMSecsSinceEpoch()) < 60'000);
  struct stat info {};
  QCOMPARE(stat((crash + "/" + records[0].file).c_str(), &info), 0);
  QCOMPARE(info.st_mode & 0777u, 0600u);
  QCOMPARE(stat(crash.c_str(), &info), 0);
  QCOMPARE(info.st_mode & 0777u, 0700u);
}

void TestCrashRecord::stack_overflow_is_recorded() {
  const QTemporaryDir directory;
  const std::string crash = directory.filePath("crash").toStdString();
  QCOMPARE(crash_in_child(crash, [] { overflow_stack(0); }), SIGSEGV);
  const auto records = read_crash_records(crash, {});
  QCOMPARE(records.size(), std::size_t{1});
  QVERIFY(records[0].address != 0);
  QVERIFY(records[0].program_counter != 0);
}

void TestCrashRecord::a_clean_end_leaves_nothing() {
  const QTemporaryDir directory;
  const std::string crash = directory.filePath("crash").toStdString();
  {
    const auto recorder = CrashRecorder::install(crash, "b");
    QVERIFY(recorder.ok());
    const auto second = CrashRecorder::install(crash, "b");
    QVERIFY(!second.ok());
    QCOMPARE(second.error().code, ErrorCode::Busy);
  }
  QVERIFY(read_crash_records(crash, {}).empty());
  QVERIFY(CrashRecorder::install(crash, "b").ok());
  QVERIFY(!CrashRecorder::install("/nonexistent/crash", "b").ok());
}

void TestCrashRecord::newest_ten_are_kept() {
  const QTemporaryDir directory;
  for (int i = 10; i < 25; ++i)
    write_record(directory.filePath(QString("crash-0000000000%1-5.txt").arg(i)), i);
  const auto records = read_crash_records(directory.path().toStdString(), {});
  QCOMPARE(records.size(), kept_crash_records);
  QCOMPARE(to_unix_ms(records.front().time), std::int64_t{24'000});
  QCOMPARE(to_unix_ms(records.back().time), std::int64_t{15'000});
  QCOMPARE(records.front().address, std::uint64_t{16});
  QCOMPARE(records.front().program_counter, std::uint64_t{32});
  QCOMPARE(QDir(directory.path()).entryList(QDir::Files).size(), 10);
}

// Its name sorts as that of an old record.
void TestCrashRecord::a_crash_after_the_clock_was_set_back_is_told() {
  const QTemporaryDir directory;
  const std::string folder = directory.path().toStdString();
  for (int i = 10; i < 20; ++i)
    write_record(directory.filePath(QString("crash-0000000000%1-5.txt").arg(i)), i);
  auto records = read_crash_records(folder, {});
  QCOMPARE(untold_crashes(records, "").size(), kept_crash_records);
  const std::string told = told_crashes(records);
  QVERIFY(untold_crashes(records, told).empty());

  write_record(directory.filePath("crash-000000000001-5.txt"), 1);
  records = read_crash_records(folder, told);
  QCOMPARE(records.size(), kept_crash_records);
  const auto untold = untold_crashes(records, told);
  QCOMPARE(untold.size(), std::size_t{1});
  QCOMPARE(untold[0].file, std::string("crash-000000000001-5.txt"));
  QVERIFY(untold_crashes(records, told_crashes(records)).empty());
}

// One name, without the end of the line.
void TestCrashRecord::what_older_versions_told_is_not_told_again() {
  std::vector<CrashRecord> records(3);
  for (std::size_t i = 0; i < records.size(); ++i) records[i].file = "crash-" + std::to_string(3 - i);
  const auto untold = untold_crashes(records, "crash-2");
  QCOMPARE(untold.size(), std::size_t{1});
  QCOMPARE(untold[0].file, std::string("crash-3"));
  QCOMPARE(told_crashes(records), std::string("crash-3\ncrash-2\ncrash-1\n"));
}

void TestCrashRecord::strange_files_are_left_alone() {
  const QTemporaryDir directory;
  for (const char* name : {"crash-notes.txt", "readme"}) {
    QFile file(directory.filePath(name));
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write("mine");
  }
  QVERIFY(read_crash_records(directory.path().toStdString(), {}).empty());
  QCOMPARE(QDir(directory.path()).entryList(QDir::Files).size(), 2);
  QVERIFY(read_crash_records("/nonexistent/crash", {}).empty());
}

NS_TEST(TestCrashRecord)
#include "test_crash_record.moc"
