#include "ui/text/rounds_text.h"

#include <cmath>

#include "ui/text/format.h"

namespace neuroshard::ui {
namespace {

constexpr double low_success = 0.5;

}  // namespace

QString RoundsWords::phase(const node::RoundsView& rounds) {
  const QString said = QString::fromStdString(rounds.phase);
  if (said == QLatin1String("training")) {
    const QString text = tr("Training its part of the round");
    if (!rounds.seconds_left || *rounds.seconds_left < 1) return text;
    const auto left = std::chrono::seconds(static_cast<std::int64_t>(std::ceil(*rounds.seconds_left)));
    return tr("%1, about %2 left").arg(text, Format::duration(left));
  }
  if (said == QLatin1String("waiting for the other members"))
    return tr("Done; waiting for the others' parts");
  if (said == QLatin1String("agreeing on the round")) return tr("The members agree on the result");
  if (said == QLatin1String("training on while the others finish the round"))
    return tr("Training on; the others still finish this round");
  if (said == QLatin1String("training on while the members agree on the round"))
    return tr("Training on while the members agree on the result");
  if (said == QLatin1String("training alone until the others are back"))
    return tr("Too few members in reach: training alone until they are back");
  if (said == QLatin1String("repairing its anchor"))
    return tr("Its weights were damaged: fetching the right ones from the others");
  if (said == QLatin1String("fetching the anchor")) return tr("Fetching the common weights from the others");
  if (said == QLatin1String("joining")) return tr("Joining: it takes part from one of the next rounds on");
  if (said == QLatin1String("preparing")) return tr("Preparing the model");
  return said;
}

QString RoundsWords::caution(const node::RoundsView& rounds) {
  if (!rounds.trouble.empty()) return QString::fromStdString(rounds.trouble);
  if (rounds.members == 1 && rounds.member)
    return tr("Alone: nobody else is in the rounds yet. Whoever joins goes on from this node's weights.");
  if (!rounds.member && rounds.members > 0)
    return tr("Not a member yet: what it trains now counts from its first round on.");
  if (rounds.too_few_to_vote || (rounds.members >= 2 && rounds.members <= 4))
    return tr("Too few to vote: with fewer than five contributions a dishonest one can't be outvoted.");
  return {};
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
    return {tr("Not known yet: nobody has reported a round"), Tone::Info, QStringLiteral("state-info")};
  if (*global.hash_agreement < 1) {
    // Never "100 %" for less than all.
    const double shown = std::min(0.99, *global.hash_agreement);
    return {tr("Only %1 hold the same weights after round %2")
                .arg(Format::percent(shown), Format::integer(global.agreement_round)),
            Tone::Warning, QStringLiteral("state-warning")};
  }
  if (global.sync_success && *global.sync_success <= low_success)
    return {tr("All hold the same weights, but only %1 of the last rounds' work counted")
                .arg(Format::percent(*global.sync_success)),
            Tone::Warning, QStringLiteral("state-warning")};
  if (global.reports < 2) return {tr("Nobody to compare with yet"), Tone::Info, QStringLiteral("state-info")};
  return {tr("All hold the same weights after round %1").arg(Format::integer(global.agreement_round)),
          Tone::Working, QStringLiteral("state-working")};
}

}  // namespace neuroshard::ui
