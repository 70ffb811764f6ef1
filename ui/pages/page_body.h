// The frame that pages of cards share: a heading, controls beside it, and cards in a column that scrolls.
#pragma once

#include <QString>

class QHBoxLayout;
class QVBoxLayout;
class QWidget;

namespace neuroshard::ui {

struct PageBody {
  QHBoxLayout* controls;  // at the right of the heading
  QVBoxLayout* column;    // the cards
};
// Fills an empty page. Pages whose main part scrolls by itself (log, chat) are given scrolls = false.
PageBody make_page_body(QWidget* page, const QString& title, bool scrolls = true);

}  // namespace neuroshard::ui
