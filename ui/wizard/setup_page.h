// One page of the set-up assistant.
#pragma once

#include <QWidget>
#include <functional>

#include "ui/wizard/setup_draft.h"

class QLabel;
class QVBoxLayout;

namespace neuroshard::ui {

class SetupPage : public QWidget {
  Q_OBJECT
 public:
  SetupPage(SetupDraft& draft, SetupServices& services, QWidget* parent = nullptr);

  virtual QString title() const = 0;
  virtual QString intro() const = 0;
  virtual QString next_text() const;  // of the button
  virtual bool needed() const { return true; }
  // Whether it is counted as a step, or belongs to the one before.
  virtual bool opens_step() const { return true; }
  virtual bool complete() const { return true; }
  virtual void entered() {}
  // Does what the page is for; then done(true) to go on, or false to stay (the page shows why). May take a
  // while.
  virtual void leave(std::function<void(bool)> done) { done(true); }

  // The message of neuroshardd for people: that of its error object, else the last line it wrote, without "error: ".
  static QString reason(const CommandOutcome& outcome);

 Q_SIGNALS:
  void complete_changed();

 protected:
  void show_problem(const QString& text);  // empty hides it
  QVBoxLayout* body() const { return body_; }
  QLabel* add_note(const QString& text);

  SetupDraft& draft_;
  SetupServices& services_;

 private:
  QVBoxLayout* body_;
  QLabel* problem_;
};

}  // namespace neuroshard::ui
