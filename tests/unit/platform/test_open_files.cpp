// The limit of open files, in children that begin with another one.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <unistd.h>

#include <QtTest>
#include <algorithm>
#include <vector>

#include "core/platform/process/open_files.h"
#include "tests/support/test_main.h"

using namespace neuroshard;

namespace {

constexpr rlim_t most = 65536;

// The soft limit in the end of a child that begins with this one; 0: it could not tell. The hard limit of a
// child may only be lower than this process's.
rlim_t raised_from(const rlimit& begin) {
  int ends[2];
  if (::pipe(ends) != 0) return 0;
  const pid_t process = ::fork();
  if (process == 0) {
    rlimit now{};
    if (::setrlimit(RLIMIT_NOFILE, &begin) == 0) {
      platform::raise_open_file_limit();
      ::getrlimit(RLIMIT_NOFILE, &now);
    }
    ::_exit(::write(ends[1], &now.rlim_cur, sizeof now.rlim_cur) < 0 ? 1 : 0);
  }
  ::close(ends[1]);
  rlim_t found = 0;
  const bool told = ::read(ends[0], &found, sizeof found) == static_cast<ssize_t>(sizeof found);
  ::close(ends[0]);
  ::waitpid(process, nullptr, 0);
  return told ? found : 0;
}

}  // namespace

class TestOpenFiles : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void the_soft_limit_becomes_the_hard_one() {
    rlimit own{};
    QVERIFY(::getrlimit(RLIMIT_NOFILE, &own) == 0);
    QCOMPARE(raised_from({64, own.rlim_max}), std::min(own.rlim_max, most));
    QCOMPARE(raised_from({64, 128}), rlim_t{128});
  }

  void the_limit_is_told() {
    rlimit own{};
    QVERIFY(::getrlimit(RLIMIT_NOFILE, &own) == 0);
    const rlimit narrow{256, own.rlim_max};
    QVERIFY(::setrlimit(RLIMIT_NOFILE, &narrow) == 0);
    const std::size_t told = platform::open_file_limit();
    ::setrlimit(RLIMIT_NOFILE, &own);
    QCOMPARE(told, std::size_t{256});
  }

  void select_is_not_used_with_many_files() {
    QVERIFY(platform::next_file_suits_select());
    std::vector<int> held;
    int last = 0;
    while (last >= 0 && last < FD_SETSIZE * 3 / 4) {
      last = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
      if (last >= 0) held.push_back(last);
    }
    const bool suits = platform::next_file_suits_select();
    for (const int file : held) ::close(file);
    QVERIFY(!suits);
    QVERIFY(platform::next_file_suits_select());
  }

  void connections_leave_low_numbers_free() {
    rlimit own{};
    QVERIFY(::getrlimit(RLIMIT_NOFILE, &own) == 0);
    const bool has_high = own.rlim_max >= FD_SETSIZE + 2;
    const rlimit wide{has_high ? std::max<rlim_t>(own.rlim_cur, FD_SETSIZE + 2) : own.rlim_cur, own.rlim_max};
    QVERIFY(::setrlimit(RLIMIT_NOFILE, &wide) == 0);
    const int low = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    const int other = platform::duplicate_high(low), moved = platform::move_high(low);
    const bool low_is_free = ::fcntl(low, F_GETFD) < 0 || moved == low;
    ::close(other);
    ::close(moved);
    ::setrlimit(RLIMIT_NOFILE, &own);
    QVERIFY(low >= 0 && other >= 0 && low_is_free);
    QCOMPARE(other >= FD_SETSIZE, has_high);
    QCOMPARE(moved >= FD_SETSIZE, has_high);
  }

  void a_higher_limit_stays() {
    rlimit own{};
    QVERIFY(::getrlimit(RLIMIT_NOFILE, &own) == 0);
    QCOMPARE(raised_from({own.rlim_max, own.rlim_max}), own.rlim_max);
  }
};

NS_TEST(TestOpenFiles)
#include "test_open_files.moc"
