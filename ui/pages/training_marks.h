// Marks in the chart of the loss: checkpoints, restores and outer rounds.
#pragma once

#include <vector>

#include "core/node/queries.h"
#include "core/node/rounds_report.h"
#include "ui/widgets/plot_painter.h"

namespace neuroshard::ui {

// Where in the chart checkpoints stand, and where training went back to one: a save whose parent is not the
// save before it.
std::vector<PlotMark> checkpoint_marks(const std::vector<node::CheckpointEntry>& entries);
// Where this node took an outer round, and where others had joined since the round before. Newest round
// first.
std::vector<PlotMark> round_marks(const std::vector<node::RoundEntry>& rounds);

}  // namespace neuroshard::ui
