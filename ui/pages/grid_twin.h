// A picture and its table twin in one card.
#pragma once

#include <QStringList>
#include <vector>

class QStandardItemModel;
class QToolButton;
class QWidget;

namespace neuroshard::ui {

class Card;
class Theme;

// The button for add_twin(), in the card's title line; `what` names the picture.
QToolButton* make_twin_button(const Theme& theme, const QString& what, Card* card);
// Puts both into the card; the checkable button chooses which is shown.
void add_twin(Card* card, QToolButton* button, QWidget* picture, QWidget* table);
// Writes the rows in place: cells that stay the same stay untouched, rows come and go at the end. Columns
// from `first_number` on are aligned to the right.
void fill_rows(QStandardItemModel& model, const std::vector<QStringList>& rows, int first_number);

}  // namespace neuroshard::ui
