// Every page in a language a third longer than English, left to right and mirrored, normal and narrow: no
// text is cut off, and all that can have the focus has a name.
#include <QtTest>

#include "tests/unit/ui/window/layout_checks.h"
#include "tests/unit/ui/window/window_fixture.h"
#include "ui/text/translation.h"

using namespace neuroshard::ui;

class LayoutTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() { install_translation(*qApp, QStringLiteral("pseudo")); }
  void cleanup() { QApplication::setLayoutDirection(Qt::LeftToRight); }

  void pseudo_keeps_arguments() {
    QCOMPARE(pseudo("Step %1 of %2"), QString::fromUtf8("[Šťép %1 öf %2··]"));
    QCOMPARE(pseudo(""), QString());
    QVERIFY(pseudo("%n").contains("%n"));
  }
  void every_page_is_translatable_and_has_room_data() {
    QTest::addColumn<QString>("key");
    QTest::addColumn<int>("width");
    QTest::addColumn<bool>("mirrored");
    WindowFixture fixture;
    for (const QString& key : fixture.window->page_keys())
      for (const int width : {1280, 800})
        for (const bool mirrored : {false, true})
          QTest::newRow(qPrintable(QString("%1 %2%3").arg(key).arg(width).arg(mirrored ? " mirrored" : "")))
              << key << width << mirrored;
  }
  void every_page_is_translatable_and_has_room() {
    QFETCH(QString, key);
    QFETCH(int, width);
    QFETCH(bool, mirrored);
    if (mirrored) QApplication::setLayoutDirection(Qt::RightToLeft);
    WindowFixture fixture;
    fixture.window->resize(width, 700);
    fixture.window->show();
    fixture.window->open_page(key);
    QTRY_VERIFY(fixture.bridge.snapshot() != nullptr);
    QTest::qWait(300);  // more of the page's answers may come; whatever is shown must have room
    QStringList without = nameless(fixture.window.get());
    QVERIFY2(without.isEmpty(), qPrintable("without a name: " + without.join('\n')));
    const QStringList cut = clipped(fixture.window.get());
    QVERIFY2(cut.isEmpty(), qPrintable("cut off:\n" + cut.join('\n')));
    const Page* page = fixture.window->page(key);
    QVERIFY2(page->title().startsWith('['), qPrintable(page->title()));
    QVERIFY2(page->minimumSizeHint().width() <= fixture.window->width() - 58,
             qPrintable(QString("wider than the window: %1").arg(page->minimumSizeHint().width())));
  }
};

QTEST_MAIN(LayoutTest)
#include "test_layout.moc"
