// Preferences of the app itself: theme, language, tray, notifications.
#pragma once

#include "ui/widgets/card.h"

namespace neuroshard::ui {

class Preferences;
class Theme;

// Threads: ui.
class AppSettingsCard final : public Card {
  Q_OBJECT
 public:
  AppSettingsCard(const Theme& theme, Preferences& preferences, QWidget* parent = nullptr);
  // Shows only the rows that match; false when there is none.
  bool filter(const QString& words);

 private:
  void add_row(const QString& title, const QString& help, QWidget* editor);

  struct Row {
    QWidget* widget;
    QString words;
  };
  std::vector<Row> rows_;
};

}  // namespace neuroshard::ui
