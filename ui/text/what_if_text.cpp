#include "ui/text/what_if_text.h"

#include <utility>

#include "ui/text/format.h"

namespace neuroshard::ui {

QString WhatIfWords::answer(const node::WhatIfQuery& query, const node::WhatIf& answer) {
  const bool leaves = !query.memory_bytes;
  QStringList text;
  if (!answer.counts) {
    text << tr("The other members do not count this computer's memory: it has no vote yet, or is away.");
  } else {
    text << offered(answer, leaves);
    const node::NetworkMemoryView& then = answer.then.memory;
    if (then.members > 0)
      text << (then.can_change ? sized_model(answer.then, leaves)
                               : kept_model(answer.now, answer.then, leaves));
  }
  if (answer.part) text << part(*answer.part);
  if (answer.votes) text << votes(*answer.votes);
  text.removeAll(QString());
  return text.join(QLatin1Char(' '));
}

QString WhatIfWords::offered(const node::WhatIf& answer, bool leaves) {
  const node::NetworkMemoryView& now = answer.now.memory;
  const node::NetworkMemoryView& then = answer.then.memory;
  const QString all = Format::gigabytes(then.offered_bytes);
  QString text;
  if (leaves) {
    text = tr("Without this computer, the other members offer %1.").arg(all);
  } else if (then.offered_bytes == now.offered_bytes) {
    text = tr("All members would offer %1, as now.").arg(all);
  } else {
    text = tr("All members would offer %1 instead of %2.").arg(all, Format::gigabytes(now.offered_bytes));
  }
  if (then.tier == now.tier) return text;
  return text + QLatin1Char(' ') + tr("The tier would be %1.").arg(QString::fromStdString(then.tier));
}

QString WhatIfWords::size_of(const node::NetworkMemoryView::Model& model) {
  return tr("%1 layers of width %2").arg(Format::integer(model.layers), Format::integer(model.hidden));
}

// which: the model that lacks memory. Empty: none does.
QString WhatIfWords::needs(const QString& which, const node::MemoryOutlook& outlook) {
  const auto members = static_cast<int>(outlook.lacking_members);
  if (outlook.lacking_bytes == 0)
    return members == 0 ? QString() : tr("%1 needs room at %n more member(s).", nullptr, members).arg(which);
  const QString bytes = Format::gigabytes(outlook.lacking_bytes);
  if (members == 0) return tr("%1 needs %2 more.").arg(which, bytes);
  return tr("%1 needs %2 more, and room at %n more member(s).", nullptr, members).arg(which, bytes);
}

QStringList WhatIfWords::sized_model(const node::MemoryOutlook& then, bool leaves) {
  const node::NetworkMemoryView& memory = then.memory;
  const auto rounds = static_cast<int>(memory.results_needed);
  if (then.asks == node::SizeChange::Up && memory.next)
    return {tr("After %n round(s) in a row with that memory the model would grow to %1.", nullptr, rounds)
                .arg(size_of(*memory.next))};
  if (then.asks == node::SizeChange::Down) {
    QStringList text{
        tr("After %n round(s) in a row with that memory the model would shrink.", nullptr, rounds),
        needs(tr("The present one"), then)};
    if (leaves) text << tr("This computer's offer still counts for seven days.");
    return text;
  }
  if (!memory.next && !leaves) return {tr("The model would stay as it is: there is no larger one.")};
  const QString stays = tr("The model would stay as it is.");
  return leaves ? QStringList{stays} : QStringList{stays, needs(tr("The next one"), then)};
}

QStringList WhatIfWords::kept_model(const node::MemoryOutlook& now, const node::MemoryOutlook& then,
                                    bool leaves) {
  const auto largest = [](const node::NetworkMemoryView& memory) {
    return memory.possible ? *memory.possible : memory.present;
  };
  const node::NetworkMemoryView::Model from = largest(now.memory), to = largest(then.memory);
  QStringList text;
  if (from.parameters == to.parameters) {
    text << tr("Enough members would have room for the same model as now.");
  } else {
    text << tr("Enough members would have room for %1.").arg(size_of(to));
  }
  if (!leaves && then.memory.next && to.parameters <= from.parameters)
    text << needs(tr("The next one"), then);
  return text;
}

QString WhatIfWords::part(const node::PartWithout& part) {
  const QString number = Format::integer(part.number);
  if (part.waits)
    return tr("Nobody else has the weights of part %1: training would wait until one of its holders is back.")
        .arg(number);
  if (part.moves_from > 0)
    return part.nodes == 0
               ? tr("Nobody would hold part %1, and a computer with part %2 would move to it.")
                     .arg(number, Format::integer(part.moves_from))
               : tr("Part %1 would have %n computer(s) left, and one with part %2 would move to it.", nullptr,
                    static_cast<int>(part.nodes))
                     .arg(number, Format::integer(part.moves_from));
  if (part.nodes == 0)
    return tr("Nobody would hold part %1, and no other computer can be spared: training would wait.")
        .arg(number);
  if (part.wallets == 1)
    return tr("Part %1 would have %n computer(s) left, all of one owner.", nullptr,
              static_cast<int>(part.nodes))
        .arg(number);
  return tr("Part %1 would have %n computer(s) left.", nullptr, static_cast<int>(part.nodes)).arg(number);
}

// Empty: the others have enough votes.
QString WhatIfWords::votes(const node::VotesWithout& votes) {
  if (votes.nobody) return tr("Nobody else has a vote, so the network would stand still.");
  if (votes.lacking_after_wait > 0)
    return tr(
        "If it vanished without a word, %n vote(s) would be missing, and the network would stand still "
        "until it is back.",
        nullptr, static_cast<int>(votes.lacking_after_wait));
  if (votes.lacking_at_once > 0)
    return tr("If it vanished without a word, the others would go on after some minutes.");
  return {};
}

}  // namespace neuroshard::ui
