// The text of a place that has nothing to show yet: what will appear there, and the next click.
#pragma once

#include <QWidget>

class QLabel;
class QPushButton;

namespace neuroshard::ui {

class Theme;

class EmptyState final : public QWidget {
  Q_OBJECT
 public:
  EmptyState(const Theme& theme, const QString& icon, const QString& title, const QString& text,
             QWidget* parent = nullptr);
  void set_text(const QString& title, const QString& text);
  // The next click; an empty text hides it.
  void set_action(const QString& text);

 Q_SIGNALS:
  void action_clicked();

 private:
  QLabel* icon_;
  QLabel* title_;
  QLabel* text_;
  QPushButton* action_;
};

}  // namespace neuroshard::ui
