// Bars, rings and tables: what is drawn has the size of its value, what is exported is what is shown, and a
// selected row looks as before but for its ground.
#include <QAction>
#include <QApplication>
#include <QContextMenuEvent>
#include <QFileDialog>
#include <QHeaderView>
#include <QLineEdit>
#include <QMenu>
#include <QScrollBar>
#include <QStandardItemModel>
#include <QtTest>

#include "tests/support/test_main.h"
#include "ui/theme/theme.h"
#include "ui/widgets/bar_chart.h"
#include "ui/widgets/chart_style.h"
#include "ui/widgets/donut.h"
#include "ui/widgets/export_button.h"
#include "ui/widgets/share_bar.h"
#include "ui/widgets/table_view.h"

using namespace neuroshard::ui;

namespace {

class LightScheme final : public SchemeSource {
 public:
  Scheme scheme() const override { return Scheme::Light; }
};

bool near_colour(const QColor& a, const QColor& b) {
  return std::abs(a.red() - b.red()) + std::abs(a.green() - b.green()) + std::abs(a.blue() - b.blue()) < 30;
}

int pixels_of(const QImage& image, const QColor& colour) {
  int found = 0;
  for (int y = 0; y < image.height(); ++y)
    for (int x = 0; x < image.width(); ++x) found += near_colour(image.pixelColor(x, y), colour) ? 1 : 0;
  return found;
}

// The rectangle of everything but the ground, within the room.
QRect ink(const QImage& image, const QRect& room) {
  const QColor ground = image.pixelColor(room.center().x(), room.top());
  QRect found;
  for (int y = room.top(); y <= std::min(room.bottom(), image.height() - 1); ++y)
    for (int x = std::max(0, room.left()); x <= std::min(room.right(), image.width() - 1); ++x)
      if (std::abs(image.pixelColor(x, y).lightness() - ground.lightness()) > 60) found |= QRect(x, y, 1, 1);
  return found;
}

void settle(QWidget& widget) {
  widget.show();
  QVERIFY(QTest::qWaitForWindowExposed(&widget));
}

const std::vector<SharePart> half_third_sixth = {{"a", 3, "3 s"}, {"b", 2, "2 s"}, {"c", 1, "1 s"}};

// Answers the next file dialog with this path.
void choose_path(const QString& path) {
  QTimer::singleShot(0, qApp, [path] {
    for (QWidget* widget : QApplication::topLevelWidgets())
      if (auto* dialog = qobject_cast<QFileDialog*>(widget); dialog != nullptr && dialog->isVisible()) {
        dialog->selectFile(path);
        dialog->findChild<QLineEdit*>("fileNameEdit")->setText(path);
        QMetaObject::invokeMethod(dialog, "accept");
        return;
      }
    choose_path(path);
  });
}

QByteArray bytes_of(const QString& path) {
  QFile file(path);
  return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

}  // namespace

class ChartsTest : public QObject {
  Q_OBJECT
 public:
  ChartsTest() : theme_(std::make_unique<LightScheme>()) {}

 private:
  void check_shares(const QImage& image) {
    const double a = pixels_of(image, theme_.series(0)), b = pixels_of(image, theme_.series(1)),
                 c = pixels_of(image, theme_.series(2));
    QVERIFY(c > 100);
    QVERIFY2(std::abs(a / (a + b + c) - 3 / 6.0) < 0.04, qPrintable(QString::number(a / (a + b + c))));
    QVERIFY2(std::abs(b / (a + b + c) - 2 / 6.0) < 0.04, qPrintable(QString::number(b / (a + b + c))));
  }

  Theme theme_;

 private Q_SLOTS:
  void initTestCase() { QApplication::setAttribute(Qt::AA_DontUseNativeDialogs); }

  void a_ring_shows_the_shares() {
    QWidget card;
    card.resize(500, 400);
    Donut donut(theme_, "Use of the disk", &card);
    donut.resize(420, 140);
    donut.set_parts({{"a", 1, "1 s"}, {"b", 1, "1 s"}, {"c", 1, "1 s"}});
    settle(card);
    donut.set_parts(half_third_sixth);  // in place
    check_shares(donut.grab().toImage());
    QCOMPARE(donut.accessibleName(), QString("Use of the disk"));
    QVERIFY(donut.accessibleDescription().contains("b: 2 s, 33"));
    QCOMPARE(csv_of(donut.parts()).section("\r\n", 0, 1), QString("Part,Value,Share\r\na,3,0.5"));
    // Narrow: the legend goes below instead of being cut.
    donut.resize(180, 260);
    QTRY_VERIFY(donut.findChild<ShareLegend*>()->y() > 100);
  }
  void a_stacked_bar_shows_the_shares() {
    ShareBar bar(theme_, "Where a step's time goes");
    bar.resize(400, 120);
    bar.set_parts(half_third_sixth);
    settle(bar);
    check_shares(bar.grab().toImage());
    QVERIFY(bar.accessibleDescription().contains("a: 3 s, 50"));
    bar.set_parts({{"a", 0, "-"}, {"b", 0, "-"}});  // nothing known: no shares, no division by zero
    QVERIFY(!bar.accessibleDescription().contains("nan"));
    bar.grab();
  }
  void bars_have_the_height_of_their_values() {
    BarChart bars(theme_, "Experts by load", "Load", "Experts");
    bars.resize(400, 240);
    bars.set_bars({"0.0", "0.5", "1.0"}, {1, 2, 4});
    settle(bars);
    const QImage image = bars.grab().toImage();
    std::map<int, int> heights;  // by column
    for (int x = 0; x < image.width(); ++x)
      for (int y = 0; y < image.height(); ++y)
        if (near_colour(image.pixelColor(x, y), theme_.series(0))) ++heights[x];
    QVERIFY(heights.size() > 60);
    const int left = heights.begin()->second, right = std::prev(heights.end())->second;
    QVERIFY2(std::abs(right / double(left) - 4) < 0.4, qPrintable(QString("%1 %2").arg(left).arg(right)));
    QCOMPARE(bars.csv(), QString("Load,Experts\r\n0.0,1\r\n0.5,2\r\n1.0,4\r\n"));
    QVERIFY(bars.accessibleDescription().contains("1.0: 4"));
  }
  void a_chart_is_exported_as_picture_and_values() {
    QTemporaryDir folder;
    BarChart bars(theme_, "Distance by layer", "Layer", "relative");
    bars.set_whole_numbers(false);
    bars.resize(300, 200);
    bars.set_bars({"layer 0", "layer 1"}, {0.25, 0.5});
    settle(bars);
    ExportButton button(
        theme_, "Distance by layer", "distance", [&bars] { return bars.csv(); },
        [this, &bars] { return picture_of(bars, theme_); });
    QVERIFY(button.accessibleName().contains("Distance by layer"));
    choose_path(folder.filePath("d.csv"));
    button.menu()->findChild<QAction*>("export_csv")->trigger();
    QCOMPARE(bytes_of(folder.filePath("d.csv")),
             QByteArray("Layer,relative\r\nlayer 0,0.25\r\nlayer 1,0.5\r\n"));
    choose_path(folder.filePath("d.png"));
    button.menu()->findChild<QAction*>("export_png")->trigger();
    const QImage picture(folder.filePath("d.png"));
    QCOMPARE(picture.size(), QSize(600, 400));
    QVERIFY(pixels_of(picture, theme_.series(0)) > 1000);
  }
  void a_table_is_exported_as_it_is_shown() {
    QTemporaryDir folder;
    QStandardItemModel model(0, 2);
    model.setHorizontalHeaderLabels({"Name", "Value"});
    for (const char* name : {"b", "a, quoted", "=SUM(A1)"})
      model.appendRow({new QStandardItem(name), new QStandardItem("1")});
    model.sort(0);
    TableView table("Things");
    table.setModel(&model);
    settle(table);
    QContextMenuEvent ask(QContextMenuEvent::Keyboard, table.viewport()->rect().center(),
                          table.viewport()->mapToGlobal(table.viewport()->rect().center()));
    QApplication::sendEvent(table.viewport(), &ask);
    auto* menu = table.findChild<QMenu*>();
    QVERIFY(menu != nullptr);
    QVERIFY(menu->actions().contains(table.export_action()));
    QVERIFY(table.export_action()->isEnabled());
    QVERIFY(!table.copy_action()->isEnabled());  // nothing is selected
    menu->close();
    choose_path(folder.filePath("things.csv"));
    table.export_action()->trigger();
    QCOMPARE(bytes_of(folder.filePath("things.csv")),
             QByteArray("Name,Value\r\n'=SUM(A1),1\r\n\"a, quoted\",1\r\nb,1\r\n"));
  }
  // A heading ends, or begins, where the cells below it do, in either direction.
  void headings_stand_over_their_columns() {
    QStandardItemModel model(1, 2);
    model.setHorizontalHeaderLabels({"Here", "Here"});
    for (const int column : {0, 1}) model.setItem(0, column, new QStandardItem("Here"));
    const Qt::Alignment right = Qt::AlignRight | Qt::AlignVCenter;
    model.item(0, 1)->setTextAlignment(right);
    model.horizontalHeaderItem(1)->setTextAlignment(right);
    theme_.apply(*qApp);
    TableView table("Things");
    table.setModel(&model);
    table.resize(400, 120);
    table.setColumnWidth(0, 200);
    table.setSortingEnabled(true);
    table.setFocusPolicy(Qt::NoFocus);  // its frame would be taken for text
    settle(table);
    for (const bool mirrored : {false, true}) {
      QApplication::setLayoutDirection(mirrored ? Qt::RightToLeft : Qt::LeftToRight);
      QTest::qWait(0);
      const QImage headings = table.horizontalHeader()->viewport()->grab().toImage();
      const QImage cells = table.viewport()->grab().toImage();
      for (const int column : {0, 1}) {
        const QRect cell = table.visualRect(model.index(0, column));
        // Below the arrow of the sorting and above the line.
        const QRect heading = ink(headings, {cell.left(), 11, cell.width(), headings.height() - 14});
        const QRect text = ink(cells, cell);
        QVERIFY(heading.width() > 20 && text.width() > 20);
        const bool at_right = (column == 1) != mirrored;
        const int apart = at_right ? heading.right() - text.right() : heading.left() - text.left();
        QVERIFY2(std::abs(apart) <= 2,
                 qPrintable(QString("column %1, mirrored %2: %3").arg(column).arg(mirrored).arg(apart)));
      }
    }
    QApplication::setLayoutDirection(Qt::LeftToRight);
  }
  // From right to left a cell's text begins at its right edge, and a legend's name beside its colour.
  void the_last_column_is_never_cut_off() {
    QStandardItemModel model(1, 2);
    model.setHorizontalHeaderLabels({"Node", "Address"});
    model.setItem(0, 0, new QStandardItem("a node with a long name"));
    model.setItem(0, 1, new QStandardItem("192.0.2.10:9000"));
    TableView table("Things");
    table.setModel(&model);
    auto* head = table.horizontalHeader();
    head->setSectionResizeMode(QHeaderView::ResizeToContents);
    table.resize(600, 200);
    table.show();
    // With room, it takes what is left.
    QTRY_COMPARE(head->length(), table.viewport()->width());
    const int needed = head->sectionSize(0) + table.sizeHintForIndex(model.index(0, 1)).width();
    // A little less than it needs: the rest is scrolled to.
    table.resize(needed - 20, 200);
    QTRY_VERIFY(head->length() >= needed);
    QVERIFY(table.horizontalScrollBar()->maximum() > 0);
    table.resize(600, 200);
    QTRY_COMPARE(head->length(), table.viewport()->width());
  }
  void text_begins_where_the_language_does() {
    theme_.apply(*qApp);
    QStandardItemModel model(1, 1);
    model.setItem(0, 0, new QStandardItem("Name"));
    TableView table("Things");
    table.setModel(&model);
    table.resize(400, 100);
    ShareLegend legend(theme_);
    legend.set_parts({{"Name", 1, ""}});
    legend.resize(400, 24);
    const auto dark = [](const QImage& image) {
      QRect found;
      for (int y = 0; y < std::min(30, image.height()); ++y)
        for (int x = 0; x < image.width(); ++x)
          if (image.pixelColor(x, y).lightness() < 90 && image.pixelColor(x, y).saturation() < 90)
            found |= QRect(x, y, 1, 1);
      return found;
    };
    settle(table);
    settle(legend);
    for (const bool mirrored : {false, true}) {
      // The application's: painters go by it.
      QApplication::setLayoutDirection(mirrored ? Qt::RightToLeft : Qt::LeftToRight);
      QTest::qWait(0);
      const QRect cell = table.visualRect(model.index(0, 0));
      const QRect text = dark(table.viewport()->grab().toImage());
      QVERIFY(text.width() > 20);
      const int gap = mirrored ? cell.right() - text.right() : text.left() - cell.left();
      QVERIFY2(gap >= 6 && gap <= 12, qPrintable(QString::number(gap)));
      // The muted share at the far end is lighter than the name.
      const QRect name = dark(legend.grab().toImage());
      QVERIFY2(mirrored ? name.right() > 360 && name.left() > 200 : name.left() < 40 && name.right() < 200,
               qPrintable(QString("%1 to %2").arg(name.left()).arg(name.right())));
    }
  }
  void cleanup() { QApplication::setLayoutDirection(Qt::LeftToRight); }
  void selecting_a_row_does_not_move_its_text() {
    QStandardItemModel model(1, 2);
    model.setItem(0, 0, new QStandardItem("Wide text"));
    auto* number = new QStandardItem("1,234");
    number->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
    model.setItem(0, 1, number);
    theme_.apply(*qApp);
    TableView table("Things");
    table.setModel(&model);
    table.resize(400, 100);
    settle(table);
    // The place of the dark pixels, which are the text's.
    const auto text = [&table] {
      const QImage image = table.viewport()->grab().toImage();
      QRect found;
      for (int y = 0; y < 32; ++y)
        for (int x = 0; x < image.width(); ++x)
          if (image.pixelColor(x, y).lightness() < 90) found |= QRect(x, y, 1, 1);
      return found;
    };
    const QRect before = text();
    QVERIFY(before.width() > 60);
    table.selectRow(0);
    table.clearFocus();
    table.selectionModel()->setCurrentIndex({}, QItemSelectionModel::NoUpdate);
    QCOMPARE(text(), before);
    const QImage selected = table.viewport()->grab().toImage();
    QVERIFY(near_colour(selected.pixelColor(150, 3), theme_.color(Token::Selection)));
  }
};

NS_UI_TEST(ChartsTest)
#include "test_charts.moc"
