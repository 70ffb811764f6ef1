// The rules that keep the window fluid, as structure: it never waits for the core, it paints no more often
// than the bridge ticks, a chart has no more points than pixels, and nothing that waits grows without end.
// Times are measured by tests/bench/gui.
#include <QAbstractButton>
#include <QElapsedTimer>
#include <QMenu>
#include <QSignalSpy>
#include <QToolButton>
#include <QtTest>
#include <atomic>
#include <thread>

#include "core/node/network_view.h"
#include "tests/support/test_main.h"
#include "tests/unit/ui/window/window_fixture.h"
#include "ui/models/log_feed.h"
#include "ui/models/log_model.h"
#include "ui/models/text_inbox.h"
#include "ui/pages/setting_row.h"
#include "ui/text/translation.h"
#include "ui/widgets/cell_grid.h"
#include "ui/widgets/plot_widget.h"

using namespace neuroshard;
using namespace neuroshard::ui;

namespace {

constexpr std::uint64_t many_steps = 100'000;

// The number of times that each chart and each map was painted.
class PaintCount final : public QObject {
 public:
  explicit PaintCount(QWidget* root) {
    for (QWidget* widget : root->findChildren<QWidget*>())
      if (qobject_cast<PlotWidget*>(widget) != nullptr || qobject_cast<CellGrid*>(widget) != nullptr)
        widget->installEventFilter(this);
  }
  bool eventFilter(QObject* watched, QEvent* event) override {
    if (event->type() == QEvent::Paint) ++paints[watched];
    return false;
  }
  std::map<QObject*, int> paints;
};

// A core's thread that publishes as fast as it can until it goes out of scope.
class Flood {
 public:
  explicit Flood(testing::FakeNode& node)
      : thread_([this, &node] {
          for (std::uint64_t i = 1; !end_; ++i) {
            node.publish([i](node::Snapshot& next) { next.training.step = 1204 + i; });
            node.emit(node::StepFinished{});
            published_ = i;
          }
        }) {}
  ~Flood() {
    end_ = true;
    thread_.join();
  }
  std::uint64_t published() const { return published_; }

 private:
  std::atomic<bool> end_{false};
  std::atomic<std::uint64_t> published_{0};
  std::thread thread_;
};

// Without those that are there for a node in a network only.
QList<PlotWidget*> shown_plots(const Page* page) {
  QList<PlotWidget*> plots;
  for (PlotWidget* plot : page->findChildren<PlotWidget*>())
    if (plot->isVisibleTo(page)) plots << plot;
  return plots;
}

}  // namespace

class BudgetsTest : public QObject {
  Q_OBJECT

  std::unique_ptr<WindowFixture> fixture_;

  template <class W>
  W* find(const char* name) {
    W* found = fixture_->window->findChild<W*>(QString::fromLatin1(name));
    if (found == nullptr) qFatal("there is no %s", name);
    return found;
  }
  bool asked(const char* what) {
    const auto all = fixture_->node->queries();
    return std::find(all.begin(), all.end(), std::string(what)) != all.end();
  }
  bool commanded(const char* what) {
    const auto all = fixture_->node->commands();
    return std::find(all.begin(), all.end(), std::string(what)) != all.end();
  }

 private Q_SLOTS:
  void initTestCase() { install_translation(*qApp, QStringLiteral("en")); }
  void init() {
    fixture_ = std::make_unique<WindowFixture>();
    fixture_->window->show();
  }
  void cleanup() { fixture_.reset(); }

  // A call that waited would never come back: this core answers nothing until the end.
  void the_window_never_waits_for_the_core() {
    testing::FakeNode& node = *fixture_->node;
    node.hold_commands();
    node.hold_queries();
    for (const QString& key : fixture_->window->page_keys()) {
      fixture_->window->open_page(key);
      QCoreApplication::sendPostedEvents();
      QCOMPARE(fixture_->window->current_page(), key);
    }
    for (const char* query : {"series loss", "slots", "experts", "checkpoints", "data", "settings", "logs"})
      QVERIFY2(asked(query), query);
    QTest::mouseClick(find<QAbstractButton>("contribute"), Qt::LeftButton);
    find<QToolButton>("snooze")->menu()->actions().first()->trigger();
    find<QAction>("finish")->trigger();
    fixture_->window->open_page("training");
    QTest::mouseClick(find<QAbstractButton>("training_stop"), Qt::LeftButton);
    fixture_->window->open_page("checkpoints");
    QTest::mouseClick(find<QAbstractButton>("save"), Qt::LeftButton);
    for (const char* command : {"contribute off", "snooze 900", "finish", "stop training", "save"})
      QVERIFY2(commanded(command), command);
    // The window lives: it shows what the core publishes meanwhile.
    node.publish([](node::Snapshot& next) { next.state = node::RunState::Idle; });
    QTRY_VERIFY(find<QToolButton>("state_pill")->text().contains("Idle"));
    QCOMPARE(node.callers(), std::set<std::thread::id>{std::this_thread::get_id()});
    // The answers come late and from another thread, and are shown.
    std::thread late([&node] {
      node.release_queries();
      node.finish_commands();
    });
    late.join();
    fixture_->window->open_page("network");
    QTRY_VERIFY(!find<CellGrid>("layer_map")->content().rows.isEmpty());
  }
  void a_core_that_never_answers_is_not_asked_without_end() {
    fixture_->node->hold_queries();
    const QStringList keys = fixture_->window->page_keys();
    for (int round = 0; round < 50; ++round)
      for (const QString& key : keys) fixture_->window->open_page(key);
    QVERIFY2(fixture_->node->queries().size() <= Bridge::max_open_queries,
             qPrintable(QString::number(fixture_->node->queries().size())));
  }
  void paints_are_no_more_than_ticks_data() {
    QTest::addColumn<QString>("key");
    for (const char* key : {"overview", "training", "network", "experts"}) QTest::newRow(key) << key;
  }
  void paints_are_no_more_than_ticks() {
    QFETCH(QString, key);
    // The rounds and the traffic of a node in a network.
    testing::join_demo_network(*fixture_->node, fixture_->clock);
    node::NetworkView& network = fixture_->node->network;
    network.taking_part = true;
    for (int i = 0; i < 300; ++i)
      network.traffic.push_back({WallTime(std::chrono::seconds(10 * i)), 1000.0 * i, 500.0 * i});
    fixture_->window->open_page(key);
    const Page* page = fixture_->window->page(key);
    const QList<PlotWidget*> plots = shown_plots(page);
    QTRY_VERIFY(std::all_of(plots.begin(), plots.end(), [](PlotWidget* plot) { return !plot->empty(); }));
    QTest::qWait(0);
    PaintCount count(fixture_->window.get());
    QSignalSpy ticks(&fixture_->bridge, &Bridge::snapshot_changed);
    std::map<QObject*, std::unique_ptr<QSignalSpy>> answers;
    for (PlotWidget* plot : plots)
      answers[plot] = std::make_unique<QSignalSpy>(plot, &PlotWidget::data_changed);
    QElapsedTimer clock;
    clock.start();
    std::uint64_t published = 0;
    {
      Flood flood(*fixture_->node);
      QTRY_VERIFY_WITH_TIMEOUT(ticks.count() >= 8, 20'000);
      published = flood.published();
    }
    const auto possible = clock.elapsed() / Bridge::tick_period.count() + 2;
    QVERIFY2(ticks.count() <= possible, qPrintable(QString("%1 of %2").arg(ticks.count()).arg(possible)));
    QVERIFY2(published > 10 * std::uint64_t(ticks.count()), qPrintable(QString::number(published)));
    for (const auto& [widget, paints] : count.paints) {
      const auto spy = answers.find(widget);
      const auto most = ticks.count() + (spy == answers.end() ? 0 : spy->second->count()) + 1;
      QVERIFY2(paints <= most, qPrintable(QString("%1: %2 paints, %3 ticks and answers")
                                              .arg(widget->metaObject()->className())
                                              .arg(paints)
                                              .arg(most)));
    }
  }
  void a_hundred_thousand_steps_are_no_more_points_than_pixels() {
    testing::FakeNode& node = *fixture_->node;
    for (auto& [name, buckets] : node.series) {
      buckets.clear();
      for (std::uint64_t step = 1; step <= many_steps; ++step) {
        const double value = 2 + std::sin(double(step) / 300) + double(step % 17) / 40;
        buckets.push_back({step, 1, 1, value, value, value});
      }
    }
    node.publish([](node::Snapshot& next) { next.training.step = many_steps; });
    for (const char* key : {"training", "overview"}) {
      fixture_->window->open_page(key);
      const QList<PlotWidget*> plots = shown_plots(fixture_->window->page(key));
      QVERIFY(!plots.isEmpty());
      for (PlotWidget* plot : plots) {
        QTRY_VERIFY(!plot->empty() && plot->series().front().points.back().x > many_steps * 0.9);
        // Once more, should the chart have become narrower since it was asked for.
        const auto fits = [plot](const PlotSeries& one) {
          return one.points.size() <= 2 * std::size_t(plot->width());
        };
        QTRY_VERIFY(std::all_of(plot->series().begin(), plot->series().end(), fits));
        plot->grab();
        const int pixels = plot->width();
        for (const PlotSeries& one : plot->series()) {
          QVERIFY(fits(one));
          // And not a handful.
          QVERIFY(one.points.size() >= std::size_t(pixels) / 2);
        }
        for (const PlotDrawing& drawing : plot->frame().drawings) {
          const auto points = qsizetype(drawing.points.size());
          QVERIFY(points <= 2 * pixels + 2);  // and one beyond each edge
          QVERIFY(drawing.line.size() <= points);
          QVERIFY(drawing.smoothed.size() <= 2 * pixels + 2);
          QVERIFY(drawing.band.size() <= 2 * points);  // above and below
        }
      }
    }
  }
  // Two seconds of a core that writes 10,000 lines in each: all of them shown, in few batches, and never more
  // than a page is asked for at a time.
  void ten_thousand_log_lines_a_second_are_few_batches() {
    testing::FakeNode& node = *fixture_->node;
    node.logs.clear();
    LogModel model;
    LogFeed feed(fixture_->bridge, model);
    QSignalSpy inserted(&model, &QAbstractItemModel::rowsInserted);
    constexpr int lines = 20'000, burst = 100;
    QTimer writer;
    QElapsedTimer clock;
    connect(&writer, &QTimer::timeout, &writer, [&node, &writer] {
      for (int i = 0; i < burst; ++i)
        node.logs.push_back(
            {node.logs.size() + 1, WallTime{}, {LogLevel::Info, "train", "step " + std::to_string(i)}});
      if (node.logs.size() == lines) writer.stop();
    });
    clock.start();
    feed.start();
    writer.start(burst / 10);
    QTRY_COMPARE_WITH_TIMEOUT(model.rowCount(), lines, 30'000);
    const auto batches = clock.elapsed() / LogFeed::period.count() + 2;
    QVERIFY2(inserted.count() <= batches, qPrintable(QString("%1 of %2").arg(inserted.count()).arg(batches)));
    for (const auto& call : inserted)
      QVERIFY(call[2].toInt() - call[1].toInt() + 1 <= int(LogFeed::max_waiting));
  }
  // Opening a page finds it made: the click's event makes no widget.
  void pages_are_made_before_they_are_opened() {
    QTRY_VERIFY_WITH_TIMEOUT(fixture_->window->pages_made(), 30'000);
    const auto rows = [this] { return fixture_->window->findChildren<SettingRow*>().size(); };
    QTRY_COMPARE(rows(), static_cast<qsizetype>(fixture_->node->settings.size()));
    QVERIFY(rows() > 10);
    QCOMPARE(fixture_->window->findChildren<Page*>().size(), fixture_->window->page_keys().size());
    for (const QString& key : fixture_->window->page_keys()) {
      const Page* page = fixture_->window->page(key);
      const auto before = page->findChildren<QWidget*>().size();
      fixture_->window->open_page(key);
      QVERIFY(page->isVisible());
      QCOMPARE(page->findChildren<QWidget*>().size(), before);
    }
  }
  // Between two pieces the event loop comes to its other work.
  void pages_and_settings_are_made_in_pieces() {
    testing::FakeNode& node = *fixture_->node;
    while (node.settings.size() < 400) {
      node.settings.push_back(node.settings.front());
      node.settings.back().name += std::to_string(node.settings.size());
    }
    qsizetype pages = 1, rows = 0, most_pages = 0, most_rows = 0;
    int sections = 0, most_sections = 0;
    QTimer other;
    connect(&other, &QTimer::timeout, this, [&] {
      const auto all_pages = fixture_->window->findChildren<Page*>().size();
      const auto all_rows = fixture_->window->findChildren<SettingRow*>().size();
      most_pages = std::max(most_pages, all_pages - pages);
      most_rows = std::max(most_rows, all_rows - rows);
      pages = all_pages;
      rows = all_rows;
      int made = 0;
      for (Page* page : fixture_->window->findChildren<Page*>()) made += page->sections().made();
      most_sections = std::max(most_sections, made - sections);
      sections = made;
    });
    other.start(0);
    QTRY_COMPARE_WITH_TIMEOUT(rows, qsizetype{400}, 30'000);
    QTRY_VERIFY_WITH_TIMEOUT(fixture_->window->pages_made(), 30'000);
    QVERIFY2(most_pages <= 1, qPrintable(QString::number(most_pages)));
    QVERIFY2(most_sections <= 1, qPrintable(QString::number(most_sections)));
    // Every page that has more than a few widgets comes in several.
    QVERIFY2(sections >= 25, qPrintable(QString::number(sections)));
    for (const char* key : {"network", "training", "checkpoints", "data", "playground"})
      QVERIFY2(fixture_->window->page(key)->sections().made() >= 3, key);
    QVERIFY2(most_rows < 200, qPrintable(QString::number(most_rows)));
  }
  // A page opened before its turn does not wait, and it is not made twice.
  void a_page_opened_at_once_is_made_at_once() {
    // One of whose pieces some are there already.
    Page* begun = nullptr;
    QTRY_VERIFY_WITH_TIMEOUT(
        (begun = fixture_->window->findChild<Page*>("network")) != nullptr && begun->sections().made() > 0,
        30'000);
    QVERIFY(!begun->sections().done());
    fixture_->window->open_page("network");
    QVERIFY(begun->isVisible() && begun->sections().done());
    QTRY_VERIFY(!find<CellGrid>("layer_map")->content().rows.isEmpty());
    fixture_->window->open_page("settings");
    const Page* page = fixture_->window->page("settings");
    QVERIFY(page->isVisible());
    QTRY_VERIFY_WITH_TIMEOUT(fixture_->window->pages_made(), 30'000);
    QCOMPARE(fixture_->window->page("settings"), page);
    QCOMPARE(fixture_->window->findChildren<Page*>().size(), fixture_->window->page_keys().size());
    QTRY_COMPARE(page->findChildren<SettingRow*>().size(),
                 static_cast<qsizetype>(fixture_->node->settings.size()));
  }
  void text_of_the_core_waits_in_bounds() {
    TextInbox inbox;
    std::thread writer([&inbox] {
      for (int i = 0; i < 4000; ++i) inbox.put(std::string(1024, 'x'));
    });
    writer.join();
    QCOMPARE(inbox.take().size(), TextInbox::max_bytes);
    QVERIFY(inbox.take().empty());
  }
};

NS_UI_TEST(BudgetsTest)
#include "test_budgets.moc"
