#include "ui/tray/tray_text.h"

#include "ui/text/format.h"

namespace neuroshard::ui {

TrayView TrayWords::describe(const node::Snapshot* snapshot, bool attached,
                             const std::optional<CoreLife>& life, WallTime now) {
  const StateText state = StateWords::describe(snapshot, attached, life, now);
  TrayView view;
  view.display = state.display;
  const QString why = state.reasons.isEmpty() ? state.reason : state.reasons.join(tr("; "));
  view.status = why.isEmpty() ? state.word : tr("%1: %2").arg(state.word, why);
  const bool known = snapshot != nullptr && attached;
  QStringList lines{tr("NeuroShard"), view.status};
  lines << tr("Loss %1").arg(known ? Format::loss(snapshot->training.smoothed_loss) : Format::dash());
  lines << tr("Earned today %1").arg(Format::dash());  // nothing is paid before there is a network
  view.tooltip = lines.join('\n');
  return view;
}

}  // namespace neuroshard::ui
