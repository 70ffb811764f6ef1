#include "ui/pages/news_dialog.h"

#include <QDialogButtonBox>
#include <QLabel>
#include <QLocale>
#include <QPushButton>
#include <QScrollArea>
#include <QShowEvent>
#include <QVBoxLayout>

#include "ui/widgets/card.h"

namespace neuroshard::ui {
namespace {

constexpr int width_of_all = 520, most_height = 460;

void add_block(const ReleaseNote::Block& block, QVBoxLayout* column, QWidget* parent) {
  auto* line = new QHBoxLayout;
  line->setSpacing(grid_step);
  if (block.item) line->addWidget(make_label(QStringLiteral("•"), "muted", parent), 0, Qt::AlignTop);
  line->addWidget(make_paragraph(block.text, nullptr, parent), 1);
  column->addLayout(line);
}

QWidget* make_text(const std::vector<ReleaseNote>& notes) {
  auto* text = new QWidget;
  auto* column = new QVBoxLayout(text);
  column->setContentsMargins(0, 0, grid_step, 0);
  column->setSpacing(grid_step);
  for (const ReleaseNote& note : notes) {
    if (&note != &notes.front()) column->addSpacing(2 * grid_step);
    column->addWidget(make_label(
        NewsDialog::tr("Version %1").arg(QString::fromStdString(note.version.text())), "card-title", text));
    if (note.date.isValid())
      column->addWidget(make_label(QLocale().toString(note.date, QLocale::LongFormat), "caption", text));
    for (const ReleaseNote::Block& block : note.blocks) add_block(block, column, text);
  }
  column->addStretch(1);
  return text;
}

}  // namespace

NewsDialog::NewsDialog(const std::vector<ReleaseNote>& notes, QWidget* parent) : QDialog(parent) {
  setObjectName(QStringLiteral("news_dialog"));
  setAttribute(Qt::WA_DeleteOnClose);
  setWindowTitle(tr("What is new"));
  auto* column = new QVBoxLayout(this);
  column->setSpacing(2 * grid_step);
  column->setContentsMargins(3 * grid_step, 3 * grid_step, 3 * grid_step, 2 * grid_step);
  column->addWidget(make_label(tr("What is new"), "page-title", this));
  area_ = new QScrollArea(this);
  area_->setObjectName(QStringLiteral("news_text"));
  area_->setAccessibleName(tr("What is new"));
  area_->setFrameShape(QFrame::NoFrame);
  area_->setWidgetResizable(true);
  area_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  area_->setWidget(make_text(notes));
  column->addWidget(area_, 1);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  QPushButton* close = buttons->button(QDialogButtonBox::Close);
  close->setDefault(true);
  close->setFocus();
  column->addWidget(buttons);
}

// As high as its text, up to a limit: known only now, with the fonts of the style sheet.
void NewsDialog::showEvent(QShowEvent* event) {
  QDialog::showEvent(event);
  if (event->spontaneous()) return;
  resize(width_of_all, most_height);
  layout()->activate();
  const int spare =
      area_->viewport()->height() - area_->widget()->layout()->heightForWidth(area_->viewport()->width());
  if (spare > 0) resize(width_of_all, most_height - spare);
}

}  // namespace neuroshard::ui
