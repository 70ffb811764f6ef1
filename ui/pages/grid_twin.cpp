#include "ui/pages/grid_twin.h"

#include <QCoreApplication>
#include <QStandardItemModel>
#include <QToolButton>
#include <QVBoxLayout>

#include "ui/theme/theme.h"
#include "ui/widgets/card.h"

namespace neuroshard::ui {

QToolButton* make_twin_button(const Theme& theme, const QString& what, Card* card) {
  auto* button = new QToolButton(card);
  button->setIcon(theme.icon(QStringLiteral("table")));
  button->setCheckable(true);
  button->setToolTip(QCoreApplication::translate("neuroshard::ui::TableTwin", "As a table"));
  button->setAccessibleName(
      QCoreApplication::translate("neuroshard::ui::TableTwin", "%1: as a table").arg(what));
  card->add_control(button);
  return button;
}

void add_twin(Card* card, QToolButton* button, QWidget* picture, QWidget* table) {
  card->body()->addWidget(picture);
  card->body()->addWidget(table);
  table->hide();
  QObject::connect(button, &QToolButton::toggled, card, [picture, table](bool on) {
    picture->setVisible(!on);
    table->setVisible(on);
  });
}

void fill_rows(QStandardItemModel& model, const std::vector<QStringList>& rows, int first_number) {
  const int count = static_cast<int>(rows.size());
  if (model.rowCount() != count) model.setRowCount(count);
  for (int column = first_number; column < model.columnCount(); ++column)
    if (QStandardItem* head = model.horizontalHeaderItem(column); head != nullptr)
      head->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
  for (int row = 0; row < count; ++row) {
    const QStringList& texts = rows[static_cast<std::size_t>(row)];
    for (int column = 0; column < texts.size(); ++column) {
      QStandardItem* item = model.item(row, column);
      if (item == nullptr) {
        item = new QStandardItem;
        item->setEditable(false);
        if (column >= first_number) item->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
        model.setItem(row, column, item);
      }
      if (item->text() != texts[column]) item->setText(texts[column]);
    }
  }
}

}  // namespace neuroshard::ui
