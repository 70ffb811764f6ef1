// No core dumps and no inspection: of a child that asks for it, and as a control of one that does not.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <QTemporaryDir>
#include <QtTest>
#include <functional>
#include <memory>

#include "core/platform/process/memory_privacy.h"
#include "tests/support/test_main.h"

using namespace neuroshard;

namespace {

constexpr uid_t somebody = 65534;

// A child in `folder`, of an ordinary user, that may dump core of any size, does `first`, and then `last`.
pid_t child(const QString& folder, const std::function<void()>& first, const std::function<void()>& last) {
  const pid_t process = ::fork();
  if (process != 0) return process;
  const rlimit any{RLIM_INFINITY, RLIM_INFINITY};
  const bool ready = ::setrlimit(RLIMIT_CORE, &any) == 0 && ::chdir(folder.toLocal8Bit().constData()) == 0 &&
                     (::geteuid() != 0 || ::setuid(somebody) == 0);
  // A change of user closes a process; a program that begins is open.
  if (!ready || ::prctl(PR_SET_DUMPABLE, 1) != 0) ::_exit(1);
  first();
  last();
  ::_exit(0);
}

}  // namespace

class TestMemoryPrivacy : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init() {
    folder_ = std::make_unique<QTemporaryDir>();
    QVERIFY(::chmod(folder_->path().toLocal8Bit().constData(), 0777) == 0);
  }

  void crash_leaves_no_core_dump() {
    if (!dumps([] {})) QSKIP("this machine writes no core dumps");
    QVERIFY(!dumps([] { platform::forbid_core_dumps(); }));
    QVERIFY(!dumps([] { platform::forbid_inspection(); }));
  }

  void a_limit_of_nothing_stays() {
    int status = 0;
    const pid_t process = child(
        folder_->path(),
        [] {
          const rlimit none{0, 0};
          ::setrlimit(RLIMIT_CORE, &none);
          platform::forbid_core_dumps();
        },
        [] {
          rlimit now{};
          ::getrlimit(RLIMIT_CORE, &now);
          ::_exit(now.rlim_cur == 0 && now.rlim_max == 0 ? 0 : 2);
        });
    QCOMPARE(::waitpid(process, &status, 0), process);
    QCOMPARE(status, 0);
  }

  void memory_is_closed_to_the_user() {
    const uid_t user = ::geteuid() == 0 ? somebody : ::geteuid();
    QCOMPARE(owner_of_memory([] {}), user);
    QCOMPARE(owner_of_memory([] { platform::forbid_inspection(); }), uid_t{0});
  }

 private:
  bool dumps(const std::function<void()>& first) {
    const pid_t process = child(folder_->path(), first, [] {
      ::signal(SIGSEGV, SIG_DFL);
      ::raise(SIGSEGV);
    });
    int status = 0;
    return ::waitpid(process, &status, 0) == process && WIFSIGNALED(status) && WCOREDUMP(status);
  }
  uid_t owner_of_memory(const std::function<void()>& first) {
    int ready[2];
    if (::pipe(ready) != 0) return uid_t(-1);
    const pid_t process = child(folder_->path(), first, [&ready] {
      static_cast<void>(::write(ready[1], "1", 1));
      ::pause();
    });
    char made = 0;
    ::close(ready[1]);
    const bool begun = ::read(ready[0], &made, 1) == 1;
    ::close(ready[0]);
    struct stat info {};
    const QByteArray path = "/proc/" + QByteArray::number(process) + "/mem";
    const bool found = begun && ::stat(path.constData(), &info) == 0;
    ::kill(process, SIGKILL);
    ::waitpid(process, nullptr, 0);
    return found ? info.st_uid : uid_t(-1);
  }

  std::unique_ptr<QTemporaryDir> folder_;
};

NS_TEST(TestMemoryPrivacy)
#include "test_memory_privacy.moc"
