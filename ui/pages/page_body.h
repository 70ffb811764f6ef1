// The frame that pages of cards share. The window scrolls the page and shows its title.
#pragma once

class QVBoxLayout;
class QWidget;

namespace neuroshard::ui {

// Fills an empty page with a column for its cards, on the grid of 8 pixels.
QVBoxLayout* make_page_column(QWidget* page);

}  // namespace neuroshard::ui
