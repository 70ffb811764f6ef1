// Marks in the chart of the loss: checkpoints, restores and outer rounds.
#pragma once

#include <vector>

#include "core/node/queries.h"
#include "core/node/rounds_report.h"
#include "ui/widgets/plot_painter.h"

namespace neuroshard::ui {

// The checkpoints in the chart, and the points at which training went back to one: a save whose parent is not the
// save before it.
std::vector<PlotMark> checkpoint_marks(const std::vector<node::CheckpointEntry>& entries);
// The points at which this node took an outer round, and those at which others had joined since the round
// before. Newest round first.
std::vector<PlotMark> round_marks(const std::vector<node::RoundEntry>& rounds);

}  // namespace neuroshard::ui
