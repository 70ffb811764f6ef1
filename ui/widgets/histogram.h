// Bars of counts in the colours of the theme, by QtCharts. Changes values in place.
#pragma once

#include <QWidget>
#include <vector>

class QBarCategoryAxis;
class QBarSet;
class QChartView;
class QValueAxis;

namespace neuroshard::ui {

class Theme;

class Histogram final : public QWidget {
  Q_OBJECT
 public:
  Histogram(const Theme& theme, const QString& accessible_name, const QString& x_title,
            const QString& y_title, QWidget* parent = nullptr);
  void set_bars(const QStringList& names, const std::vector<double>& values);
  const std::vector<double>& values() const { return values_; }

 private:
  void paint_in_theme();

  const Theme& theme_;
  QChartView* view_;
  QBarSet* bars_;
  QBarCategoryAxis* x_;
  QValueAxis* y_;
  QStringList names_;
  std::vector<double> values_;
};

}  // namespace neuroshard::ui
