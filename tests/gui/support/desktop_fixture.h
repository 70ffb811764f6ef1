// Programs around the app in tests of the desktop: an X server of their own, a window manager, a tray. Each
// is ended with its object.
#pragma once

#include <QDeadlineTimer>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QProcessEnvironment>
#include <QStandardPaths>
#include <QString>
#include <QStringList>
#include <functional>
#include <memory>
#include <optional>

namespace neuroshard::test {

constexpr int generous_ms = 30'000;

class Helper {
 public:
  Helper(const QString& program, const QStringList& arguments, const QProcessEnvironment& environment) {
    process_.setProcessEnvironment(environment);
    process_.start(program, arguments);
    started_ = process_.waitForStarted(generous_ms);
  }
  ~Helper() { stop(); }
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  bool running() const { return started_ && process_.state() == QProcess::Running; }
  void stop() {
    if (process_.state() == QProcess::NotRunning) return;
    process_.terminate();
    if (!process_.waitForFinished(generous_ms)) process_.kill();
    process_.waitForFinished(generous_ms);
  }
  void say(const QByteArray& line) { process_.write(line + '\n'); }
  std::optional<QByteArray> next_line(int timeout_ms = generous_ms) {
    const QDeadlineTimer deadline(timeout_ms);
    while (!process_.canReadLine()) {
      if (deadline.hasExpired() || process_.state() == QProcess::NotRunning) return std::nullopt;
      process_.waitForReadyRead(100);
    }
    return process_.readLine().trimmed();
  }
  // Reads states (lines of JSON) until one fits; empty after a long time.
  QJsonObject until(const std::function<bool(const QJsonObject&)>& fits) {
    const QDeadlineTimer deadline(generous_ms);
    if (!last_.isEmpty() && fits(last_)) return last_;
    while (!deadline.hasExpired()) {
      const auto line = next_line(static_cast<int>(deadline.remainingTime()));
      if (!line) break;
      last_ = QJsonDocument::fromJson(*line).object();
      if (fits(last_)) return last_;
    }
    return {};
  }
  // Its last line, and all lines since.
  QJsonObject latest() {
    process_.waitForReadyRead(10);
    while (process_.canReadLine()) last_ = QJsonDocument::fromJson(process_.readLine()).object();
    return last_;
  }
  QByteArray errors() { return process_.readAllStandardError(); }
  QProcess& process() { return process_; }

 private:
  QProcess process_;
  bool started_ = false;
  QJsonObject last_;
};

// The missing package, for a failure that says what to install; empty = nothing.
inline QString missing_programs(const QStringList& names) {
  QStringList missing;
  for (const QString& name : names) {
    if (QStandardPaths::findExecutable(name).isEmpty()) missing << name;
  }
  return missing.isEmpty()
             ? QString()
             : "not installed: " + missing.join(' ') + " (installers/debian-packages.txt, section [test])";
}

// A server on a display that nobody has.
class XServer {
 public:
  XServer() : environment_(QProcessEnvironment::systemEnvironment()) {
    process_.start("Xvfb", {"-displayfd", "1", "-screen", "0", "1280x800x24", "-nolisten", "tcp"});
    const QDeadlineTimer deadline(generous_ms);
    while (!process_.canReadLine() && !deadline.hasExpired() && process_.state() != QProcess::NotRunning)
      process_.waitForReadyRead(100);
    const QByteArray number = process_.readLine().trimmed();
    if (number.isEmpty()) return;
    display_ = ":" + QString::fromLatin1(number);
    environment_.insert("DISPLAY", display_);
    environment_.remove("WAYLAND_DISPLAY");
    environment_.insert("QT_QPA_PLATFORM", "xcb");
    environment_.remove("DBUS_SESSION_BUS_ADDRESS");
    environment_.insert("DBUS_SESSION_BUS_ADDRESS", "disabled:");
  }
  ~XServer() {
    process_.terminate();
    process_.waitForFinished(generous_ms);
  }
  bool running() const { return !display_.isEmpty(); }
  QString display() const { return display_; }
  QProcessEnvironment environment() const { return environment_; }
  // Runs a small tool to its end.
  bool run(const QString& program, const QStringList& arguments) const {
    QProcess tool;
    tool.setProcessEnvironment(environment_);
    tool.start(program, arguments);
    return tool.waitForFinished(generous_ms) && tool.exitCode() == 0;
  }

 private:
  QProcess process_;
  QString display_;
  QProcessEnvironment environment_;
};

}  // namespace neuroshard::test
