#include "ui/widgets/row_text.h"

#include <algorithm>

namespace neuroshard::ui {

RowText::RowText(const QString& head, qsizetype rows, std::function<QString(qsizetype)> row, QObject* parent)
    : QObject(parent), text_(head.toUtf8()), rows_(rows), row_(std::move(row)) {
  turn_.setInterval(0);
  connect(&turn_, &QTimer::timeout, this, &RowText::piece);
}

void RowText::start() {
  turn_.start();
  piece();
}

void RowText::piece() {
  for (const qsizetype end = std::min(rows_, next_ + rows_per_turn); next_ < end; ++next_)
    text_ += row_(next_).toUtf8();
  if (next_ < rows_) return;
  turn_.stop();
  deleteLater();
  Q_EMIT done(text_);
}

}  // namespace neuroshard::ui
