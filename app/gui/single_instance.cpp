#include "app/gui/single_instance.h"

#include <QCryptographicHash>
#include <QDir>
#include <QJsonArray>
#include <QJsonDocument>
#include <QLocalSocket>
#include <QTimer>

namespace neuroshard::gui {
namespace {

constexpr int retry_ms = 200;
constexpr int silent_limit_ms = 5000;  // of a caller that says nothing
constexpr char taken[] = "ok\n";

// Paths of sockets have room for some hundred characters.
QString short_name(const QString& key) {
  return QString::fromLatin1(
      QCryptographicHash::hash(key.toUtf8(), QCryptographicHash::Sha256).toHex().left(16));
}

QString clean(const QString& path) {
  return QDir::cleanPath(QDir().absoluteFilePath(path));
}

}  // namespace

QString instance_key(const QString& named, const QString& usual, const QString& config_file) {
  if (named.isEmpty() || clean(named) == clean(usual)) return config_file;
  return clean(named);
}

SingleInstance::SingleInstance(const QString& folder, const QString& key, QObject* parent)
    : QObject(parent),
      socket_path_(folder + "/app-" + short_name(key)),
      lock_(folder + "/app-" + short_name(key) + ".lock") {
  lock_.setStaleLockTime(0);  // held for the life of the process; a dead one's is recognised by its number
  server_.setSocketOptions(QLocalServer::UserAccessOption);
  connect(&server_, &QLocalServer::newConnection, this, &SingleInstance::receive);
}

SingleInstance::Role SingleInstance::claim(const QStringList& arguments) {
  const QDeadlineTimer end(end_limit);
  for (int wait_ms = 0; !lock_.tryLock(wait_ms); wait_ms = retry_ms) {
    if (hand_over(arguments, end)) return Role::Second;
    // It has the lock and no ears: it is starting or ending.
    if (!end.hasExpired()) continue;
    error_ = tr("NeuroShard is already running but does not answer.");
    return Role::Failed;
  }
  QLocalServer::removeServer(socket_path_);  // of an app that was killed: the lock is ours
  if (!server_.listen(socket_path_)) {
    error_ = tr("NeuroShard can't listen for a second start: %1").arg(server_.errorString());
    return Role::Failed;
  }
  return Role::First;
}

bool SingleInstance::hand_over(const QStringList& arguments, const QDeadlineTimer& end) {
  const auto left_ms = [&end] { return static_cast<int>(end.remainingTime()); };
  QLocalSocket socket;
  socket.connectToServer(socket_path_);
  if (!socket.waitForConnected(left_ms())) return false;
  socket.write(QJsonDocument(QJsonArray::fromStringList(arguments)).toJson(QJsonDocument::Compact) + '\n');
  while (!socket.canReadLine()) {
    if (!socket.waitForReadyRead(left_ms())) return false;
  }
  return socket.readLine() == taken;
}

void SingleInstance::receive() {
  while (QLocalSocket* socket = server_.nextPendingConnection()) {
    connect(socket, &QLocalSocket::disconnected, socket, &QObject::deleteLater);
    QTimer::singleShot(silent_limit_ms, socket, [socket] { socket->abort(); });
    connect(socket, &QLocalSocket::readyRead, this, [this, socket] {
      if (!server_.isListening()) return socket->abort();  // the caller takes this place
      if (!socket->canReadLine()) {
        if (socket->bytesAvailable() > max_message) socket->abort();
        return;
      }
      const QJsonDocument message = QJsonDocument::fromJson(socket->readLine(max_message));
      if (!message.isArray()) return socket->abort();
      QStringList arguments;
      for (const auto& value : message.array()) arguments << value.toString();
      socket->write(taken);
      socket->disconnectFromServer();  // after the answer is written
      Q_EMIT called(arguments);
    });
  }
}

}  // namespace neuroshard::gui
