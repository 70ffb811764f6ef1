#include "ui/window/pages.h"

#include <QCoreApplication>

#include "ui/pages/experts_page.h"
#include "ui/pages/network_page.h"
#include "ui/pages/overview_page.h"
#include "ui/pages/training_page.h"

namespace neuroshard::ui {
namespace {

class Rail {
  Q_DECLARE_TR_FUNCTIONS(neuroshard::ui::Rail)
};

template <class P>
PageFactory page(const char* key, const QString& title) {
  const QString name = QString::fromLatin1(key);
  return {name, name, title, [](const Page::Context& context) -> Page* { return new P(context); }};
}

}  // namespace

std::vector<PageFactory> page_factories() {
  return {
      page<OverviewPage>("overview", Rail::tr("Overview")),
      page<NetworkPage>("network", Rail::tr("Network")),
      page<TrainingPage>("training", Rail::tr("Training")),
      page<ExpertsPage>("experts", Rail::tr("Experts")),
  };
}

}  // namespace neuroshard::ui
