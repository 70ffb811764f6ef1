// Preferences of the app itself: theme, language, tray, notifications.
#pragma once

#include "ui/widgets/card.h"

namespace neuroshard::ui {

class Preferences;
class ReleaseView;
class Theme;

// Threads: ui.
class AppSettingsCard final : public Card {
  Q_OBJECT
 public:
  // `releases` may be null: then there is no row about them.
  AppSettingsCard(const Theme& theme, Preferences& preferences, const ReleaseView* releases,
                  QWidget* parent = nullptr);
  // Shows only the rows that match; false when there is none.
  bool filter(const QString& words);

 private:
  // Returns the column of its words.
  QVBoxLayout* add_row(const QString& title, const QString& help, QWidget* editor);
  void add_releases(const Theme& theme, Preferences& preferences, const ReleaseView& releases);

  struct Row {
    QWidget* widget;
    QString words;
  };
  std::vector<Row> rows_;
};

}  // namespace neuroshard::ui
