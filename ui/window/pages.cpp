#include "ui/window/pages.h"

#include <QCoreApplication>

#include "ui/pages/checkpoints_page.h"
#include "ui/pages/data_page.h"
#include "ui/pages/earnings_page.h"
#include "ui/pages/experts_page.h"
#include "ui/pages/logs_page.h"
#include "ui/pages/network_page.h"
#include "ui/pages/overview_page.h"
#include "ui/pages/playground_page.h"
#include "ui/pages/settings_page.h"
#include "ui/pages/training_page.h"

namespace neuroshard::ui {
namespace {

class Rail {
  Q_DECLARE_TR_FUNCTIONS(neuroshard::ui::Rail)
};

template <class P>
PageFactory page(const char* key, const QString& title) {
  const QString name = QString::fromLatin1(key);
  return {name, name, title,
          [](const Page::Context& context, QWidget* parent) -> Page* { return new P(context, parent); }};
}

}  // namespace

std::vector<PageFactory> page_factories() {
  return {
      page<OverviewPage>("overview", Rail::tr("Overview")),
      page<NetworkPage>("network", Rail::tr("Network")),
      page<TrainingPage>("training", Rail::tr("Training")),
      page<ExpertsPage>("experts", Rail::tr("Experts")),
      page<EarningsPage>("earnings", Rail::tr("Earnings")),
      page<CheckpointsPage>("checkpoints", Rail::tr("Checkpoints")),
      page<DataPage>("data", Rail::tr("Data")),
      page<PlaygroundPage>("playground", Rail::tr("Playground")),
      page<SettingsPage>("settings", Rail::tr("Settings")),
      page<LogsPage>("logs", Rail::tr("Logs")),
  };
}

}  // namespace neuroshard::ui
