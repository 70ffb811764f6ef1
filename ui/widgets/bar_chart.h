// Bars over named things or classes, by QtCharts. Changes values in place.
#pragma once

#include <QStringList>
#include <QWidget>
#include <vector>

class QBarCategoryAxis;
class QBarSet;
class QChartView;
class QValueAxis;

namespace neuroshard::ui {

class Theme;

class BarChart final : public QWidget {
  Q_OBJECT
 public:
  BarChart(const Theme& theme, const QString& accessible_name, const QString& x_title, const QString& y_title,
           QWidget* parent = nullptr);
  void set_whole_numbers(bool on);  // on at first: bars are counts
  // Bars of things with long names: upright names, and never narrower than they need. For a scroll area.
  void set_names_upright(bool on);
  void set_bars(const QStringList& names, const std::vector<double>& values);
  const std::vector<double>& values() const { return values_; }
  const QStringList& names() const { return names_; }
  QString csv() const;

 private:
  void paint_in_theme();
  void scale();

  const Theme& theme_;
  QString x_title_, y_title_;
  QChartView* view_;
  QBarSet* bars_;
  QBarCategoryAxis* x_;
  QValueAxis* y_;
  QStringList names_;
  std::vector<double> values_;
  bool whole_ = true, upright_ = false;
};

}  // namespace neuroshard::ui
