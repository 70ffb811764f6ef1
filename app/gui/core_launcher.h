// Starts `neuroshardd run` for the supervisor and says how it ended. Threads: ui; nothing blocks.
#pragma once

#include <QMetaType>
#include <QObject>
#include <QString>
#include <cstdint>
#include <optional>

#include "core/base/expected.h"

namespace neuroshard::gui {

struct LaunchRequest {
  QString data_directory;
  QString text_folder;      // read at the start; empty = what the directory has
  bool safe = false;        // --safe: no training
  QString invitation = {};  // the link for --join, which the user has agreed to follow; empty = none
};

struct CoreExit {
  std::int64_t pid = 0;
  bool crashed = false;  // ended by a signal
  int code = 0;          // exit code of neuroshardd otherwise (its --help has the table)
  QString said;          // the last lines that it wrote on standard error
};

class CoreLauncher : public QObject {
  Q_OBJECT
 public:
  using QObject::QObject;
  // The process lives on when this program ends. NotFound: there is no neuroshardd. One at a time: Busy.
  virtual Expected<void> launch(const LaunchRequest& request) = 0;
  // Of the process that was launched last and has not ended.
  virtual std::optional<std::int64_t> pid() const = 0;
  // Asks it for a clean end (SIGTERM).
  virtual void terminate() = 0;

 Q_SIGNALS:
  void ended(const neuroshard::gui::CoreExit& exit);
};

}  // namespace neuroshard::gui

Q_DECLARE_METATYPE(neuroshard::gui::CoreExit)
