#include "ui/pages/training_marks.h"

#include <QCoreApplication>
#include <algorithm>
#include <map>

#include "ui/text/format.h"

namespace neuroshard::ui {
namespace {

class Words {
  Q_DECLARE_TR_FUNCTIONS(neuroshard::ui::TrainingPage)
};

}  // namespace

std::vector<PlotMark> checkpoint_marks(const std::vector<node::CheckpointEntry>& entries) {
  std::vector<const node::CheckpointEntry*> by_time;
  std::map<std::string, const node::CheckpointEntry*> by_name;
  for (const node::CheckpointEntry& entry : entries) {
    by_time.push_back(&entry);
    by_name[entry.name] = &entry;
  }
  std::sort(by_time.begin(), by_time.end(), [](const auto* a, const auto* b) { return a->at < b->at; });
  std::vector<PlotMark> marks;
  for (std::size_t i = 0; i < by_time.size(); ++i) {
    const node::CheckpointEntry& entry = *by_time[i];
    marks.push_back({static_cast<double>(entry.step), PlotMarkKind::Checkpoint,
                     Words::tr("Checkpoint at step %1").arg(Format::integer(entry.step))});
    const auto parent = by_name.find(entry.parent);
    if (i == 0 || entry.parent.empty() || parent == by_name.end() || parent->second == by_time[i - 1])
      continue;
    marks.push_back({static_cast<double>(parent->second->step), PlotMarkKind::Restore,
                     Words::tr("Restored step %1").arg(Format::integer(parent->second->step))});
  }
  return marks;
}

std::vector<PlotMark> round_marks(const std::vector<node::RoundEntry>& rounds) {
  std::vector<PlotMark> marks;
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    const node::RoundEntry& round = rounds[i];
    if (round.step == 0) continue;
    const auto at = static_cast<double>(round.step);
    marks.push_back({at, PlotMarkKind::Sync,
                     Words::tr("Round %1: %2 of %3 contributed")
                         .arg(Format::integer(round.round), Format::integer(round.contributors),
                              Format::integer(round.members))});
    const bool known = i + 1 < rounds.size() && rounds[i + 1].round + 1 == round.round;
    if (known && round.members > rounds[i + 1].members)
      marks.push_back(
          {at, PlotMarkKind::Join,
           Words::tr("%n node(s) joined", nullptr, static_cast<int>(round.members - rounds[i + 1].members))});
  }
  return marks;
}

}  // namespace neuroshard::ui
