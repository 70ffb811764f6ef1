// ns_screenshots FOLDER [LANGUAGE]: a PNG of every page, light and dark, normal and narrow, at the scale that
// QT_SCALE_FACTOR says. The data is the demo core's: the same on every run.
#include <QAbstractAnimation>
#include <QApplication>
#include <QDir>
#include <QElapsedTimer>
#include <QEventLoop>
#include <QTimer>
#include <cstdio>

#include "tests/unit/ui/window/window_fixture.h"
#include "ui/text/translation.h"

using namespace neuroshard::ui;

namespace {

// Answers come through the event loop, ten times a second at most: long enough for a page to have all of its
// data.
void settle() {
  QEventLoop loop;
  QTimer::singleShot(700, &loop, &QEventLoop::quit);
  loop.exec();
}

}  // namespace

int main(int count, char** arguments) {
  QApplication application(count, arguments);
  if (count < 2) {
    std::fprintf(stderr, "usage: ns_screenshots FOLDER [en|pseudo|pseudo-rtl]\n");
    return 2;
  }
  const QString language = count > 2 ? QString::fromLocal8Bit(arguments[2]) : QStringLiteral("en");
  QLocale::setDefault(QLocale(QLocale::English, QLocale::UnitedKingdom));
  install_translation(application, language);
  if (language == QLatin1String("pseudo-rtl")) QApplication::setLayoutDirection(Qt::RightToLeft);
  const QDir folder(QString::fromLocal8Bit(arguments[1]));
  if (!folder.mkpath(QStringLiteral("."))) {
    std::fprintf(stderr, "the folder cannot be made\n");
    return 1;
  }
  WindowFixture fixture;
  fixture.window->show();
  int written = 0;
  for (const QSize size : {QSize(1280, 800), QSize(800, 600)}) {
    fixture.window->resize(size);
    for (const QString& key : fixture.window->page_keys()) {
      fixture.window->open_page(key);
      settle();
      for (const bool dark : {false, true}) {
        fixture.theme.choose(dark ? ThemeChoice::Dark : ThemeChoice::Light);
        QApplication::sendPostedEvents();
        const QPixmap picture = fixture.window->grab();
        const QString name = QStringLiteral("%1-%2-%3-%4-%5.png")
                                 .arg(key, dark ? QStringLiteral("dark") : QStringLiteral("light"))
                                 .arg(size.width())
                                 .arg(qRound(fixture.window->devicePixelRatioF() * 100))
                                 .arg(language);
        if (!picture.save(folder.filePath(name))) return 1;
        ++written;
      }
    }
  }
  std::printf("%d pictures\n", written);
  return 0;
}
