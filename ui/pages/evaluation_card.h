// The results of `neuroshardd eval` as a chart: bits per byte of the checkpoints on one text, the model beside the n-grams.
#pragma once

#include <QWidget>
#include <vector>

#include "core/node/records.h"

class QLabel;

namespace neuroshard::ui {

class PlotPanel;
class Theme;

// Hidden while there is nothing to show.  Threads: ui.
class EvaluationCard final : public QWidget {
  Q_OBJECT
 public:
  explicit EvaluationCard(const Theme& theme, QWidget* parent = nullptr);
  // newest_first: of any texts; the chart has those of the newest entry's text, for each step the newest.
  void show_entries(const std::vector<node::EvaluationEntry>& newest_first);
  PlotPanel* panel() const { return panel_; }

 private:
  PlotPanel* panel_;
  QLabel* about_;  // the text, and the cloze task of the newest result
};

}  // namespace neuroshard::ui
