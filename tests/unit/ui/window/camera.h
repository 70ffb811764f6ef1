// Takes the pictures of ns_screenshots.
#pragma once

#include <QApplication>
#include <QDir>
#include <QEventLoop>
#include <QTimer>
#include <QWidget>

#include "ui/theme/theme.h"

namespace neuroshard::ui {

// Answers come through the event loop, ten times a second at most: long enough for a page to have all of its
// data.
inline void settle(int milliseconds = 700) {
  QEventLoop loop;
  QTimer::singleShot(milliseconds, &loop, &QEventLoop::quit);
  loop.exec();
}

class Camera {
 public:
  Camera(const QDir& folder, const QString& language, Theme& theme)
      : folder_(folder), language_(language), theme_(theme) {}

  // In both themes. `what` names the picture.
  void take(QWidget& widget, const QString& what) {
    for (const bool dark : {false, true}) {
      theme_.choose(dark ? ThemeChoice::Dark : ThemeChoice::Light);
      QApplication::sendPostedEvents();
      const QString name = QStringLiteral("%1-%2-%3-%4.png")
                               .arg(what, dark ? QStringLiteral("dark") : QStringLiteral("light"))
                               .arg(qRound(widget.devicePixelRatioF() * 100))
                               .arg(language_);
      widget.grab().save(folder_.filePath(name)) ? ++written : ++failed;
    }
  }

  int written = 0, failed = 0;

 private:
  QDir folder_;
  QString language_;
  Theme& theme_;
};

class WindowFixture;
// The pictures of docs/guide. False: one could not be written.
bool take_guide(const QDir& folder, WindowFixture& fixture);

// Of dialogs with the real program behind them. `program`: the path of neuroshardd.
void take_diagnostics(Camera& camera, const Theme& theme, const QString& program);
void take_partition(Camera& camera, const Theme& theme, const QString& program);

}  // namespace neuroshard::ui
