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

QString CapacityWords::models(const node::NetworkMemoryView& memory) {
  const auto size_of = [](const node::NetworkMemoryView::Model& model) {
    return tr("%1 layers of width %2 (%3 parameters)")
        .arg(Format::integer(model.layers), Format::integer(model.hidden),
             Format::si(static_cast<double>(model.parameters)));
  };
  QStringList text;
  if (memory.possible)
    text << tr("Enough members have room for %1, with %2 of each.")
                .arg(size_of(*memory.possible), Format::bytes(memory.possible->member_bytes));
  if (!memory.next) return text.isEmpty() ? tr("The network's profile has no larger model.") : text.join(' ');
  const node::NetworkMemoryView::Model& next = *memory.next;
  text << tr("The next larger model has %1 and needs %2 of each.")
              .arg(size_of(next), Format::bytes(next.member_bytes));
  text << tr("%1 of %2 members offer that, and %3 would have to.")
              .arg(Format::integer(next.with_room), Format::integer(memory.members),
                   Format::integer(memory.needs_room));
  if (memory.own_bytes >= next.member_bytes)
    text << tr("This computer does.");
  else if (memory.own_bytes > 0)
    text << tr("This computer offers %1 less.").arg(Format::bytes(next.member_bytes - memory.own_bytes));
  return text.join(' ');
}

}  // namespace neuroshard::ui
