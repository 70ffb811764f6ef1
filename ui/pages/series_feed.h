// Keeps a chart supplied: asks the core for the range that is visible, in no more buckets than twice its
// pixels, when there are new steps (at most once a second) or the range changed. One round of questions at a
// time.
#pragma once

#include <QObject>
#include <QTimer>
#include <string>
#include <vector>

#include "ui/bridge/bridge.h"
#include "ui/widgets/plot_widget.h"

namespace neuroshard::ui {

class SeriesFeed final : public QObject {
  Q_OBJECT
 public:
  static constexpr std::chrono::milliseconds period{1000};

  struct Wanted {
    std::string name;  // of query_series
    PlotSeries look;   // without points
  };
  SeriesFeed(Bridge& bridge, PlotWidget* plot, std::vector<Wanted> wanted, QObject* parent);

  // The model is at this step now. Call with every snapshot.
  void update(std::uint64_t step);
  void start();  // asks at once, and again while it is started
  void stop();
  // Another core: nothing of the chart holds any more.
  void start_over();

 private:
  void ask();
  void answered(std::size_t series, quint64 round, const Expected<node::Series>& answer);

  Bridge& bridge_;
  PlotWidget* plot_;
  std::vector<Wanted> wanted_;
  std::vector<PlotSeries> collected_;
  std::size_t missing_ = 0;  // answers of this round
  quint64 round_ = 0;
  std::uint64_t step_ = 0, asked_step_ = 0;
  bool running_ = false, stale_ = true;
  QTimer pause_;  // between rounds
};

}  // namespace neuroshard::ui
