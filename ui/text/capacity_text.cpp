#include "ui/text/capacity_text.h"

#include <algorithm>

#include "ui/text/format.h"

namespace neuroshard::ui {
namespace {

QString percent(std::uint32_t value) {
  return Format::percent(value / 100.0);
}

int rounds_left(const node::NetworkMemoryView& memory) {
  return static_cast<int>(memory.results_needed - std::min(memory.results, memory.results_needed));
}

}  // namespace

QString CapacityWords::tier(const Memory& memory) {
  return QString::fromStdString(memory.tier);
}

QString CapacityWords::next_tier(const Memory& memory) {
  if (memory.next_tier.empty()) return tr("the largest");
  return tr("%1 from %2")
      .arg(QString::fromStdString(memory.next_tier), Format::gigabytes(memory.next_tier_bytes));
}

QString CapacityWords::members(const Memory& memory) {
  const auto members = static_cast<int>(memory.members);
  if (memory.known != memory.members)
    return tr("said by %1 of %n member(s)", nullptr, members).arg(Format::integer(memory.known));
  return tr("%n member(s)", nullptr, members);
}

QString CapacityWords::with_room(const Memory& memory) {
  // Of the present model members may count that are away.
  const std::uint32_t members = memory.can_change ? memory.present.members : memory.members;
  return tr("offered by %1 of %n member(s)", nullptr, static_cast<int>(members))
      .arg(Format::integer(memory.present.with_room));
}

QString CapacityWords::models(const Memory& memory) {
  QStringList text;
  if (!memory.can_change) {
    text = kept(memory);
  } else if (memory.changing) {
    text << (memory.asked == node::SizeChange::Down
                 ? tr("The network is changing to a smaller model, and its nodes start anew with it.")
                 : tr("The network is changing to a larger model, and its nodes start anew with it."));
    const auto& other = memory.asked == node::SizeChange::Down ? memory.smaller : memory.next;
    if (other) text << tr("The new model has %1.").arg(size_of(*other));
  } else if (memory.asked == node::SizeChange::Up) {
    text = growing(memory);
  } else if (memory.asked == node::SizeChange::Down ||
             (!memory.present.is_enough() && !(memory.next && memory.next->is_enough()))) {
    text = shrinking(memory);
  } else {
    text = next(memory);
  }
  return text.join(QLatin1Char(' '));
}

QString CapacityWords::rule(const Memory& memory) {
  if (!memory.can_change)
    return tr("The model of this network keeps its size: the network's profile names no other one.");
  return tr(
      "The model changes by itself after %n round(s) in a row with enough memory for a larger one, or too "
      "little for this one.",
      nullptr, static_cast<int>(memory.results_needed));
}

QString CapacityWords::size_of(const Memory::Model& model) {
  return tr("%1 layers of width %2 (%3 parameters)")
      .arg(Format::integer(model.layers), Format::integer(model.hidden),
           Format::si(static_cast<double>(model.parameters)));
}

// "The next model, 8 layers of width 640 (61.0 M parameters), needs 954 MiB of each member and 4.94 GiB of all: 3 of 4 have room, 2.75 GiB
// are offered."
QStringList CapacityWords::larger(const Memory::Model& model) {
  QStringList text{
      tr("The next model, %1, needs %2 of each member and, with a reserve, %3 of all: %n of %4 have room, "
         "%5 are offered.",
         nullptr, static_cast<int>(model.with_room))
          .arg(size_of(model), Format::gigabytes(model.member_bytes), Format::gigabytes(model.network_bytes),
               Format::integer(model.members), Format::gigabytes(model.offered_bytes))};
  return text << votes(model);
}

// The votes that those with room lack.
QStringList CapacityWords::votes(const Memory::Model& model) {
  if (model.room_percent >= model.needs_percent) return {};
  return {tr("Those with room have %1 of the votes, and %2 are needed.")
              .arg(percent(model.room_percent), percent(model.needs_percent))};
}

QStringList CapacityWords::own_room(const Memory& memory, const Memory::Model& model) {
  if (memory.own_bytes == 0) return {};
  if (memory.own_bytes >= model.member_bytes) return {tr("This computer has room.")};
  return {tr("This computer offers %1 less than each member needs.")
              .arg(Format::gigabytes(model.member_bytes - memory.own_bytes))};
}

// The models that the members would have memory for.
QStringList CapacityWords::kept(const Memory& memory) {
  QStringList text;
  if (memory.possible)
    text << tr("Enough members have room for %1, with %2 of each.")
                .arg(size_of(*memory.possible), Format::gigabytes(memory.possible->member_bytes));
  if (!memory.next) {
    if (text.isEmpty()) text << tr("There is no larger model for this network.");
    return text;
  }
  const Memory::Model& next = *memory.next;
  text << tr("The next larger model has %1 and needs %2 of each member.")
              .arg(size_of(next), Format::gigabytes(next.member_bytes));
  text << tr("%n of %1 offer that, and %2 would have to.", nullptr, static_cast<int>(next.with_room))
              .arg(Format::integer(memory.members), Format::integer(memory.needs_room));
  return text << own_room(memory, next);
}

QStringList CapacityWords::next(const Memory& memory) {
  if (!memory.next) return {tr("This is the largest model of the network's profile.")};
  QStringList text = larger(*memory.next) << own_room(memory, *memory.next);
  if (memory.next->is_enough())
    text << tr("The network changes to it after %n round(s) with enough memory.", nullptr,
               static_cast<int>(memory.results_needed));
  return text;
}

QStringList CapacityWords::growing(const Memory& memory) {
  QStringList text{tr("The network changes to a larger model after %n more round(s) with enough memory.",
                      nullptr, rounds_left(memory))};
  if (memory.next) text << larger(*memory.next);
  return text;
}

// The memory is too little for the present model, or was for the newest results.
QStringList CapacityWords::shrinking(const Memory& memory) {
  const Memory::Model& model = memory.present;
  QStringList text{
      memory.asked == node::SizeChange::Down
          ? tr("The network changes to a smaller model after %n more round(s) with too little memory.",
               nullptr, rounds_left(memory))
          : tr("The network changes to a smaller model after %n round(s) with too little memory.", nullptr,
               static_cast<int>(memory.results_needed))};
  if (memory.smaller)
    text << tr("The smaller one has %1 and needs %2 of each member.")
                .arg(size_of(*memory.smaller), Format::gigabytes(memory.smaller->member_bytes));
  text << tr("The present model needs %1 of each member and %2 of all: %n of %3 have room, %4 are offered.",
             nullptr, static_cast<int>(model.with_room))
              .arg(Format::gigabytes(model.member_bytes), Format::gigabytes(model.network_bytes),
                   Format::integer(model.members), Format::gigabytes(model.offered_bytes));
  text << votes(model);
  return text << tr("Members that are away count for seven days.");
}

}  // namespace neuroshard::ui
