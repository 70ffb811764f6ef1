// Stop signals that can be read, and programs that are asked to end.
#include <unistd.h>

#include <atomic>
#include <csignal>

#include <QFile>
#include <QProcess>
#include <QSocketNotifier>
#include <QTemporaryDir>
#include <QtTest>

#include "core/platform/file/directory_lock.h"
#include "core/platform/process/input_end.h"
#include "core/platform/process/process_control.h"
#include "core/platform/process/stop_pipe.h"
#include "core/platform/process/stop_signals.h"
#include "tests/support/test_main.h"

using namespace neuroshard::platform;  // NOLINT
using neuroshard::ErrorCode;

class TestStop : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void signals_can_be_read();
  void ignored_signals_stay_ignored();
  void one_at_a_time();
  void a_process_is_asked_to_end();
  void only_that_very_process();
  void a_process_that_the_system_hides_may_live();
  void a_hidden_process_is_asked_to_end_while_it_has_the_lock();
  void the_end_of_the_input_is_told();
  void an_open_input_is_no_end();
};

void TestStop::signals_can_be_read() {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    std::signal(signal, SIG_DFL);  // whatever started the test
    const auto pipe = StopPipe::install();
    QVERIFY(pipe.ok());
    QSocketNotifier notifier(pipe->descriptor(), QSocketNotifier::Read);
    int told = 0;
    connect(&notifier, &QSocketNotifier::activated, this, [&] {
      ++told;
      notifier.setEnabled(false);
    });
    QCoreApplication::processEvents();
    QCOMPARE(told, 0);
    QCOMPARE(std::raise(signal), 0);
    QTRY_COMPARE(told, 1);
  }
}

void TestStop::ignored_signals_stay_ignored() {
  for (const int signal : {SIGINT, SIGHUP}) {
    std::signal(signal, SIG_IGN);
    const sigset_t caught = stop_signals();
    QCOMPARE(sigismember(&caught, signal), 0);
    QCOMPARE(sigismember(&caught, SIGTERM), 1);
    {
      const auto pipe = StopPipe::install();
      QVERIFY(pipe.ok());
      QCOMPARE(std::raise(signal), 0);
      char byte = 0;
      QCOMPARE(read(pipe->descriptor(), &byte, 1), ssize_t{-1});  // nothing is in it
      QCOMPARE(std::raise(SIGTERM), 0);
      QCOMPARE(read(pipe->descriptor(), &byte, 1), ssize_t{1});
    }
    QCOMPARE(std::raise(signal), 0);  // this program still lives
    std::signal(signal, SIG_DFL);
  }
}

void TestStop::one_at_a_time() {
  {
    const auto first = StopPipe::install();
    QVERIFY(first.ok());
    QCOMPARE(StopPipe::install().error().code, ErrorCode::Busy);
  }
  QVERIFY(StopPipe::install().ok());
}

void TestStop::a_process_is_asked_to_end() {
  QProcess child;
  child.setChildProcessModifier([] { leave_session(); });
  child.start("sleep", {"600"});
  QVERIFY(child.waitForStarted());
  const auto process = find_process(child.processId());
  QVERIFY(process.has_value());
  QVERIFY(ask_to_end(*process, {}).ok());
  QVERIFY(child.waitForFinished());
  QCOMPARE(ask_to_end(*process, {}).error().code, ErrorCode::NotFound);
}

void TestStop::only_that_very_process() {
  QProcess child;
  child.start("sleep", {"600"});
  QVERIFY(child.waitForStarted());
  auto process = find_process(child.processId());
  QVERIFY(process.has_value());
  process->start += 1;  // another one had this number before
  QCOMPARE(ask_to_end(*process, {}).error().code, ErrorCode::NotFound);
  QCOMPARE(child.state(), QProcess::Running);
  child.kill();
  QVERIFY(child.waitForFinished());
}

// As with hidepid: nothing of the process is in /proc.
void TestStop::a_process_that_the_system_hides_may_live() {
  QTemporaryDir hidden;
  const std::string proc = hidden.path().toStdString();
  QProcess child;
  child.start("sleep", {"600"});
  QVERIFY(child.waitForStarted());
  const auto process = find_process(child.processId());
  QVERIFY(process.has_value());
  ProcessIdentity other = *process;
  other.start += 1;
  QVERIFY(may_live(*process));
  QVERIFY(may_live({process->pid, 0}));
  QVERIFY(!may_live(other));
  QVERIFY(may_live(*process, proc));
  QVERIFY(may_live(other, proc));
  child.kill();
  QVERIFY(child.waitForFinished());
  QVERIFY(!may_live(*process));
  QVERIFY(!may_live(*process, proc));
  QVERIFY(!may_live({0, 0}, proc));
}

void TestStop::a_hidden_process_is_asked_to_end_while_it_has_the_lock() {
  const QTemporaryDir hidden, data;
  const std::string proc = hidden.path().toStdString(), directory = data.path().toStdString();
  QProcess child;
  child.start("sleep", {"600"});
  QVERIFY(child.waitForStarted());
  const auto process = find_process(child.processId());
  QVERIFY(process.has_value());
  const auto enter_it = [&] {
    QFile entry(data.filePath("lock"));
    const QByteArray text = "pid " + QByteArray::number(child.processId()) + "\nstarted 0\n";
    return entry.open(QIODevice::WriteOnly) && entry.write(text) == text.size();
  };
  QCOMPARE(ask_to_end(*process, directory, proc).error().code, ErrorCode::Denied);
  QVERIFY(enter_it());  // left behind
  QCOMPARE(ask_to_end(*process, directory, proc).error().code, ErrorCode::Denied);
  neuroshard::ManualClock clock;
  const auto lock = DirectoryLock::acquire(directory, clock);
  QVERIFY(lock.ok());  // another process has it: this one
  QCOMPARE(ask_to_end(*process, directory, proc).error().code, ErrorCode::Denied);
  QCOMPARE(child.state(), QProcess::Running);
  QVERIFY(enter_it());
  QVERIFY(ask_to_end(*process, directory, proc).ok());
  QVERIFY(child.waitForFinished());
  QCOMPARE(ask_to_end(*process, directory, proc).error().code, ErrorCode::NotFound);
}

void TestStop::the_end_of_the_input_is_told() {
  auto pipe = StreamSocket::pair();
  QVERIFY(pipe.ok());
  std::atomic<int> ended = 0, late = 0;
  const auto watch = InputEnd::watch(
      pipe->second.descriptor(), [&] { ++ended; }, std::chrono::milliseconds(1), [&] { ++late; });
  QVERIFY(watch.ok());
  const std::uint8_t byte = 1;
  QVERIFY(pipe->first.write_some(neuroshard::ByteSpan(&byte, 1)).ok());
  pipe->first.close();
  QTRY_COMPARE(ended.load(), 1);
  QTRY_COMPARE(late.load(), 1);  // this watch still lives
}

void TestStop::an_open_input_is_no_end() {
  auto pipe = StreamSocket::pair();
  QVERIFY(pipe.ok());
  std::atomic<int> calls = 0;
  {
    const auto watch = InputEnd::watch(
        pipe->second.descriptor(), [&] { ++calls; }, std::chrono::hours(1), [&] { ++calls; });
    QVERIFY(watch.ok());
  }
  QCOMPARE(calls.load(), 0);
  {
    const auto watch = InputEnd::watch(
        pipe->second.descriptor(), [&] { ++calls; }, std::chrono::hours(1), [&] { ++calls; });
    QVERIFY(watch.ok());
    pipe->first.close();
    QTRY_COMPARE(calls.load(), 1);
  }
  QCOMPARE(calls.load(), 1);  // it ended in time
}

NS_TEST(TestStop)
#include "test_stop.moc"
