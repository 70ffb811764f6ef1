#include "ui/pages/alert_action.h"

#include <QCoreApplication>

namespace neuroshard::ui {
namespace {
class Words {
  Q_DECLARE_TR_FUNCTIONS(neuroshard::ui::AlertAction)
};
}  // namespace

AlertAction alert_action(const QString& alert_key) {
  if (alert_key == QLatin1String("disk_low"))
    return {Words::tr("Free space"), QStringLiteral("checkpoints"), QStringLiteral("prune")};
  if (alert_key == QLatin1String("checkpoint"))
    return {Words::tr("Open checkpoints"), QStringLiteral("checkpoints"), {}};
  if (alert_key == QLatin1String("memory"))
    return {Words::tr("Open limits"), QStringLiteral("settings"), QStringLiteral("memory_limit")};
  if (alert_key == QLatin1String("training_failed"))
    return {Words::tr("Open training"), QStringLiteral("training"), QStringLiteral("start")};
  if (alert_key == QLatin1String("data")) return {Words::tr("Open data"), QStringLiteral("data"), {}};
  if (alert_key.startsWith(QLatin1String("rounds_")))
    return {Words::tr("Open rounds"), QStringLiteral("training"), QStringLiteral("rounds")};
  return {Words::tr("Open log"), QStringLiteral("logs"), {}};
}

}  // namespace neuroshard::ui
