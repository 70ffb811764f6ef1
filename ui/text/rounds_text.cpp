#include "ui/text/rounds_text.h"

#include <algorithm>
#include <cmath>

#include "ui/text/format.h"

namespace neuroshard::ui {
namespace {

constexpr double low_success = 0.5;
constexpr int shown_id_characters = 12;
constexpr std::uint32_t largest_slow_percent = 80;  // less is worth saying

}  // namespace

QString RoundsWords::phase(const node::RoundsView& rounds) {
  const QString said = QString::fromStdString(rounds.phase);
  if (said == QLatin1String("training")) {
    const QString text = tr("Training for this round");
    if (!rounds.seconds_left || *rounds.seconds_left < 1) return text;
    const auto left = std::chrono::seconds(static_cast<std::int64_t>(std::ceil(*rounds.seconds_left)));
    return tr("%1, about %2 left").arg(text, Format::duration(left));
  }
  if (said == QLatin1String("waiting for the other members")) return tr("Waiting for the other members");
  if (said == QLatin1String("agreeing on the round")) return tr("The members are agreeing on the result");
  if (said == QLatin1String("training on while the others finish the round"))
    return tr("Training continues while the other members finish this round");
  if (said == QLatin1String("training on while the members agree on the round"))
    return tr("Training continues while the members agree on the result");
  if (said == QLatin1String("training alone until the others are back"))
    return tr("Too few members are reachable: training alone until they return");
  if (said == QLatin1String("repairing its anchor"))
    return tr("The weights were damaged: fetching them from other members");
  if (said == QLatin1String("fetching the anchor"))
    return tr("Fetching the shared weights from other members");
  if (said == QLatin1String("waiting for a founder to begin"))
    return tr("Waiting for a founder: only a founder's node begins this network");
  if (said == QLatin1String("taking over the network's tokenizer"))
    return tr("Fetching the network's tokenizer");
  if (said == QLatin1String("joining")) return tr("Joining: this node takes part in one of the next rounds");
  if (said == QLatin1String("paused until there is room on the disk"))
    return tr("Paused until there is room on the disk");
  if (said == QLatin1String("away")) return tr("Away: the other members continue without this node");
  if (said == QLatin1String("preparing")) return tr("Preparing the model");
  return said;
}

QString RoundsWords::caution(const node::RoundsView& rounds) {
  if (!rounds.trouble.empty()) return QString::fromStdString(rounds.trouble);
  if (rounds.phase == "away") return {};  // nothing is wrong
  if (rounds.members == 1 && rounds.member)
    return tr("Alone: there is no other member yet. A node that joins continues from this node's weights.");
  if (!rounds.member && rounds.members > 0)
    return tr("Not a member yet: training counts from this node's first round.");
  if (rounds.too_few_to_vote || (rounds.members >= 2 && rounds.members <= 4))
    return tr(
        "Too few to outvote a false contribution: with fewer than five contributions, it can get through.");
  return {};
}

QString RoundsWords::part(const node::RoundsView& rounds) {
  if (!rounds.part) return {};
  const node::PartView& part = *rounds.part;
  QStringList text{tr("This node holds part %1 of %2: %3.")
                       .arg(part.number)
                       .arg(part.count)
                       .arg(QString::fromStdString(part.holds))};
  text << placement(part);
  text << holders(part) << speed(part);
  if (part.paused) text << tr("It is paused, and the others go around it.");
  text << tr("Nodes whose text passes through it: %1.").arg(Format::integer(part.sessions));
  text << tr("Micro-batches of its own text that passed the whole model: %1.")
              .arg(Format::integer(part.finished));
  if (part.replaced > 0)
    text << tr("Nodes on the way that did not answer and were replaced: %1.")
                .arg(Format::integer(part.replaced));
  text << checks(part);
  return text.join(QLatin1Char(' '));
}

// Of the parts that lack nodes.
QStringList RoundsWords::holders(const node::PartView& part) {
  QStringList text, single;
  for (std::size_t i = 0; i < part.holders.size(); ++i)
    if (part.holders[i] == 0)
      text << tr("No node holds part %1, so nobody can train.").arg(i + 1);
    else if (part.holders[i] == 1)
      single << QString::number(i + 1);
  if (single.size() == 1)
    text << tr("Only one node holds part %1: training stops if it goes.").arg(single.first());
  else if (!single.isEmpty())
    text << tr("Parts %1 have one node each: training stops if one of these nodes goes.")
                .arg(single.join(QStringLiteral(", ")));
  return text;
}

// Of the slowest part, where that makes a difference.
QStringList RoundsWords::speed(const node::PartView& part) {
  const auto slowest = std::min_element(part.speeds.begin(), part.speeds.end());
  if (slowest == part.speeds.end() || *slowest > largest_slow_percent) return {};
  return {tr("Part %1 is the slowest, with %2 of the speed of the fastest one.")
              .arg(slowest - part.speeds.begin() + 1)
              .arg(Format::percent(*slowest / 100.0))};
}

QStringList RoundsWords::placement(const node::PartView& part) {
  QStringList text{part.follows_plan ? tr("The network chose it.") : tr("You chose it in the settings.")};
  if (part.moves_to == 0) return text;
  switch (part.reason) {
    case node::PartReason::None: text << tr("It moves to part %1.").arg(part.moves_to); break;
    case node::PartReason::NoHolder:
      text << tr("It moves to part %1, which no node holds.").arg(part.moves_to);
      break;
    case node::PartReason::OneWallet:
      text << tr("It moves to part %1, which only one owner's nodes hold.").arg(part.moves_to);
      break;
    case node::PartReason::SlowPart:
      text << tr("It moves to part %1, which is slower than the others.").arg(part.moves_to);
      break;
  }
  return text;
}

QStringList RoundsWords::checks(const node::PartView& part) {
  QStringList text{tr("Results of other parts that this node checked and found right: %1.")
                       .arg(Format::integer(part.found_right))};
  if (part.found_wrong > 0)
    text << tr("Found wrong: %1; the network takes them back.").arg(Format::integer(part.found_wrong));
  if (part.withheld > 0)
    text << tr("Not checked, because the nodes that hold them did not send the data: %1.")
                .arg(Format::integer(part.withheld));
  for (std::size_t i = 0; i < part.checkers.size(); ++i)
    if (part.checkers[i] == 0)
      text << tr("Nobody checks part %1: every node with a vote holds it.").arg(i + 1);
  return text;
}

QString RoundsWords::path(const node::Snapshot& snapshot) {
  const std::optional<node::PartView>& part = snapshot.rounds.part;
  if (!part || part->path.empty()) return {};
  QStringList lines{tr("The path of this node's text:")};
  for (std::size_t i = 0; i < part->path.size(); ++i) {
    const node::HopView& hop = part->path[i];
    const QString name = hop.node == snapshot.identity.node_id
                             ? tr("this node")
                             : QString::fromStdString(hop.node).left(shown_id_characters);
    QString line = tr("Part %1: %2").arg(i + 1).arg(name);
    if (hop.computing_ms && hop.between_ms)
      line =
          tr("%1, %2 computing; the line and waiting took %3")
              .arg(line, Format::seconds(*hop.computing_ms / 1000), Format::seconds(*hop.between_ms / 1000));
    lines << line;
  }
  return lines.join(QLatin1Char('\n'));
}

QString RoundsWords::trend(const node::GlobalTrainingView& global) {
  if (global.loss_trend == "improving") return tr("improving");
  if (global.loss_trend == "stable") return tr("stable");
  if (global.loss_trend == "degrading") return tr("getting worse");
  if (global.loss_trend == "insufficient data") return tr("not enough rounds yet");
  return QString::fromStdString(global.loss_trend);
}

RoundsWords::Judgement RoundsWords::agreement(const node::GlobalTrainingView& global) {
  if (!global.hash_agreement)
    return {tr("Not known yet: no node has reported a round"), Tone::Info, QStringLiteral("state-info")};
  if (*global.hash_agreement < 1) {
    // Never "100 %" for less than all.
    const double shown = std::min(0.99, *global.hash_agreement);
    return {tr("Only %1 of the nodes hold the same weights after round %2")
                .arg(Format::percent(shown), Format::integer(global.agreement_round)),
            Tone::Warning, QStringLiteral("state-warning")};
  }
  if (global.sync_success && *global.sync_success <= low_success)
    return {tr("All nodes hold the same weights, but only %1 of their recent contributions counted")
                .arg(Format::percent(*global.sync_success)),
            Tone::Warning, QStringLiteral("state-warning")};
  if (global.reports < 2)
    return {tr("No other node to compare with yet"), Tone::Info, QStringLiteral("state-info")};
  return {tr("All nodes hold the same weights after round %1").arg(Format::integer(global.agreement_round)),
          Tone::Working, QStringLiteral("state-working")};
}

}  // namespace neuroshard::ui
