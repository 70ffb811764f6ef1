// Long commands to the core: which are under way, their progress, a button to cancel, and their results. Work
// that the core does one at a time waits here for its turn.
#pragma once

#include <QWidget>
#include <deque>
#include <functional>

#include "ui/bridge/bridge.h"
#include "ui/text/state_text.h"

class QLabel;
class QProgressBar;
class QVBoxLayout;

namespace neuroshard::ui {

class Banner;
class Theme;

struct Work {
  QString title;  // "Checking step 1,200"
  Bridge::Command command;
  // The message after success; empty = the page shows the result anyway.
  std::function<QString(const node::CommandResult&)> success = {};
  bool can_cancel = false;
  bool is_long = false;  // it may take minutes: its end is announced
  // The name of one action on several things: cancelling one of them also drops those that wait.
  // Empty: it stands alone.
  QString action = {};
};

// Threads: ui.
class WorkPanel final : public QWidget {
  Q_OBJECT
 public:
  static constexpr std::size_t max_waiting = 500;

  WorkPanel(Bridge& bridge, const Theme& theme, QWidget* parent = nullptr);

  void run(Work work);
  // A sentence of the page itself, in the same place.
  void say(Tone tone, const QString& title, const QString& text);
  bool busy() const { return current_ticket_ != 0; }

 Q_SIGNALS:
  void finished();  // each piece of work, however it ended
  // A long one, with its outcome in words. Not one that the person cancelled.
  void long_work_ended(const QString& title, const QString& text);

 private:
  void start_next();
  void show_title();
  void done(const Work& work, const Expected<node::CommandResult>& result);
  void progress(const node::CommandProgress& progress);
  void cancel();

  Bridge& bridge_;
  std::deque<Work> waiting_;
  quint64 current_ticket_ = 0;
  bool keeps_outcome_ = false;  // it tells of a failure in this queue: a success does not replace it
  QString current_title_;
  QWidget* row_;
  QLabel* title_;
  QLabel* detail_;
  QProgressBar* bar_;
  QWidget* cancel_;
  Banner* outcome_;
};

}  // namespace neuroshard::ui
