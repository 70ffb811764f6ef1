// Brings the core's log into a LogModel: asks for what is new, page after page, and hands it over in batches
// ten times a second, however fast the core writes. At most max_waiting lines wait; the core keeps the rest,
// or drops it and says so.
#pragma once

#include <QObject>
#include <QTimer>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/node/queries.h"

namespace neuroshard::ui {

class Bridge;
class LogModel;

// Threads: ui.
class LogFeed final : public QObject {
  Q_OBJECT
 public:
  static constexpr std::chrono::milliseconds period{100};
  static constexpr std::size_t max_waiting = 2'000;  // lines: a batch that is shown within a frame

  LogFeed(Bridge& bridge, LogModel& model, QObject* parent = nullptr);

  void start();  // from where it was
  void stop();
  bool running() const { return timer_.isActive(); }

 Q_SIGNALS:
  void failed(const QString& message);
  void caught_up();  // everything that the core has is in the model

 public Q_SLOTS:
  void tick();

 private:
  void ask();
  void start_over();
  void take(const Expected<node::LogPage>& page);

  Bridge& bridge_;
  LogModel& model_;
  QTimer timer_;
  std::string core_;  // instance id of the core whose lines the model has
  quint64 after_ = 0;
  bool asking_ = false;
  std::vector<node::LogEntry> waiting_;
  quint64 dropped_ = 0;
};

}  // namespace neuroshard::ui
