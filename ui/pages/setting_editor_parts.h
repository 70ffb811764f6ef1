// The editors behind make_setting_editor().
#pragma once

#include <QTimer>

#include "ui/models/setting_text.h"
#include "ui/pages/setting_editor.h"

class QComboBox;
class QLineEdit;
class QListWidget;
class QPushButton;
class QSpinBox;

namespace neuroshard::ui {

class ToggleSwitch;
class WeekGrid;

// A wheel that turns over a field while the page scrolls must not change a setting: only a focused field
// takes it.
void guard_wheel(QWidget* field);

class SwitchEditor final : public SettingEditor {
  Q_OBJECT
 public:
  SwitchEditor(const Theme& theme, const QString& name, QWidget* parent);
  QString value() const override;
  void set_value(const QString& value) override;

 private:
  ToggleSwitch* toggle_;
};

class ChoiceEditor final : public SettingEditor {
  Q_OBJECT
 public:
  ChoiceEditor(const node::SettingEntry& entry, const QString& name, QWidget* parent);
  QString value() const override;
  void set_value(const QString& value) override;

 private:
  QComboBox* box_;
};

// Integer, bytes, seconds. Applies when the value stands still for a moment, or with Enter.
class NumberEditor final : public SettingEditor {
  Q_OBJECT
 public:
  NumberEditor(const node::SettingEntry& entry, const QString& name, QWidget* parent);
  QString value() const override;
  void set_value(const QString& value) override;

 private:
  void bound_to_unit();

  const node::SettingEntry entry_;  // its value is the one of the beginning
  std::vector<SettingUnit> units_;
  QSpinBox* number_;
  QComboBox* unit_;  // hidden for types without units
  QTimer still_;
};

// Text and paths: applies with Enter or when the field is left.
class TextEditor final : public SettingEditor {
  Q_OBJECT
 public:
  TextEditor(const Theme& theme, const node::SettingEntry& entry, const QString& name, QWidget* parent);
  QString value() const override;
  void set_value(const QString& value) override;

 private:
  void browse();

  QLineEdit* line_;
  QString shown_;
};

class ScheduleEditor final : public SettingEditor {
  Q_OBJECT
 public:
  ScheduleEditor(const Theme& theme, const QString& name, QWidget* parent);
  QString value() const override;
  void set_value(const QString& value) override;
  bool wide() const override { return true; }

 private:
  WeekGrid* grid_;
  QLineEdit* line_;
};

class ProgramsEditor final : public SettingEditor {
  Q_OBJECT
 public:
  ProgramsEditor(const QString& name, QWidget* parent);
  QString value() const override;
  void set_value(const QString& value) override;
  bool wide() const override { return true; }

 private:
  void add();
  void remove();

  QListWidget* list_;
  QLineEdit* line_;
  QPushButton* remove_;
};

}  // namespace neuroshard::ui
