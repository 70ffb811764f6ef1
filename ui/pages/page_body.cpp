#include "ui/pages/page_body.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QScrollArea>
#include <QVBoxLayout>

#include "ui/widgets/card.h"

namespace neuroshard::ui {

PageBody make_page_body(QWidget* page, const QString& title, bool scrolls) {
  auto* outer = new QVBoxLayout(page);
  outer->setContentsMargins(0, 0, 0, 0);
  outer->setSpacing(0);
  auto* inner = new QWidget;
  auto* column = new QVBoxLayout(inner);
  column->setContentsMargins(2 * grid_step, 2 * grid_step, 2 * grid_step, 2 * grid_step);
  column->setSpacing(2 * grid_step);
  if (scrolls) {
    auto* scroll = new QScrollArea(page);
    scroll->setObjectName(QStringLiteral("page_scroll"));
    scroll->setWidgetResizable(true);
    scroll->setFocusPolicy(Qt::NoFocus);
    scroll->setWidget(inner);
    outer->addWidget(scroll);
  } else {
    inner->setParent(page);
    outer->addWidget(inner);
  }
  auto* heading = new QHBoxLayout;
  heading->setSpacing(grid_step);
  heading->addWidget(make_label(title, "page-title", inner));
  heading->addStretch(1);
  column->addLayout(heading);
  return {heading, column};
}

}  // namespace neuroshard::ui
