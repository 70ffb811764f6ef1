// The editors behind make_setting_editor().
#pragma once

#include <QTimer>
#include <optional>
#include <vector>

#include "ui/models/setting_text.h"
#include "ui/pages/setting_editor.h"

class QComboBox;
class QDoubleSpinBox;
class QLineEdit;
class QListWidget;
class QPushButton;

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

// Integer, bytes, seconds. A typed number applies with Enter or when the field is left, one of the arrows when it
// stands still for a moment. Another unit keeps the amount and applies nothing. The field is blank where the amount is no whole number of that unit.
class NumberEditor final : public SettingEditor {
  Q_OBJECT
 public:
  NumberEditor(const node::SettingEntry& entry, const QString& name, QWidget* parent);
  QString value() const override;
  void set_value(const QString& value) override;

 private:
  std::uint64_t factor() const;  // of the chosen unit
  void bound_to_unit();
  void show_scaled(const ScaledValue& value);
  void convert();  // into the chosen unit
  void take_number();

  const node::SettingEntry entry_;  // its value is the one of the beginning
  std::vector<SettingUnit> units_;
  const QString zero_;                 // the words in place of 0; may be empty
  std::optional<ScaledValue> amount_;  // nothing before the first value; while blank, the one before
  bool blank_ = false;                 // shows no number, as the spin box's lowest value
  QDoubleSpinBox* number_;             // without decimals: bytes go beyond a QSpinBox
  QComboBox* unit_;                    // hidden for types without units
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
  void take_text();

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
  void take_text();

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
