// The memory of neuroshardd stays private: no core dump when it crashes, and no reading of its memory by
// other programs of its user. The same program with NEUROSHARD_INSPECTABLE=1 shows that the test would see both.
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <QDir>
#include <QFileInfo>
#include <QTemporaryDir>
#include <QTest>
#include <array>

#include "tests/support/process.h"
#include "tests/support/test_main.h"

using namespace neuroshard::test;  // NOLINT

namespace {

constexpr uid_t somebody = 65534;

// The user that the program runs as: not root, whom nothing is hidden from.
uid_t user() {
  return geteuid() == 0 ? somebody : geteuid();
}

}  // namespace

class TestPrivateMemory : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase();
  void crash_leaves_no_core_dump();
  void memory_is_closed_to_the_user();

 private:
  // "wallet restore", which waits for the words, in a folder of its own and with core dumps of any size
  // permitted. 0: it did not start.
  pid_t start(const QString& name, bool inspectable);
  uid_t owner_of_memory(pid_t process) const {
    struct stat info {};
    const QByteArray path = "/proc/" + QByteArray::number(process) + "/mem";
    return ::stat(path.constData(), &info) == 0 ? info.st_uid : uid_t(-1);
  }
  // Whether the kernel wrote a core dump.
  bool crash(pid_t process) {
    ::kill(process, SIGSEGV);
    int status = 0;
    if (::waitpid(process, &status, 0) != process) return false;
    ::close(input_);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV && WCOREDUMP(status);
  }

  QTemporaryDir folder_;
  int input_ = -1;  // of the program, to be closed
};

void TestPrivateMemory::initTestCase() {
  QVERIFY2(QFileInfo(node_program()).isExecutable(), qPrintable(node_program()));
  QVERIFY(::chmod(folder_.path().toLocal8Bit().constData(), 0777) == 0);
}

pid_t TestPrivateMemory::start(const QString& name, bool inspectable) {
  const QByteArray place = folder_.filePath(name).toLocal8Bit();
  if (::mkdir(place.constData(), 0700) != 0 || ::chown(place.constData(), user(), gid_t(-1)) != 0) return 0;
  const QByteArray program = node_program().toLocal8Bit();
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return 0;
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit any{RLIM_INFINITY, RLIM_INFINITY};
    ::dup2(ends[0], 0);
    ::close(ends[1]);
    const bool ready = ::setrlimit(RLIMIT_CORE, &any) == 0 && ::chdir(place.constData()) == 0 &&
                       ::setenv("NEUROSHARD_INSPECTABLE", inspectable ? "1" : "0", 1) == 0 &&
                       (geteuid() != 0 || ::setuid(somebody) == 0);
    if (ready) {
      ::execl(program.constData(), program.constData(), "wallet", "restore", "--from", "-", "--data-dir", "d",
              nullptr);
    }
    ::_exit(1);
  }
  ::close(ends[0]);
  input_ = ends[1];
  // It has begun when it holds its data directory.
  const QString lock = QString::fromLocal8Bit(place) + "/d/lock";
  for (int i = 0; i < 200 && !QFileInfo::exists(lock); ++i) QTest::qWait(50);
  return QFileInfo::exists(lock) ? child : 0;
}

void TestPrivateMemory::crash_leaves_no_core_dump() {
  const pid_t open = start("open", true);
  QVERIFY(open > 0);
  if (!crash(open)) QSKIP("this machine writes no core dumps");
  const pid_t closed = start("closed", false);
  QVERIFY(closed > 0);
  QVERIFY(!crash(closed));
  QCOMPARE(QDir(folder_.filePath("closed")).entryList(QDir::Files), QStringList{});
}

void TestPrivateMemory::memory_is_closed_to_the_user() {
  const pid_t open = start("readable", true);
  QVERIFY(open > 0);
  QCOMPARE(owner_of_memory(open), user());
  crash(open);
  const pid_t closed = start("unreadable", false);
  QVERIFY(closed > 0);
  QCOMPARE(owner_of_memory(closed), uid_t{0});
  crash(closed);
}

NS_TEST(TestPrivateMemory)
#include "test_private_memory.moc"
