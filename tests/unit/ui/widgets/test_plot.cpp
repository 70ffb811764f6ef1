// The chart draws the data: where the values are, no more points than pixels, one frame per change; it can be
// zoomed, moved and read by mouse and keys.
#include <QDateTime>
#include <QSignalSpy>
#include <QtTest>
#include <cmath>

#include "tests/support/test_main.h"
#include "ui/text/format.h"
#include "ui/theme/theme.h"
#include "ui/widgets/plot_panel.h"
#include "ui/widgets/plot_table_model.h"
#include "ui/widgets/plot_widget.h"

using namespace neuroshard::ui;

namespace {

class LightScheme final : public SchemeSource {
 public:
  Scheme scheme() const override { return Scheme::Light; }
};

std::vector<PlotPoint> points_of(int count, const std::function<double(double)>& value) {
  std::vector<PlotPoint> points;
  for (int i = 0; i < count; ++i) {
    const double y = value(i);
    points.push_back({double(i), y, y, y, 1});
  }
  return points;
}

bool near_colour(const QColor& a, const QColor& b) {
  return std::abs(a.red() - b.red()) + std::abs(a.green() - b.green()) + std::abs(a.blue() - b.blue()) < 60;
}

}  // namespace

class PlotTest : public QObject {
  Q_OBJECT
 public:
  PlotTest() : theme_(std::make_unique<LightScheme>()) {}

 private:
  std::unique_ptr<PlotWidget> make(std::vector<PlotPoint> points, QSize size = {600, 300}) {
    auto plot = std::make_unique<PlotWidget>(theme_, "Loss");
    plot->resize(size);
    const double last = points.empty() ? 1 : points.back().x;
    PlotSeries series;
    series.name = "loss";
    series.points = std::move(points);
    plot->view()->set_full({0, last});
    plot->set_series({series});
    plot->show();
    (void)QTest::qWaitForWindowExposed(plot.get());
    return plot;
  }

  Theme theme_;

 private Q_SLOTS:
  void decimation_keeps_extremes_and_means() {
    auto points = points_of(100'000, [](double x) { return std::sin(x / 500) + (x == 77'777 ? 40 : 0); });
    const auto few = decimate(points, {0, 99'999}, 500);
    QVERIFY(few.size() <= 502);
    double most = -1e9, least = 1e9, sum = 0, count = 0;
    for (std::size_t i = 0; i < few.size(); ++i) {
      most = std::max(most, few[i].most);
      least = std::min(least, few[i].least);
      sum += few[i].mean * few[i].count;
      count += few[i].count;
      if (i > 0) QVERIFY(few[i].x > few[i - 1].x);
    }
    double truth = 0, truth_most = -1e9, truth_least = 1e9;
    for (const PlotPoint& point : points) {
      truth += point.mean;
      truth_most = std::max(truth_most, point.most);
      truth_least = std::min(truth_least, point.least);
    }
    QCOMPARE(most, truth_most);
    QCOMPARE(least, truth_least);
    QCOMPARE(count, 100'000.0);
    QVERIFY(std::abs(sum - truth) < 1e-6);
  }
  void decimation_takes_the_range_and_one_neighbour() {
    const auto points = points_of(100, [](double x) { return x; });
    const auto few = decimate(points, {10, 20}, 50);
    QCOMPARE(few.front().x, 9.0);
    QCOMPARE(few.back().x, 21.0);
    QCOMPARE(few.size(), 13u);
    QVERIFY(decimate({}, {0, 1}, 10).empty());
    QVERIFY(decimate(points, {5, 5}, 10).empty());
  }
  void smoothing_is_an_exponential_mean_over_steps() {
    const auto points = points_of(400, [](double x) { return x < 200 ? 1.0 : 3.0; });
    const auto smooth_values = smooth(points, 20);
    QCOMPARE(smooth_values[199], 1.0);
    QVERIFY(std::abs(smooth_values[219] - (1 + 2 * (1 - std::exp(-1.0)))) < 0.02);  // after one span: 63 %
    QVERIFY(std::abs(smooth_values[399] - 3) < 1e-3);
    // Two buckets as far apart as many steps say the same as the steps.
    const auto wide = smooth({{0, 1, 1, 1, 1}, {20, 3, 3, 3, 20}}, 20);
    QVERIFY(std::abs(wide[1] - (1 + 2 * (1 - std::exp(-1.0)))) < 1e-9);
  }
  void ticks_are_round() {
    QCOMPARE(linear_ticks({0, 10}, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
    const auto ticks = linear_ticks({-0.3, 0.3}, 4);
    QVERIFY(std::find(ticks.begin(), ticks.end(), 0.0) != ticks.end());
    QVERIFY(linear_ticks({3, 3}, 4).empty());
    QCOMPARE(log_ticks({1e-4, 1}, 4), (std::vector<double>{1e-4, 1e-3, 1e-2, 1e-1, 1}));
    QVERIFY(log_ticks({0, 1}, 4).empty());
  }
  void bytes_are_round_in_their_unit() {
    QCOMPARE(linear_ticks({0, 25'000}, 5, PlotUnit::Bytes),
             (std::vector<double>{0, 5 * 1024, 10 * 1024, 15 * 1024, 20 * 1024}));
    QCOMPARE(linear_ticks({0, 400}, 4, PlotUnit::Bytes), (std::vector<double>{0, 100, 200, 300, 400}));
    QCOMPARE(linear_ticks({0, 900'000}, 2, PlotUnit::Bytes), (std::vector<double>{0, 512 * 1024}));
    QCOMPARE(linear_ticks({0, 2'200'000}, 3, PlotUnit::Bytes), (std::vector<double>{0, 1 << 20, 2 << 20}));
    QCOMPARE(log_ticks({1, 2e6}, 4, PlotUnit::Bytes), (std::vector<double>{1, 100, 10 * 1024, 1 << 20}));
    // The label says the whole of it: nothing was rounded away.
    const QStringList units{"B", "KiB", "MiB", "GiB", "TiB"};
    for (double most = 3; most < 1e13; most *= 1.37) {
      for (const double tick : linear_ticks({0, most}, 7, PlotUnit::Bytes)) {
        const QString text = Format::bytes(static_cast<std::uint64_t>(tick));
        const QStringList parts = text.split(QChar(0xa0));
        const double said =
            QLocale().toDouble(parts.value(0)) * std::pow(1024.0, units.indexOf(parts.value(1)));
        QVERIFY2(said == tick, qPrintable(text));
      }
    }
  }
  void times_are_round_where_one_is() {
    const double start = 1'700'000'000;
    const auto minutes = linear_ticks({start, start + 600}, 6, PlotUnit::Time);
    QVERIFY(minutes.size() >= 4 && minutes.size() <= 7);
    for (const double tick : minutes)
      QCOMPARE(QDateTime::fromSecsSinceEpoch(static_cast<qint64>(tick)).time().second(), 0);
    for (const double tick : linear_ticks({start, start + 3 * 86400}, 6, PlotUnit::Time))
      QCOMPARE(QDateTime::fromSecsSinceEpoch(static_cast<qint64>(tick)).time().minute(), 0);
    const auto seconds = linear_ticks({start, start + 60}, 5, PlotUnit::Time);
    QCOMPARE(seconds.at(1) - seconds.at(0), 15.0);
    QVERIFY(!linear_ticks({start, start + 1e9}, 5, PlotUnit::Time).empty());
  }
  void times_are_told_as_a_clock_does() {
    auto plot = make(points_of(3, [](double x) { return x; }));
    plot->set_options({.x = PlotX::Time});
    plot->grab();
    const QDateTime at(QDate(2026, 3, 4), QTime(6, 10));
    const auto told = [&](int seconds) {
      return plot->frame().format_x(static_cast<double>(at.toSecsSinceEpoch() + seconds));
    };
    QCOMPARE(told(0), QStringLiteral("06:10"));
    QCOMPARE(told(15), QStringLiteral("06:10:15"));
  }
  void axes_go_there_and_back() {
    PlotAxes axes{{50, 10, 400, 200}, {100, 300}, {0.1, 1000}, true};
    QCOMPARE(axes.to_value_x(axes.to_pixel_x(217)), 217.0);
    QCOMPARE(axes.to_pixel_y(0.1), 210.0);
    QCOMPARE(axes.to_pixel_y(1000), 10.0);
    QCOMPARE(axes.to_pixel_y(10), 110.0);
    QVERIFY(axes.to_pixel_y(0) > 210);
  }
  // The requirement of 100,000 points: what is handed to the painter is bounded by the width.
  void a_frame_has_no_more_points_than_pixels() {
    auto plot = make({});
    PlotSeries series;
    series.name = "loss";
    series.band = series.smoothed = true;
    series.points =
        points_of(100'000, [](double x) { return 8 - std::log1p(x / 100) + std::fmod(x * 7919, 13) / 30; });
    plot->view()->set_full({0, 99'999});
    plot->set_series({series});
    plot->grab();
    const PlotDrawing& drawing = plot->frame().drawings.at(0);
    const int bound = 2 * plot->width() + 4;
    QVERIFY(drawing.line.size() > plot->width() / 2);
    QVERIFY(drawing.line.size() <= bound);
    QVERIFY(drawing.smoothed.size() <= bound);
    QVERIFY(drawing.band.size() <= bound);
    QVERIFY(plot->buckets_wanted() <= 2 * std::size_t(plot->width()));
  }
  void a_change_is_one_frame() {
    auto plot = make(points_of(50, [](double x) { return x; }));
    plot->grab();
    const int before = plot->frames();
    plot->grab();  // nothing changed: the picture is used again
    QCOMPARE(plot->frames(), before);
    for (int i = 0; i < 5; ++i) {
      plot->set_series(std::vector<PlotSeries>(plot->series()));
      plot->set_marks({{10.0 + i, PlotMarkKind::Checkpoint, "c"}});
    }
    QCOMPARE(plot->frames(), before);  // nothing is drawn by setters
    plot->grab();
    QCOMPARE(plot->frames(), before + 1);
    QTest::mouseMove(plot.get(), {300, 150});
    plot->grab();
    QCOMPARE(plot->frames(), before + 1);  // the crosshair does not draw the data again
  }
  // Pixels: at each of several steps the column of the picture has the series' colour at the value's height,
  // and not elsewhere.
  void the_line_is_where_the_values_are() {
    for (const bool log : {false, true}) {
      auto plot = make(points_of(61, [](double x) { return 1 + 9 * std::pow((x - 30) / 30, 2); }));
      plot->set_log_y(log);
      const QImage image = plot->grab().toImage();
      const PlotAxes& axes = plot->frame().axes;
      const QColor colour = theme_.series(0);
      for (const double x : {3.0, 10.0, 30.0, 44.0, 58.0}) {
        const double value = 1 + 9 * std::pow((x - 30) / 30, 2);
        const int column = int(std::round(axes.to_pixel_x(x)));
        int hits = 0, wrong = 0;
        for (int y = int(axes.area.top()); y < int(axes.area.bottom()); ++y) {
          if (!near_colour(image.pixelColor(column, y), colour)) continue;
          std::abs(y + 0.5 - axes.to_pixel_y(value)) < 12 ? ++hits : ++wrong;
        }
        QVERIFY2(hits >= 1, qPrintable(QString("step %1 log %2").arg(x).arg(log)));
        QCOMPARE(wrong, 0);
      }
    }
  }
  void the_band_spans_least_to_most() {
    std::vector<PlotPoint> points;
    for (int i = 0; i < 20; ++i) points.push_back({double(i), 2, 6, 4, 10});
    auto plot = make(points);
    auto series = plot->series();
    series[0].band = true;
    plot->set_series(series);
    const QImage image = plot->grab().toImage();
    const PlotAxes& axes = plot->frame().axes;
    const auto shaded = [&](double value) {
      const QColor c = image.pixelColor(int(axes.area.center().x()), int(axes.to_pixel_y(value)));
      return c.blue() > c.red() + 15;
    };
    QVERIFY(shaded(5.5));
    QVERIFY(shaded(2.5));
    QVERIFY(!shaded(6.15));
    QVERIFY(!shaded(1.85));
  }
  void nothing_finite_is_nothing_drawn() {
    const double nan = std::nan("");
    auto plot = make({{0, nan, nan, nan, 1}, {1, INFINITY, INFINITY, INFINITY, 1}});
    plot->grab();  // must not hang or crash
    plot->set_log_y(true);
    plot->grab();
    QVERIFY(plot->frame().axes.y.length() > 0);
  }
  void wheel_drag_and_keys_zoom_and_move() {
    auto plot = make(points_of(1000, [](double x) { return x; }));
    plot->grab();
    QSignalSpy ranges(plot->view(), &PlotView::range_changed);
    QVERIFY(!plot->view()->zoomed());
    QTest::mousePress(plot.get(), Qt::LeftButton, {}, {200, 150});
    QTest::mouseMove(plot.get(), {400, 150});
    QTest::mouseRelease(plot.get(), Qt::LeftButton, {}, {400, 150});
    QVERIFY(plot->view()->zoomed());
    const PlotRange selected = plot->view()->range();
    QVERIFY(std::abs(plot->frame().axes.to_pixel_x(selected.from) - 200) < 2);
    QVERIFY(std::abs(plot->frame().axes.to_pixel_x(selected.to) - 400) < 2);
    QCOMPARE(ranges.count(), 1);
    plot->grab();
    QTest::mousePress(plot.get(), Qt::LeftButton, {}, {300, 150});
    QTest::mouseMove(plot.get(), {340, 150});
    QTest::mouseRelease(plot.get(), Qt::LeftButton, {}, {340, 150});
    QVERIFY(plot->view()->range().from < selected.from);  // the data followed the hand to the right
    QVERIFY(std::abs(plot->view()->range().length() - selected.length()) < 1e-6);
    const double before = plot->view()->range().length();
    QTest::keyClick(plot.get(), Qt::Key_Plus);
    QVERIFY(plot->view()->range().length() < before);
    const double from = plot->view()->range().from;
    QTest::keyClick(plot.get(), Qt::Key_Right, Qt::ShiftModifier);
    QVERIFY(plot->view()->range().from > from);
    QTest::keyClick(plot.get(), Qt::Key_0);
    QVERIFY(!plot->view()->zoomed());
    QCOMPARE(plot->view()->range(), (PlotRange{0, 999}));
    plot->grab();
    // Without focus and Ctrl the wheel belongs to the page.
    plot->clearFocus();
    const auto wheel = [&plot](Qt::KeyboardModifiers keys) {
      QWheelEvent event({300, 150}, plot->mapToGlobal(QPointF(300, 150)), {}, {0, 120}, Qt::NoButton, keys,
                        Qt::NoScrollPhase, false);
      QApplication::sendEvent(plot.get(), &event);
      return event.isAccepted();
    };
    QVERIFY(!wheel({}));
    QVERIFY(!plot->view()->zoomed());
    const double under = plot->frame().axes.to_value_x(300);
    QVERIFY(wheel(Qt::ControlModifier));
    QVERIFY(plot->view()->zoomed());
    plot->grab();
    QVERIFY(std::abs(plot->frame().axes.to_value_x(300) - under) <
            1);  // what was under the pointer stays there
  }
  void zooming_never_leaves_the_data() {
    auto plot = make(points_of(100, [](double x) { return x; }));
    plot->view()->zoom_to({-50, 20});
    QVERIFY(plot->view()->range().from >= 0);
    QCOMPARE(plot->view()->range().length(), 70.0);
    plot->view()->zoom_to({50, 50});
    QVERIFY(plot->view()->range().length() >= 4);
    plot->view()->zoom_to({-1e9, 1e9});
    QVERIFY(!plot->view()->zoomed());
  }
  void growing_data_follows_unless_zoomed() {
    auto plot = make(points_of(100, [](double x) { return x; }));
    plot->view()->set_full({0, 200});
    QCOMPARE(plot->view()->range().to, 200.0);
    plot->view()->zoom_to({10, 40});
    plot->view()->set_full({0, 300});
    QCOMPARE(plot->view()->range(), (PlotRange{10, 40}));
  }
  void the_crosshair_reads_values_for_eyes_and_ears() {
    auto plot = make(points_of(100, [](double x) { return 5 - x / 100; }));
    plot->set_marks({{50, PlotMarkKind::Restore, "restored from step 40"}});
    plot->grab();
    QVERIFY(plot->accessibleName() == "Loss");
    QVERIFY2(plot->accessibleDescription().contains("4.010"), qPrintable(plot->accessibleDescription()));
    const int column = int(plot->frame().axes.to_pixel_x(50));
    QTest::mouseMove(plot.get(), {column, 100});
    const auto reading = plot->reading();
    QVERIFY(reading.has_value());
    QCOMPARE(reading->x, 50.0);
    QCOMPARE(reading->lines.at(0), QString("loss 4.500"));
    QCOMPARE(reading->lines.at(1), QString("restored from step 40"));
    plot->setFocus();
    QTest::keyClick(plot.get(), Qt::Key_Right);
    QCOMPARE(plot->reading()->x, 51.0);
    QVERIFY(plot->accessibleDescription().contains("4.490"));
    QTest::keyClick(plot.get(), Qt::Key_Home);
    QCOMPARE(plot->reading()->x, 0.0);
  }
  void an_empty_chart_says_what_will_come() {
    auto plot = make({});
    plot->set_empty_text("Loss appears with the first step.");
    const QImage with = plot->grab().toImage();
    plot->set_empty_text("");
    QVERIFY(with != plot->grab().toImage());
    QCOMPARE(plot->frames(), 0);
  }
  void the_table_twin_has_the_same_values() {
    PlotPanel panel(theme_, "Loss", "loss");
    PlotSeries raw, evaluated;
    raw.name = "loss";
    raw.band = true;
    raw.points = {{1, 2, 4, 3, 2}, {3, 1, 2, 1.25, 2}};
    evaluated.name = "held out";
    evaluated.points = {{3, 5, 5, 5, 1}};
    panel.plot()->set_series({raw, evaluated});
    QCOMPARE(panel.csv(),
             QString("Step,loss,\"loss, least\",\"loss, most\",held out\r\n1,3,2,4,\r\n3,1.25,1,2,5\r\n"));
    panel.show_table(true);
    QVERIFY(panel.table_shown());
    PlotTableModel model;
    const auto format = [](double v) { return QString::number(v); };
    model.set_series({raw, evaluated}, {.format_y = format});
    QSignalSpy resets(&model, &QAbstractItemModel::modelReset),
        rows(&model, &QAbstractItemModel::rowsInserted);
    raw.points.push_back({4, 1, 1, 1, 1});
    model.set_series({raw, evaluated}, {.format_y = format});
    QCOMPARE(resets.count(), 0);
    QCOMPARE(rows.count(), 1);
    QCOMPARE(model.rowCount(), 3);
    QCOMPARE(model.index(2, 1).data().toString(), QString("1"));
  }
  void the_table_twin_names_what_its_rows_are() {
    PlotPanel panel(theme_, "Traffic", "traffic");
    PlotSeries series;
    series.name = "in";
    series.points = {{1'700'000'000, 5, 5, 5, 1}, {1'700'000'010, 6, 6, 6, 1}};
    panel.set_options({.x = PlotX::Time});
    panel.plot()->set_series({series});
    QCOMPARE(panel.csv(), QString("Time,in\r\n2023-11-14T22:13:20Z,5\r\n2023-11-14T22:13:30Z,6\r\n"));
    PlotTableModel model;
    model.set_series({series}, {.x = PlotX::Time});
    const QDateTime first = QDateTime::fromSecsSinceEpoch(1'700'000'000);
    QCOMPARE(model.index(0, 0).data().toString(), first.toString("yyyy-MM-dd HH:mm:ss"));
    series.points = {{12, 3, 3, 3, 1}};
    panel.set_options({.x = PlotX::Round});
    panel.plot()->set_series({series});
    QCOMPARE(panel.csv(), QString("Round,in\r\n12,3\r\n"));
  }
  void a_picture_for_export_shows_the_data() {
    auto plot = make(points_of(61, [](double x) { return x; }));
    const QImage image = plot->to_image({600, 300}, 2);
    QCOMPARE(image.size(), QSize(1200, 600));
    int hits = 0;
    for (int y = 0; y < image.height(); ++y)
      hits += near_colour(image.pixelColor(600, y), theme_.series(0)) ? 1 : 0;
    QVERIFY(hits >= 2);
  }
};

NS_UI_TEST(PlotTest)
#include "test_plot.moc"
