// One app at a time for each user and data directory: a second start hands its command line to the first and
// ends.
//
// Threads: ui.
#pragma once

#include <QDeadlineTimer>
#include <QLocalServer>
#include <QLockFile>
#include <QObject>
#include <QString>
#include <QStringList>
#include <chrono>
#include <memory>

namespace neuroshard::gui {

// Distinguishes apps that may run side by side: those with other data. `named` is the directory of the command
// line, or empty; `usual` is the one that the app opens without it. The user may choose another usual directory
// while the app runs, so `config_file`, which holds that choice, stands for it.
QString instance_key(const QString& named, const QString& usual, const QString& config_file);

class SingleInstance final : public QObject {
  Q_OBJECT
 public:
  static constexpr qsizetype max_message = 64 * 1024;

  // `folder` is private to the user.
  SingleInstance(const QString& folder, const QString& key, QObject* parent = nullptr);

  enum class Role {
    First,   // listens from now on
    Second,  // the first one has taken the message
    Failed,  // neither: `error` says why
  };
  // The first one ends within this time once it does not listen any more.
  static constexpr std::chrono::seconds end_limit{25};
  // Waits at most end_limit for the answer of the first one, or for its end. Removes the socket that a killed
  // app left behind.
  Role claim(const QStringList& arguments);
  // The first one ends: a second start waits, and takes its place.
  void stop_listening() { server_.close(); }
  QString error() const { return error_; }

 Q_SIGNALS:
  // The command line of a second start.
  void called(const QStringList& arguments);

 private:
  bool hand_over(const QStringList& arguments, const QDeadlineTimer& end);
  void receive();

  QString socket_path_;
  QString error_;
  QLockFile lock_;
  QLocalServer server_;
};

}  // namespace neuroshard::gui
