// Network laboratories: a test runs itself again as the first process of network, mount and process
// namespaces of its own. Named network namespaces, daemons and mounts that it makes there end with it,
// however it ends: the kernel takes all of it away. Needs root; without it, says why. Header only; needs Qt.
#pragma once

#include <unistd.h>

#include <QByteArray>
#include <QDeadlineTimer>
#include <QFile>
#include <QProcess>
#include <QStandardPaths>
#include <QString>
#include <QStringList>
#include <memory>
#include <optional>
#include <vector>

namespace neuroshard::test {

struct ShellResult {
  int exit_code = -1;
  QByteArray text;  // both outputs
};

inline ShellResult shell(const QString& script, int timeout_ms = 30'000) {
  QProcess process;
  process.setProcessChannelMode(QProcess::MergedChannels);
  process.start("/bin/sh", {"-ec", script});
  if (!process.waitForFinished(timeout_ms)) {
    process.kill();
    process.waitForFinished(5000);
  }
  return {process.exitStatus() == QProcess::NormalExit ? process.exitCode() : -1, process.readAll()};
}

// Call first in main(). Comes back inside the namespaces with nothing, or outside with the reason why not.
inline QString enter_net_lab(char** argv, const QStringList& programs) {
  static constexpr const char* mark = "NS_INSIDE_NET_LAB";
  if (qEnvironmentVariableIsSet(mark)) {
    const ShellResult made = shell("mount -t tmpfs none /run && mkdir /run/netns && ip link set lo up");
    return made.exit_code == 0 ? QString() : "the laboratory can't be set up: " + QString(made.text);
  }
  if (geteuid() != 0) return "network namespaces need root, so this was not tested";
  for (const QString& program : programs + QStringList{"ip", "unshare"}) {
    if (QStandardPaths::findExecutable(program).isEmpty() &&
        QStandardPaths::findExecutable(program, {"/usr/sbin", "/sbin"}).isEmpty())
      return program + " is not installed (installers/debian-packages.txt), so this was not tested";
  }
  if (QProcess::execute("unshare", {"-m", "-n", "-p", "-f", "--mount-proc", "true"}) != 0)
    return "this system gives no namespaces of our own, so this was not tested";
  qputenv(mark, "1");
  std::vector<QByteArray> words{"unshare", "-m", "-n", "-p", "-f", "--kill-child", "--mount-proc"};
  words.push_back(QFile::symLinkTarget("/proc/self/exe").toLocal8Bit());
  for (char** word = argv + 1; *word != nullptr; ++word) words.emplace_back(*word);
  std::vector<char*> pointers;
  for (QByteArray& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execvp("unshare", pointers.data());
  return "unshare can't be started, so this was not tested";
}

// A program inside a named network namespace, spoken with by lines; killed when the object ends.
class LabProcess {
 public:
  LabProcess(const QString& ns, const QString& program, const QStringList& arguments) {
    process_.setProcessChannelMode(QProcess::MergedChannels);
    process_.start("ip", QStringList{"netns", "exec", ns, program} + arguments);
    process_.waitForStarted(10'000);
  }
  ~LabProcess() { kill_now(); }
  LabProcess(const LabProcess&) = delete;
  LabProcess& operator=(const LabProcess&) = delete;

  bool running() const { return process_.state() == QProcess::Running; }
  void kill_now() {
    process_.kill();
    process_.waitForFinished(5000);
  }
  void terminate() {
    process_.terminate();
    process_.waitForFinished(10'000);
  }
  void say(const QString& line) {
    process_.write(line.toUtf8() + '\n');
    process_.waitForBytesWritten(5000);
  }
  // The next line that begins with `beginning`, without it; nothing in time or when the program ended. Lines
  // before it are dropped from the conversation and stay in seen().
  std::optional<QByteArray> line(const QByteArray& beginning, int timeout_ms = 30'000) {
    const QDeadlineTimer deadline(timeout_ms);
    while (true) {
      seen_ += process_.readAll();
      for (qsizetype end = seen_.indexOf('\n', read_); end >= 0; end = seen_.indexOf('\n', read_)) {
        const QByteArray found = seen_.mid(read_, end - read_);
        read_ = end + 1;
        if (found.startsWith(beginning)) return found.mid(beginning.size());
      }
      if (!running() || deadline.hasExpired()) return std::nullopt;
      process_.waitForReadyRead(static_cast<int>(qMin<qint64>(deadline.remainingTime(), 100)));
    }
  }
  const QByteArray& seen() const { return seen_; }

 private:
  QProcess process_;
  QByteArray seen_;
  qsizetype read_ = 0;
};

}  // namespace neuroshard::test
