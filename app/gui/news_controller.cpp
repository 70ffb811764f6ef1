#include "app/gui/news_controller.h"

#include <QApplication>
#include <QLocale>

#include "ui/pages/news_dialog.h"

namespace neuroshard::gui {
namespace {

QString language() {
  return QLocale().name().section(u'_', 0, 0);
}

}  // namespace

NewsController::NewsController(UserConfig& config, ui::MainWindow& window, const QString& running)
    : config_(config), window_(window) {
  auto version = Version::parse(running.toStdString());
  if (!version.ok()) return;
  running_ = std::move(*version);
  const auto former = Version::parse(config_.newest_run().toStdString());
  if (!former.ok()) {
    config_.set_newest_run(running);
  } else if (*former < *running_) {
    before_ = *former;
  }
}

void NewsController::tick() {
  if (!before_ || !window_.isVisible() || window_.isMinimized() ||
      QApplication::activeModalWidget() != nullptr)
    return;
  const Version before = *std::exchange(before_, std::nullopt);
  // Before it is shown: whatever happens then, it is not shown again.
  config_.set_newest_run(QString::fromStdString(running_->text()));
  show(before);
}

void NewsController::show_all() {
  if (running_) show({});
}

void NewsController::show(const Version& before) {
  const auto notes = ui::notes_between(ui::own_release_notes(language()), before, *running_);
  if (notes.empty()) return;
  auto* dialog = new ui::NewsDialog(notes, &window_);
  dialog->setWindowModality(Qt::WindowModal);
  dialog->open();
}

}  // namespace neuroshard::gui
