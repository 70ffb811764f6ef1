// Every page in a language a third longer than English, left to right and mirrored, normal and narrow: no
// text is cut off, and all that can have the focus has a name.
#include <QtTest>

#include "tests/support/test_main.h"
#include "tests/unit/ui/window/layout_checks.h"
#include "tests/unit/ui/window/window_fixture.h"
#include "ui/text/translation.h"
#include "ui/widgets/cell_grid.h"

using namespace neuroshard::ui;

class LayoutTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() { install_translation(*qApp, QStringLiteral("pseudo")); }
  void cleanup() { QApplication::setLayoutDirection(Qt::LayoutDirectionAuto); }  // as the language has it

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
    // Layouts within layouts take several turns of the event loop to give each line its room.
    QStringList cut;
    (void)QTest::qWaitFor([&] { return (cut = clipped(fixture.window.get())).isEmpty(); });
    QVERIFY2(cut.isEmpty(), qPrintable("cut off:\n" + cut.join('\n')));
    const Page* page = fixture.window->page(key);
    QVERIFY2(page->title().startsWith('['), qPrintable(page->title()));
    QVERIFY2(page->minimumSizeHint().width() <= fixture.window->width() - 58,
             qPrintable(QString("wider than the window: %1").arg(page->minimumSizeHint().width())));
  }
  // In a language that is written from right to left the window is its own mirror image: rail and titles on
  // the right, controls on the left, and what is painted by hand follows.
  void a_language_from_right_to_left_mirrors_the_window() {
    for (const bool mirrored : {false, true}) {
      if (mirrored) {
        install_translation(*qApp, QStringLiteral("pseudo-rtl"));
        QTRY_COMPARE(QApplication::layoutDirection(), Qt::RightToLeft);
      }
      WindowFixture fixture;
      MainWindow& window = *fixture.window;
      window.show();
      for (QWidget* widget : window.findChildren<QWidget*>())
        QVERIFY2(widget->layoutDirection() == (mirrored ? Qt::RightToLeft : Qt::LeftToRight) ||
                     qobject_cast<QAbstractScrollArea*>(widget) != nullptr,
                 qPrintable(describe(widget)));
      const auto centre = [&window](const char* name) {
        const auto* widget = window.findChild<QWidget*>(QString::fromLatin1(name));
        return widget->mapTo(&window, widget->rect().center()).x();
      };
      const int middle = window.width() / 2;
      QCOMPARE(centre("rail") > middle, mirrored);
      QCOMPARE(centre("contribute") < middle, mirrored);
      QCOMPARE(centre("main_menu") < centre("contribute"), mirrored);
      window.open_page("network");
      auto* map = window.findChild<CellGrid*>("layer_map");
      QTRY_VERIFY(!map->content().columns.isEmpty());
      QCOMPARE(map->cell_rect(1, 0).center().x() > map->cell_rect(1, 3).center().x(), mirrored);
    }
  }
};

NS_UI_TEST(LayoutTest)
#include "test_layout.moc"
