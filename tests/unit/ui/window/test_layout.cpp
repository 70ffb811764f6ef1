// Every page in a language a third longer than English, left to right and mirrored, normal and narrow: no
// text is cut off, and all that can have the focus has a name.
#include <QScrollArea>
#include <QScrollBar>
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
  // The card about the members' memory, with a long answer to what would change.
  void what_if_has_room_data() {
    QTest::addColumn<int>("width");
    QTest::newRow("wide") << 1280;
    QTest::newRow("narrow") << 800;
  }
  void what_if_has_room() {
    QFETCH(int, width);
    WindowFixture fixture;
    MainWindow& window = *fixture.window;
    neuroshard::testing::join_demo_network(*fixture.node, fixture.clock);
    neuroshard::node::WhatIf& answer = fixture.node->decided.what_if;
    answer.counts = true;
    answer.now.memory = answer.then.memory = *fixture.node->snapshot()->rounds.memory;
    answer.then.asks = neuroshard::node::SizeChange::Down;
    answer.then.lacking_bytes = 4'000'000'000;
    answer.then.lacking_members = 2;
    answer.part = neuroshard::node::PartWithout{2, 3, 1, 1, 3, false};
    answer.votes = neuroshard::node::VotesWithout{24, 12, false, 1, 1};
    window.resize(width, 700);
    window.show();
    window.open_page("network");
    const auto* card = window.findChild<QWidget*>("capacity_card");
    QTRY_VERIFY(card->isVisible());
    window.findChild<QAbstractButton*>("what_if_leave")->click();
    const auto* told = window.findChild<QLabel*>("what_if_answer");
    QTRY_VERIFY(told->isVisible());
    QVERIFY2(told->text().startsWith('['), qPrintable(told->text()));
    QVERIFY(nameless(card).isEmpty());
    QStringList cut;
    (void)QTest::qWaitFor([&] { return (cut = clipped(card)).isEmpty(); });
    QVERIFY2(cut.isEmpty(), qPrintable("cut off:\n" + cut.join('\n')));
    for (const QScrollArea* area : window.findChildren<QScrollArea*>())
      QVERIFY(!area->isVisible() || area->horizontalScrollBar()->maximum() == 0);
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
