// A real coturn on the loopback interface, with the user nsd and the password secret; ends with the test,
// however that ends. Header only; needs Qt.
#pragma once

#include <QProcess>
#include <QStandardPaths>
#include <QTemporaryDir>

#include "core/nat/io.h"

namespace neuroshard::testing {

class LoopbackCoturn {
 public:
  // Why there is none; empty: there is.
  static QString missing() {
    return program().isEmpty()
               ? QStringLiteral(
                     "coturn is not installed (installers/debian-packages.txt), so TURN is not tested")
               : QString();
  }
  // At a port of its own, which it keeps. more: further words for coturn.
  explicit LoopbackCoturn(QStringList more = {}) : more_(std::move(more)) {
    endpoint = platform::TcpListener::open({platform::IpAddress::v4(127, 0, 0, 1), 0})->local().value();
  }
  ~LoopbackCoturn() { kill(); }
  LoopbackCoturn(const LoopbackCoturn&) = delete;
  LoopbackCoturn& operator=(const LoopbackCoturn&) = delete;

  // False: it does not answer within twenty seconds.
  bool start() {
    process_.setStandardOutputFile(folder_.filePath("log"));
    process_.setProcessChannelMode(QProcess::MergedChannels);
    process_.start(
        "setpriv",
        QStringList{"--pdeathsig", "KILL", program(), "-n", "--listening-ip=127.0.0.1",
                    "--relay-ip=127.0.0.1", "--no-tls", "--no-dtls", "--no-cli", "--lt-cred-mech",
                    "--user=nsd:secret", "--realm=nsd.test", "--allow-loopback-peers", "--log-file=stdout",
                    "--simple-log", QString("--listening-port=%1").arg(endpoint.port),
                    "--userdb=" + folder_.filePath("db"), "--pidfile=" + folder_.filePath("pid")} +
            more_);
    if (!process_.waitForStarted(10'000)) return false;
    const nat::Io io{clock_, entropy_, {}};
    const MonotonicTime until = io.now() + std::chrono::seconds(20);
    while (io.now() < until) {
      if (nat::dial_until(io, endpoint, {}, until).ok()) return true;
      (void)nat::wait_until(io, {}, io.now() + std::chrono::milliseconds(20));
    }
    return false;
  }
  void kill() {
    process_.kill();
    process_.waitForFinished(10'000);
  }

  platform::Endpoint endpoint;

 private:
  static QString program() {
    const QString found = QStandardPaths::findExecutable("turnserver");
    return found.isEmpty() ? QStandardPaths::findExecutable("turnserver", {"/usr/sbin", "/usr/bin"}) : found;
  }

  SystemClock clock_;
  crypto::SystemEntropy entropy_;
  const QStringList more_;
  QTemporaryDir folder_;
  QProcess process_;
};

}  // namespace neuroshard::testing
