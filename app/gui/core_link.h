// The connection to the core of one data directory, as the supervisor sees it: it connects and reconnects by
// itself. Threads: ui; nothing blocks.
#pragma once

#include <QMetaType>
#include <QObject>
#include <QString>
#include <memory>

#include "core/base/error.h"
#include "core/node/node.h"
#include "core/platform/process/process_identity.h"

namespace neuroshard::gui {

// A core that answers.
struct CorePresence {
  std::shared_ptr<node::Node> node;  // may be released on any thread; its end never blocks there
  platform::ProcessIdentity process;
  bool may_steer = true;  // false: the invitation permits to look only
};

struct CoreAbsence {
  enum class Kind {
    None,     // no core runs there (or it stopped cleanly)
    Killed,   // it left its control file behind: a crash or a kill
    Silent,   // its process runs but does not answer: it starts or ends
    Refused,  // it refuses this program: `error` says why
  };
  Kind kind = Kind::None;
  Error error;
  platform::ProcessIdentity process;  // with Refused: of the core that refused
};

class CoreLink : public QObject {
  Q_OBJECT
 public:
  using QObject::QObject;
  // Looks for the core of this directory from now on, also when another process takes the directory over.
  virtual void open(const QString& data_directory) = 0;
  // To a core on another machine, by an imported control file. Refused with Corrupt when it is not one.
  virtual void open_file(const QString& control_file) = 0;
  virtual void close() = 0;
  // Asks this very process for a clean end, if it still runs.
  virtual void ask_to_end(const platform::ProcessIdentity& process) = 0;

 Q_SIGNALS:
  void present(const neuroshard::gui::CorePresence& core);
  void absent(const neuroshard::gui::CoreAbsence& why);  // after each attempt and each loss
};

}  // namespace neuroshard::gui

Q_DECLARE_METATYPE(neuroshard::gui::CorePresence)
Q_DECLARE_METATYPE(neuroshard::gui::CoreAbsence)
