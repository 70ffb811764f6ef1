#include "ui/text/capacity_text.h"

#include <QStringList>

#include "ui/text/format.h"

namespace neuroshard::ui {

QString CapacityWords::tier(const node::NetworkMemoryView& memory) {
  return QString::fromStdString(memory.tier);
}

QString CapacityWords::next_tier(const node::NetworkMemoryView& memory) {
  if (memory.next_tier.empty()) return tr("the largest");
  return tr("%1 from %2")
      .arg(QString::fromStdString(memory.next_tier), Format::bytes(memory.next_tier_bytes));
}

QString CapacityWords::larger(const node::NetworkMemoryView& memory) {
  if (!memory.larger) return tr("The network's profile has no larger model.");
  const node::NetworkMemoryView::Larger& larger = *memory.larger;
  QStringList text{tr("The next larger model has %1 layers of width %2, which are %3 parameters.")
                       .arg(Format::integer(larger.layers), Format::integer(larger.hidden),
                            Format::si(static_cast<double>(larger.parameters)))};
  text << tr("Each member would need %1.").arg(Format::bytes(larger.member_bytes));
  if (larger.with_room >= larger.needs_room)
    text << tr("Enough members offer that: %1 of %2.")
                .arg(Format::integer(larger.with_room), Format::integer(memory.members));
  else
    text << tr("So far %1 of %2 members offer that, and %3 would have to.")
                .arg(Format::integer(larger.with_room), Format::integer(memory.members),
                     Format::integer(larger.needs_room));
  if (memory.own_bytes >= larger.member_bytes)
    text << tr("This computer does.");
  else if (memory.own_bytes > 0)
    text << tr("This computer offers %1 less.").arg(Format::bytes(larger.member_bytes - memory.own_bytes));
  return text.join(QLatin1Char(' '));
}

}  // namespace neuroshard::ui
