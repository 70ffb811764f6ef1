// One setting: title, help, its field, and beside it whether it differs from its default, is locked or waits
// for a restart, and the core's answer to the last change.
#pragma once

#include <QWidget>

#include "core/node/queries.h"

class QLabel;
class QPushButton;

namespace neuroshard::ui {

class SettingEditor;
class Theme;

// Threads: ui.
class SettingRow final : public QWidget {
  Q_OBJECT
 public:
  SettingRow(const Theme& theme, const node::SettingEntry& entry, QWidget* parent = nullptr);

  const node::SettingEntry& entry() const { return entry_; }
  bool is_changed() const { return entry_.value != entry_.default_value; }
  void set_entry(const node::SettingEntry& entry);
  // Whether a new value can be sent.
  void set_may_steer(bool may_steer);
  bool can_change() const { return may_steer_ && !entry_.locked; }
  // While the core has not answered, the field keeps what the person chose.
  void set_waiting(bool waiting) { waiting_ = waiting; }
  void show_error(const QString& message);  // empty = none
  QString error() const;
  SettingEditor* editor() const { return editor_; }

 Q_SIGNALS:
  void wanted(const QString& name, const QString& value);

 private:
  void update_marks();

  node::SettingEntry entry_;
  bool waiting_ = false;
  bool may_steer_ = true;
  SettingEditor* editor_;
  QLabel* changed_;
  QLabel* note_;
  QLabel* error_;
  QPushButton* reset_;
};

}  // namespace neuroshard::ui
