// A message bus of a test's own. It stands for the system bus, too: the configuration of a session bus lets
// everyone own every name. Header only; needs Qt.
#pragma once

#include <QProcess>
#include <QStandardPaths>
#include <QString>
#include <string>

namespace neuroshard::test {

// Threads: the test's.
class PrivateBus {
 public:
  static bool installed() { return !QStandardPaths::findExecutable("dbus-daemon").isEmpty(); }

  PrivateBus() {
    daemon_.start("dbus-daemon", {"--session", "--nofork", "--nopidfile", "--print-address"});
    if (!daemon_.waitForStarted(10'000) || !daemon_.waitForReadyRead(10'000)) return;
    address_ = daemon_.readLine().trimmed().toStdString();
  }
  ~PrivateBus() { stop(); }
  PrivateBus(const PrivateBus&) = delete;
  PrivateBus& operator=(const PrivateBus&) = delete;

  // Empty: it does not run.
  const std::string& address() const { return address_; }
  void stop() {
    if (daemon_.state() == QProcess::NotRunning) return;
    daemon_.kill();
    daemon_.waitForFinished(10'000);
  }

 private:
  QProcess daemon_;
  std::string address_;
};

}  // namespace neuroshard::test
