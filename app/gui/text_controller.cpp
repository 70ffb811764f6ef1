#include "app/gui/text_controller.h"

#include <utility>

namespace neuroshard::gui {

TextController::TextController(ui::Bridge& bridge, const CoreSupervisor& supervisor)
    : bridge_(bridge), supervisor_(supervisor) {}

void TextController::add(const QString& path) {
  if (supervisor_.status().remote) {
    Q_EMIT failed(
        tr("The text was not added"),
        tr("The window shows another computer, which can't read %1. Return to this computer, and add "
           "the text again.")
            .arg(path));
    return;
  }
  waiting_ = path;
  attached();
}

void TextController::attached() {
  const CoreStatus& status = supervisor_.status();
  if (waiting_.isEmpty() || status.remote || status.phase != CorePhase::Running) return;
  const QString path = std::exchange(waiting_, QString());
  if (supervisor_.launched_text() != path) train_on(path, true);
}

void TextController::train_on(const QString& path, bool may_stop) {
  node::TrainingPlan plan;
  plan.text_path = path.toStdString();
  bridge_.run(
      this, [plan](node::Node& node) { return node.start_training(plan); },
      [this, path, may_stop](const Expected<node::CommandResult>& outcome) {
        if (outcome.ok()) return;
        if (may_stop && outcome.error().code == ErrorCode::Busy) return stop_and_train_on(path);
        fail(outcome.error());
      });
}

void TextController::stop_and_train_on(const QString& path) {
  bridge_.run(
      this, [](node::Node& node) { return node.stop_training(); },
      [this, path](const Expected<node::CommandResult>& outcome) {
        if (outcome.ok()) return train_on(path, false);
        fail(outcome.error());
      });
}

void TextController::fail(const Error& error) {
  Q_EMIT failed(tr("The core can't read the new text"), QString::fromStdString(error.describe()));
}

}  // namespace neuroshard::gui
