// Text that the user adds while a core runs: a core reads its command line only at its start.
//
// Threads: ui.
#pragma once

#include <QObject>
#include <QString>

#include "app/gui/core_supervisor.h"
#include "ui/bridge/bridge.h"

namespace neuroshard::gui {

class TextController final : public QObject {
  Q_OBJECT
 public:
  // Both outlive it.
  TextController(ui::Bridge& bridge, const CoreSupervisor& supervisor);

  // Trains on this file or folder as soon as a core of this computer answers. Training that runs saves a
  // checkpoint and starts again with the text. A core that was launched with the text has it already.
  void add(const QString& path);
  // A core answers.
  void attached();

 Q_SIGNALS:
  void failed(const QString& what, const QString& why);

 private:
  void train_on(const QString& path, bool may_stop);
  void stop_and_train_on(const QString& path);
  void fail(const Error& error);

  ui::Bridge& bridge_;
  const CoreSupervisor& supervisor_;
  QString waiting_;  // for a core
};

}  // namespace neuroshard::gui
