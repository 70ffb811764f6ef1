// The core's log, live: filtered by level, category and words, followed, copied and saved.
#pragma once

#include <QTimer>

#include "ui/pages/page.h"

class QComboBox;
class QLabel;
class QLineEdit;
class QPushButton;

namespace neuroshard::ui {

class LogFeed;
class LogModel;
class LogView;
class RowText;
class ToggleSwitch;

class LogsPage final : public Page {
  Q_OBJECT
 public:
  explicit LogsPage(const Context& context, QWidget* parent = nullptr);
  QString title() const override { return tr("Logs"); }
  QString icon() const override { return QStringLiteral("logs"); }
  void refresh(const node::Snapshot&) override {}
  void shown() override;
  void hidden() override;

  LogModel& model() const { return *model_; }

 private:
  QWidget* build_filters();
  QWidget* build_buttons();
  void filter();
  void show_counts();
  void save();
  RowText* lines_as_text();

  LogModel* model_;
  LogFeed* feed_;
  LogView* view_;
  QComboBox* level_;
  QComboBox* category_;
  QLineEdit* words_;
  QLabel* words_error_;
  QLabel* counts_;
  ToggleSwitch* follow_;
  QTimer filter_delay_;
  QTimer counting_;
  QString copied_;  // what was copied a moment ago, or is being copied
  QTimer copied_shown_;
};

}  // namespace neuroshard::ui
