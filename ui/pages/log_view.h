// The lines of a log, following the end until the person scrolls away from it.
#pragma once

#include "ui/widgets/table_view.h"

namespace neuroshard::ui {

class LogModel;
class Theme;

// Threads: ui.
class LogView final : public TableView {
  Q_OBJECT
 public:
  LogView(const Theme& theme, LogModel& model, QWidget* parent = nullptr);

  bool following() const { return following_; }
  void set_following(bool on);  // on: goes to the end
  QString selected_text() const;
  void copy_selection() const override;  // as lines of the log
  void export_csv() override;            // the lines that are shown now

 Q_SIGNALS:
  void following_changed(bool on);

 private:
  void scrolled(int value);
  void inserted();

  LogModel& model_;
  bool following_ = true;
  bool own_scroll_ = false;  // moved by us, not by the person
};

}  // namespace neuroshard::ui
