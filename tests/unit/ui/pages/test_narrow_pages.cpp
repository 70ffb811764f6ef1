// The smallest window shows every page without a scroll bar at the bottom.
#include <QtTest>

#include "tests/support/test_main.h"
#include "tests/unit/ui/pages/page_fixture.h"
#include "ui/pages/checkpoints_page.h"
#include "ui/pages/data_page.h"
#include "ui/pages/earnings_page.h"
#include "ui/pages/experts_page.h"
#include "ui/pages/logs_page.h"
#include "ui/pages/network_page.h"
#include "ui/pages/overview_page.h"
#include "ui/pages/playground_page.h"
#include "ui/pages/settings_page.h"
#include "ui/pages/training_page.h"

using namespace neuroshard;
using namespace neuroshard::ui;

namespace {

constexpr int room =
    640 - 58 - 12;  // of the window, without the icons of the pages and the scroll bar beside the page

template <class P>
QWidget* show(PageFixture& fixture) {
  return &fixture.show<P>();
}

class TestNarrowPages : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_page_fits_the_smallest_window_data() {
    QTest::addColumn<int>("page");
    const char* names[] = {"overview",    "network", "training",   "experts",  "earnings",
                           "checkpoints", "data",    "playground", "settings", "logs"};
    for (int i = 0; i < int(std::size(names)); ++i) QTest::newRow(names[i]) << i;
  }
  void a_page_fits_the_smallest_window() {
    QFETCH(int, page);
    using Show = QWidget* (*)(PageFixture&);
    const Show all[] = {show<OverviewPage>, show<NetworkPage>,     show<TrainingPage>, show<ExpertsPage>,
                        show<EarningsPage>, show<CheckpointsPage>, show<DataPage>,     show<PlaygroundPage>,
                        show<SettingsPage>, show<LogsPage>};
    PageFixture fixture;
    QWidget* shown = all[page](fixture);
    shown->resize(room, 400);
    QTest::qWait(50);
    std::string widest;
    int width = 0;
    for (const QWidget* one : shown->findChildren<QWidget*>())
      if (one->isVisible() && one->minimumSizeHint().width() > width && one->children().empty()) {
        width = one->minimumSizeHint().width();
        widest = one->metaObject()->className() + (" " + one->objectName()).toStdString();
      }
    QVERIFY2(shown->minimumSizeHint().width() <= room,
             qPrintable(QStringLiteral("%1 of %2 pixels; the widest part is %3, %4")
                            .arg(shown->minimumSizeHint().width())
                            .arg(room)
                            .arg(QString::fromStdString(widest))
                            .arg(width)));
  }
};

}  // namespace

NS_UI_TEST(TestNarrowPages)
#include "test_narrow_pages.moc"
