// Real neuroshardd processes for the functional tests: started with a clean environment, read line by line,
// killed when the test ends, whatever happens (a test that is killed itself: on Linux). Header only; needs Qt.
#pragma once

#include <QByteArray>
#include <QDeadlineTimer>
#include <QFile>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QProcessEnvironment>
#include <QString>
#include <QStringList>
#include <csignal>
#include <optional>

#include "tests/support/end_with_parent.h"

namespace neuroshard::test {

// The folder of the programs under test: NS_BIN_DIR, set by ctest.
inline QString program_named(const char* name) {
  return qEnvironmentVariable("NS_BIN_DIR") + "/" + name;
}
inline QString node_program() {
  return program_named("neuroshardd");
}

struct ProcessResult {
  int exit_code = -1;    // of a normal exit
  bool crashed = false;  // ended by a signal
  bool timed_out = false;
  QByteArray out;
  QByteArray err;

  bool ok() const { return !crashed && !timed_out && exit_code == 0; }
  // For QVERIFY2: what a person needs to see when it was not ok.
  QByteArray text() const {
    // Qt Test cuts long messages: the errors come first.
    return "exit " + QByteArray::number(exit_code) + (crashed ? " (crashed)" : "") +
           (timed_out ? " (timed out)" : "") + "\n--- errors\n" + err.right(900) + "\n--- output\n" +
           out.right(500);
  }
};

// Threads: the test's.
class NodeProcess {
 public:
  static constexpr int default_timeout_ms = 60'000;

  // `cgroup_processes`: the cgroup.procs file of a cgroup that the process shall start in; empty for none.
  // `input`: its standard input, through a pipe that is then closed if `input_ends`. `program`: instead of
  // neuroshardd.
  explicit NodeProcess(const QStringList& arguments, const QStringList& extra_environment = {},
                       const QString& cgroup_processes = {}, const QByteArray& input = {},
                       const QString& program = node_program(), bool input_ends = true) {
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    for (const QString& name : environment.keys())
      if (name.startsWith("NEUROSHARD_")) environment.remove(name);
    for (const QString& assignment : extra_environment)
      environment.insert(assignment.section('=', 0, 0), assignment.section('=', 1));
    process_.setProcessEnvironment(environment);
    // Nothing destroys this object when a test is killed.
    process_.setChildProcessModifier(end_with_parent);
    if (input.isEmpty()) process_.setStandardInputFile(QProcess::nullDevice());
    if (cgroup_processes.isEmpty()) {
      process_.start(program, arguments);
    } else {
      // The shell moves itself inside and becomes the program, which therefore never runs outside.
      const QStringList shell{"-c", "echo $$ > \"$0\" && exec \"$@\"", cgroup_processes, program};
      process_.start("/bin/sh", shell + arguments);
    }
    started_ = process_.waitForStarted(10'000);
    if (!input.isEmpty()) {
      process_.write(input);  // written while finish() or next_line() wait
      if (input_ends) process_.closeWriteChannel();
    }
  }
  ~NodeProcess() { kill_now(); }
  NodeProcess(const NodeProcess&) = delete;
  NodeProcess& operator=(const NodeProcess&) = delete;

  bool started() const { return started_; }
  qint64 pid() const { return process_.processId(); }
  bool running() const { return process_.state() == QProcess::Running; }

  // The next line of standard output without its end; nothing when the process ended or time ran out.
  std::optional<QByteArray> next_line(int timeout_ms = default_timeout_ms) {
    const QDeadlineTimer deadline(timeout_ms);
    while (true) {
      collect();
      const qsizetype end = out_.indexOf('\n', read_);
      if (end >= 0) {
        const QByteArray line = out_.mid(read_, end - read_);
        read_ = end + 1;
        return line;
      }
      if (!running() || deadline.hasExpired()) return std::nullopt;
      process_.waitForReadyRead(static_cast<int>(qMin<qint64>(deadline.remainingTime(), 100)));
    }
  }

  // Standard error until now.
  QByteArray errors_so_far() {
    process_.waitForReadyRead(1);
    collect();
    return err_;
  }

  // kill -9: nothing in the process gets a say.
  void kill_now() {
    if (!running()) return;
    process_.kill();
    process_.waitForFinished(10'000);
  }
  // SIGSTOP and SIGCONT: it does nothing meanwhile. kill_now() works on one that is held, too.
  void hold() { signal_it(SIGSTOP); }
  void go_on() { signal_it(SIGCONT); }
  // SIGTERM: the clean stop.
  void terminate() { process_.terminate(); }

  ProcessResult finish(int timeout_ms = default_timeout_ms) {
    ProcessResult result;
    if (running() && !process_.waitForFinished(timeout_ms)) {
      result.timed_out = true;
      kill_now();
    }
    collect();
    result.crashed = !result.timed_out && process_.exitStatus() == QProcess::CrashExit;
    result.exit_code = process_.exitStatus() == QProcess::NormalExit ? process_.exitCode() : -1;
    result.out = out_;
    result.err = err_;
    return result;
  }

 private:
  void signal_it(int signal) {
    if (running()) ::kill(static_cast<pid_t>(pid()), signal);
  }
  void collect() {
    out_ += process_.readAllStandardOutput();
    err_ += process_.readAllStandardError();
  }

  QProcess process_;
  bool started_ = false;
  QByteArray out_, err_;
  qsizetype read_ = 0;  // of out_, by next_line
};

// The largest resident size of a process so far, in bytes, as the kernel recorded it; 0: it has ended.
inline qint64 peak_resident(qint64 pid) {
  QFile status("/proc/" + QString::number(pid) + "/status");
  if (!status.open(QIODevice::ReadOnly)) return 0;
  for (const QByteArray& line : status.readAll().split('\n'))
    if (line.startsWith("VmHWM:")) return line.mid(6).trimmed().split(' ').first().toLongLong() * 1024;
  return 0;
}

inline ProcessResult run_node(const QStringList& arguments,
                              int timeout_ms = NodeProcess::default_timeout_ms) {
  return NodeProcess(arguments).finish(timeout_ms);
}

// The objects among the lines of a --json output.
inline QList<QJsonObject> json_lines(const QByteArray& output) {
  QList<QJsonObject> objects;
  for (const QByteArray& line : output.split('\n')) {
    const QJsonDocument document = QJsonDocument::fromJson(line);
    if (document.isObject()) objects.append(document.object());
  }
  return objects;
}

}  // namespace neuroshard::test
