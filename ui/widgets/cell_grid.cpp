#include "ui/widgets/cell_grid.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "ui/theme/theme.h"
#include "ui/widgets/tabular_text.h"

namespace neuroshard::ui {
namespace {
constexpr int cell_height = 32, least_width = 30, wanted_width = 64, most_width = 128, gap = 3;
constexpr double radius = 6;
}  // namespace

CellGrid::CellGrid(const Theme& theme, const QString& accessible_name, QWidget* parent)
    : QWidget(parent), theme_(theme) {
  setAccessibleName(accessible_name);
  setFocusPolicy(Qt::StrongFocus);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  connect(&theme, &Theme::changed, this, qOverload<>(&QWidget::update));
}

void CellGrid::set_content(GridContent content) {
  if (content == content_) return;
  const bool resized =
      content.rows.size() != content_.rows.size() || content.columns.size() != content_.columns.size();
  content_ = std::move(content);
  title_width_ = 0;
  if (resized) updateGeometry();
  update();
  if (row_ < 0) return;
  if (!resized && cell(row_, column_) != nullptr) return set_current(row_, column_);
  row_ = column_ = -1;
  setAccessibleDescription({});
  Q_EMIT current_changed(-1, -1);
}

const GridCell* CellGrid::cell(int row, int column) const {
  if (row < 0 || column < 0 || row >= content_.rows.size() || column >= content_.columns.size())
    return nullptr;
  const auto index = static_cast<std::size_t>(row) * static_cast<std::size_t>(content_.columns.size()) +
                     static_cast<std::size_t>(column);
  if (index >= content_.cells.size() || content_.cells[index].description.isEmpty()) return nullptr;
  return &content_.cells[index];
}

double CellGrid::title_width() const {
  if (title_width_ > 0) return title_width_;
  const QFontMetricsF metrics(font());
  double widest = 0;
  for (const QString& title : content_.rows) widest = std::max(widest, metrics.horizontalAdvance(title));
  return title_width_ = std::ceil(widest) + 8;
}

double CellGrid::cell_width() const {
  const auto columns = std::max<qsizetype>(1, content_.columns.size());
  return std::clamp((width() - title_width()) / static_cast<double>(columns),
                    static_cast<double>(least_width), static_cast<double>(most_width));
}

QRectF CellGrid::cell_rect(int row, int column) const {
  const double wide = cell_width();
  QRectF rect(title_width() + column * wide, cell_height * (row + 1.0), wide - gap, cell_height - gap);
  if (layoutDirection() == Qt::RightToLeft) rect.moveRight(width() - rect.left());
  return rect;
}

QSize CellGrid::sizeHint() const {
  return {static_cast<int>(title_width()) + wanted_width * static_cast<int>(content_.columns.size()),
          cell_height * (static_cast<int>(content_.rows.size()) + 1)};
}

QSize CellGrid::minimumSizeHint() const {
  return {static_cast<int>(title_width()) + least_width * static_cast<int>(content_.columns.size()),
          sizeHint().height()};
}

void CellGrid::paintEvent(QPaintEvent*) {
  ++frames_;
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  QFont small = font();
  small.setPixelSize(12);
  painter.setFont(small);
  const QFontMetricsF metrics(small);
  const bool rtl = layoutDirection() == Qt::RightToLeft;
  painter.setPen(theme_.color(Token::TextMuted));
  for (int column = 0; column < content_.columns.size(); ++column) {
    QRectF head = cell_rect(0, column);
    head.moveTop(0);
    painter.drawText(head, static_cast<int>(Qt::AlignCenter),
                     metrics.elidedText(content_.columns[column], Qt::ElideRight, head.width()));
  }
  for (int row = 0; row < content_.rows.size(); ++row) {
    const double top = cell_height * (row + 1.0);
    const QRectF title = rtl ? QRectF(width() - title_width(), top, title_width(), cell_height - gap)
                             : QRectF(0, top, title_width() - 8, cell_height - gap);
    painter.setPen(theme_.color(Token::TextMuted));
    painter.drawText(title, static_cast<int>(Qt::AlignVCenter | Qt::AlignLeft), content_.rows[row]);
    for (int column = 0; column < content_.columns.size(); ++column) {
      const GridCell* one = cell(row, column);
      if (one == nullptr) continue;
      const QRectF rect = cell_rect(row, column);
      const QColor ground = one->heat >= 0 ? theme_.heat(one->heat) : theme_.color(Token::SurfaceAlt);
      painter.setPen(one->outlined ? QPen(theme_.color(Token::Working), 2) : QPen(Qt::NoPen));
      painter.setBrush(ground);
      painter.drawRoundedRect(rect.adjusted(1, 1, -1, -1), radius, radius);
      painter.setPen(one->heat >= 0 ? readable_on(ground) : theme_.color(Token::Text));
      if (tabular_width(one->text, metrics) <= rect.width())
        draw_tabular(painter, rect, Qt::AlignCenter, one->text);
      if (row == row_ && column == column_ && hasFocus()) {
        painter.setBrush(Qt::NoBrush);
        painter.setPen(QPen(theme_.color(Token::Focus), 2.5));
        painter.drawRoundedRect(rect.adjusted(-0.5, -0.5, 0.5, 0.5), radius, radius);
      }
    }
  }
}

void CellGrid::set_current(int row, int column) {
  const GridCell* one = cell(row, column);
  if (one == nullptr) return;
  row_ = row;
  column_ = column;
  setAccessibleDescription(one->description);
  update();
  Q_EMIT current_changed(row, column);
}

void CellGrid::move(int rows, int columns) {
  int row = row_ < 0 ? 0 : row_ + rows, column = column_ < 0 ? 0 : column_ + columns;
  // Over gaps to the next cell.
  while (row >= 0 && column >= 0 && row < content_.rows.size() && column < content_.columns.size()) {
    if (cell(row, column) != nullptr) return set_current(row, column);
    if (rows == 0 && columns == 0) return;
    row += rows;
    column += columns;
  }
}

void CellGrid::keyPressEvent(QKeyEvent* event) {
  switch (event->key()) {
    case Qt::Key_Up: return move(-1, 0);
    case Qt::Key_Down: return move(1, 0);
    case Qt::Key_Left: return move(0, layoutDirection() == Qt::RightToLeft ? 1 : -1);
    case Qt::Key_Right: return move(0, layoutDirection() == Qt::RightToLeft ? -1 : 1);
    default: return QWidget::keyPressEvent(event);
  }
}

void CellGrid::mousePressEvent(QMouseEvent* event) {
  for (int row = 0; row < content_.rows.size(); ++row)
    for (int column = 0; column < content_.columns.size(); ++column)
      if (cell_rect(row, column).contains(event->position())) return set_current(row, column);
}

void CellGrid::focusInEvent(QFocusEvent* event) {
  QWidget::focusInEvent(event);
  if (row_ < 0)
    for (int column = 0; column < content_.columns.size() && row_ < 0; ++column) set_current(0, column);
  update();
}

void CellGrid::changeEvent(QEvent* event) {
  if (event->type() == QEvent::FontChange) title_width_ = 0;
  QWidget::changeEvent(event);
}

bool CellGrid::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  for (int row = 0; row < content_.rows.size(); ++row)
    for (int column = 0; column < content_.columns.size(); ++column)
      if (const GridCell* one = cell(row, column);
          one != nullptr && cell_rect(row, column).contains(help->pos())) {
        QToolTip::showText(help->globalPos(), one->description, this);
        return true;
      }
  QToolTip::hideText();
  return true;
}

}  // namespace neuroshard::ui
