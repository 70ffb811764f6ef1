// The field of one setting, by its type: a switch, a choice, a number with its unit, a path, the hours of the
// week, a list of programs, or plain text. Values are the texts of the core.
#pragma once

#include <QWidget>

#include "core/node/queries.h"

namespace neuroshard::ui {

class Theme;

// Threads: ui.
class SettingEditor : public QWidget {
  Q_OBJECT
 public:
  using QWidget::QWidget;
  virtual QString value() const = 0;
  // Shows a value without edited(). One that the editor can't show is left to the text of the error below it.
  virtual void set_value(const QString& value) = 0;
  // Too wide to stand beside its title.
  virtual bool wide() const { return false; }

 Q_SIGNALS:
  void edited(const QString& value);  // by the person, when it is worth applying
};

// Focusable parts carry the setting's title as their accessible name; the first one is the focus proxy.
// Made in its place: every change of a parent would style all of its parts again.
SettingEditor* make_setting_editor(const Theme& theme, const node::SettingEntry& entry,
                                   QWidget* parent = nullptr);

}  // namespace neuroshard::ui
