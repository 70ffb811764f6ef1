// One process owns a data directory at a time, and the lock dies with its owner.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <QFile>
#include <QTemporaryDir>
#include <QtTest>
#include <thread>

#include "core/platform/file/directory_lock.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::platform;

class TestDirectoryLock : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void held_lock_is_busy_and_names_the_holder();
  void a_lock_of_a_moment_is_waited_for();
  void another_process_is_kept_out_and_a_killed_one_lets_go();
  void a_leftover_file_is_not_a_lock();
  void moving_keeps_the_lock();
  void missing_directory();
};

namespace {

// A child that takes the lock, says so on a pipe and waits to be killed.
class Holder {
 public:
  explicit Holder(const std::string& directory) {
    int ready[2];
    if (pipe(ready) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      ManualClock clock;
      const auto lock = DirectoryLock::acquire(directory, clock);
      const char answer = lock.ok() ? 'y' : 'n';
      const ssize_t written = write(ready[1], &answer, 1);
      static_cast<void>(written);
      for (;;) pause();
    }
    char answer = 0;
    holds_ = read(ready[0], &answer, 1) == 1 && answer == 'y';
    close(ready[0]);
    close(ready[1]);
  }
  ~Holder() { end(); }
  void end() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  pid_t pid() const { return pid_; }
  bool holds() const { return holds_; }

 private:
  pid_t pid_ = 0;
  bool holds_ = false;
};

}  // namespace

void TestDirectoryLock::held_lock_is_busy_and_names_the_holder() {
  const QTemporaryDir directory;
  const std::string path = directory.path().toStdString();
  ManualClock clock;
  {
    const auto lock = DirectoryLock::acquire(path, clock);
    QVERIFY(lock.ok());
    QCOMPARE(read_lock_holder(path).pid, std::int64_t{getpid()});
    QCOMPARE(to_unix_ms(read_lock_holder(path).started), to_unix_ms(clock.wall_now()));
    const auto second = DirectoryLock::acquire(path, clock);
    QVERIFY(!second.ok());
    QCOMPARE(second.error().code, ErrorCode::Busy);
    const QString message = QString::fromStdString(second.error().message);
    QVERIFY2(message.contains(QString("process %1 ").arg(getpid())), qPrintable(message));
    QVERIFY2(message.contains("2023-11-14 22:13:20"), qPrintable(message));
  }
  QVERIFY(DirectoryLock::acquire(path, clock).ok());
}

// A command may look at a directory while its node starts anew.
void TestDirectoryLock::a_lock_of_a_moment_is_waited_for() {
  const QTemporaryDir directory;
  const std::string path = directory.path().toStdString();
  const SystemClock clock;
  auto held = DirectoryLock::acquire(path, clock);
  QVERIFY(held.ok());
  QCOMPARE(DirectoryLock::acquire(path, clock, std::chrono::milliseconds(100)).error().code, ErrorCode::Busy);
  std::thread other([lock = std::move(*held)]() mutable { const DirectoryLock end = std::move(lock); });
  const auto waited = DirectoryLock::acquire(path, clock, std::chrono::minutes(1));
  other.join();
  QVERIFY2(waited.ok(), waited.ok() ? "" : waited.error().message.c_str());
}

void TestDirectoryLock::another_process_is_kept_out_and_a_killed_one_lets_go() {
  const QTemporaryDir directory;
  const std::string path = directory.path().toStdString();
  ManualClock clock;
  Holder holder(path);
  QVERIFY(holder.holds());
  const auto refused = DirectoryLock::acquire(path, clock);
  QVERIFY(!refused.ok());
  QCOMPARE(refused.error().code, ErrorCode::Busy);
  QVERIFY(refused.error().message.find(std::to_string(holder.pid())) != std::string::npos);
  holder.end();
  QVERIFY(DirectoryLock::acquire(path, clock).ok());
}

void TestDirectoryLock::a_leftover_file_is_not_a_lock() {
  const QTemporaryDir directory;
  QFile file(directory.filePath("lock"));
  QVERIFY(file.open(QIODevice::WriteOnly));
  file.write(
      "pid 1\nstarted 5\nand some more that an older owner left behind, longer than what is written now\n");
  file.close();
  ManualClock clock;
  const auto lock = DirectoryLock::acquire(directory.path().toStdString(), clock);
  QVERIFY(lock.ok());
  QCOMPARE(read_lock_holder(directory.path().toStdString()).pid, std::int64_t{getpid()});
  QVERIFY(file.open(QIODevice::ReadOnly));
  QVERIFY(!file.readAll().contains("older owner"));
}

void TestDirectoryLock::moving_keeps_the_lock() {
  const QTemporaryDir directory;
  const std::string path = directory.path().toStdString();
  ManualClock clock;
  DirectoryLock first = DirectoryLock::acquire(path, clock).value();
  DirectoryLock second = std::move(first);
  QVERIFY(!DirectoryLock::acquire(path, clock).ok());
  const QTemporaryDir other;
  second = DirectoryLock::acquire(other.path().toStdString(), clock).value();
  QVERIFY(DirectoryLock::acquire(path, clock).ok());
}

void TestDirectoryLock::missing_directory() {
  ManualClock clock;
  const auto lock = DirectoryLock::acquire("/nonexistent/neuroshard", clock);
  QVERIFY(!lock.ok());
  QCOMPARE(lock.error().code, ErrorCode::NotFound);
  QCOMPARE(read_lock_holder("/nonexistent/neuroshard").pid, std::int64_t{0});
}

NS_TEST(TestDirectoryLock)
#include "test_directory_lock.moc"
