#include "ui/pages/page_body.h"

#include <QVBoxLayout>

#include "ui/widgets/card.h"

namespace neuroshard::ui {

QVBoxLayout* make_page_column(QWidget* page) {
  auto* column = new QVBoxLayout(page);
  column->setContentsMargins(2 * grid_step, 2 * grid_step, 2 * grid_step, 2 * grid_step);
  column->setSpacing(2 * grid_step);
  return column;
}

}  // namespace neuroshard::ui
