// Asks before something is done that cannot simply be done again.
#pragma once

#include <QString>
#include <functional>

class QWidget;

namespace neuroshard::ui {

class Bridge;

struct Question {
  QString title;             // "Delete 2 checkpoints?"
  QString text;              // what will happen, in full
  QString action;            // the button: "Delete"
  bool destructive = false;  // the safe button is the default
};
// Returns at once; `yes` runs when the person agrees, unless `parent` is destroyed by then. With a bridge,
// the question is about the core that is attached now, and closes when that core goes or another one comes.
void confirm(QWidget* parent, const Question& question, std::function<void()> yes, Bridge* bridge = nullptr);

}  // namespace neuroshard::ui
