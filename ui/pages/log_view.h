// The lines of a log, following the end until the person scrolls away from it.
#pragma once

#include <QPointer>
#include <vector>

#include "ui/widgets/table_view.h"

namespace neuroshard::ui {

struct LogExcerpt;
class LogModel;
class RowText;
class Theme;

// Threads: ui.
class LogView final : public TableView {
  Q_OBJECT
 public:
  LogView(const Theme& theme, LogModel& model, QWidget* parent = nullptr);

  bool following() const { return following_; }
  void set_following(bool on);     // on: scrolls to the end
  void copy_selection() override;  // as lines of the log
  void copy();                     // the selection, or all that is shown when nothing is chosen
  void export_csv() override;      // the lines that are shown now

 Q_SIGNALS:
  void following_changed(bool on);
  // Many lines take some turns of the event loop. copy() takes the lines of that moment; a second copy
  // replaces one that is not done.
  void copying(qint64 lines);
  void copied(qint64 lines);

 private:
  void scrolled(int value);
  void inserted();
  LogExcerpt selected_lines() const;
  void copy_lines(LogExcerpt lines);

  LogModel& model_;
  bool following_ = true;
  QPointer<RowText> copying_;
  bool own_scroll_ = false;  // moved by us, not by the person
};

}  // namespace neuroshard::ui
