#include "ui/pages/partition_picture.h"

#include <QHelpEvent>
#include <QPainter>
#include <QPainterPath>
#include <QToolTip>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>
#include <map>

#include "ui/pages/partition_bars.h"
#include "ui/pages/partition_words.h"
#include "ui/text/format.h"
#include "ui/theme/theme.h"
#include "ui/widgets/card.h"

namespace neuroshard::ui {
namespace {

constexpr double least_zoom = 0.1, most_zoom = 4, label_zoom = 0.55, readable_zoom = 0.65;

}  // namespace

class PartitionPicture::Canvas final : public QWidget {
 public:
  Canvas(const Theme& theme, QWidget* parent) : QWidget(parent), theme_(theme) {
    setAttribute(Qt::WA_NoSystemBackground, false);
  }

  void set_report(const PartitionReport& report) {
    layout_ = report.layout;
    unit_ = report.unit;
    costs_.clear();
    most_ = 0;
    for (const PartitionBlock& block : report.blocks) {
      costs_.push_back(block.cost);
      most_ = std::max(most_, block.cost);
    }
    trace();
    set_zoom(zoom_);
    update();
  }
  void set_zoom(double zoom) {
    zoom_ = std::clamp(zoom, least_zoom, most_zoom);
    setFixedSize((layout_.size * zoom_).toSize().expandedTo(QSize(1, 1)));
  }
  double zoom() const { return zoom_; }
  QSizeF picture() const { return layout_.size; }

 protected:
  void paintEvent(QPaintEvent* event) override;
  bool event(QEvent* event) override;

 private:
  struct Line {
    QPainterPath path;
    QRectF bounds;
    int colour = -1;  // block; -1 = inside one
    double width = 1;
  };
  QRectF box_rect(const PartitionBox& box) const {
    return {box.centre - QPointF(layout_.box.width() / 2, layout_.box.height() / 2), layout_.box};
  }
  void add(QPainterPath path, int colour, double width) {
    const QRectF bounds = path.boundingRect().adjusted(-3, -3, 3, 3);
    lines_.push_back({std::move(path), bounds, colour, width});
  }
  void trace();
  void trace_inside(const PartitionBox& from, const PartitionBox& to);
  void paint_columns(QPainter& painter, const QRectF& visible) const;
  void paint_boxes(QPainter& painter, const QRectF& visible) const;
  QString describe(const PartitionBox& box) const;

  const Theme& theme_;
  PartitionLayout layout_;
  std::vector<double> costs_;
  std::vector<Line> lines_;
  double most_ = 0, zoom_ = 1;
  QString unit_;
};

// Down; a longer way swings out to the side of what stands between.
void PartitionPicture::Canvas::trace_inside(const PartitionBox& from, const PartitionBox& to) {
  const double half = layout_.box.height() / 2, wide = layout_.box.width();
  const QPointF a = from.centre + QPointF(0, half), b = to.centre - QPointF(0, half);
  const bool far = to.row > from.row + 1 && std::abs(a.x() - b.x()) < wide;
  const double swing = far ? wide * 0.82 : 0, bend = std::max(8.0, (b.y() - a.y()) / 2);
  QPainterPath path(a);
  path.cubicTo(a + QPointF(swing, bend), b + QPointF(swing, -bend), b);
  add(std::move(path), -1, 1);
}

void PartitionPicture::Canvas::trace() {
  lines_.clear();
  std::map<std::pair<int, int>, std::vector<int>> sent;  // producer and block: its readers there
  for (const auto& [from, to] : layout_.edges) {
    const PartitionBox& a = layout_.boxes[static_cast<std::size_t>(from)];
    const PartitionBox& b = layout_.boxes[static_cast<std::size_t>(to)];
    if (a.block == b.block) {
      trace_inside(a, b);
    } else {
      sent[{from, b.block}].push_back(to);
    }
  }
  for (const auto& [transfer, readers] : sent) {
    const PartitionBox& from = layout_.boxes[static_cast<std::size_t>(transfer.first)];
    double y = 0;
    for (const int reader : readers) y += layout_.boxes[static_cast<std::size_t>(reader)].centre.y();
    y /= static_cast<double>(readers.size());
    // Level to the edge of its column first: a slanted line would cross what stands below.
    const double edge = layout_.columns[static_cast<std::size_t>(from.block)].right();
    const QPointF port(layout_.columns[static_cast<std::size_t>(transfer.second)].left(), y);
    const double bend = (port.x() - edge) / 2;
    QPainterPath path(from.centre + QPointF(layout_.box.width() / 2, 0));
    path.lineTo(edge, from.centre.y());
    path.cubicTo({edge + bend, from.centre.y()}, port - QPointF(bend, 0), port);
    add(std::move(path), from.block, 2.5);
    for (const int reader : readers) {
      const QPointF end =
          layout_.boxes[static_cast<std::size_t>(reader)].centre - QPointF(layout_.box.width() / 2, 0);
      QPainterPath fan(port);
      fan.cubicTo({end.x(), port.y()}, {port.x(), end.y()}, end);
      add(std::move(fan), from.block, 1);
    }
  }
}

void PartitionPicture::Canvas::paint_columns(QPainter& painter, const QRectF& visible) const {
  for (std::size_t b = 0; b < layout_.columns.size(); ++b) {
    const QRectF& column = layout_.columns[b];
    if (!column.intersects(visible)) continue;
    const QColor colour = block_colour(theme_, b);
    const bool slowest = costs_[b] >= most_ * (1 - 1e-9);
    painter.setPen(slowest ? QPen(theme_.color(Token::Warning), 3) : QPen(colour, 1));
    painter.setBrush(mix(theme_.color(Token::Surface), colour, 0.08));
    painter.drawRoundedRect(column, 8, 8);
    painter.setPen(theme_.color(Token::Text));
    painter.drawText(QRectF(column.left() + 12, column.top() + 5, column.width() - 16, 18), Qt::AlignVCenter,
                     PartitionPicture::tr("Block %1").arg(b + 1));
    painter.setPen(theme_.color(Token::TextMuted));
    const QString cost = cost_text(costs_[b], unit_);
    painter.drawText(QRectF(column.left() + 12, column.top() + 22, column.width() - 16, 18), Qt::AlignVCenter,
                     slowest ? PartitionPicture::tr("%1 · slowest").arg(cost) : cost);
  }
}

void PartitionPicture::Canvas::paint_boxes(QPainter& painter, const QRectF& visible) const {
  const bool labels = zoom_ >= label_zoom;
  QFont font = painter.font();
  font.setPixelSize(11);
  painter.setFont(font);
  const QFontMetrics metrics(font);
  for (const PartitionBox& box : layout_.boxes) {
    const QRectF rect = box_rect(box);
    if (!rect.intersects(visible)) continue;
    const QColor colour = block_colour(theme_, static_cast<std::size_t>(box.block));
    painter.setPen(colour);
    painter.setBrush(mix(theme_.color(Token::Surface), colour, 0.22));
    painter.drawRoundedRect(rect, 4, 4);
    if (!labels) continue;
    // "aten::conv2d": what it does fits, where it comes from does not.
    QString label = box.op.isEmpty() ? box.id : box.op.section(QStringLiteral("::"), -1);
    painter.setPen(theme_.color(Token::Text));
    painter.drawText(rect, Qt::AlignCenter,
                     metrics.elidedText(label, Qt::ElideRight, static_cast<int>(rect.width()) - 6));
  }
}

void PartitionPicture::Canvas::paintEvent(QPaintEvent* event) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.scale(zoom_, zoom_);
  const QRectF visible(QPointF(event->rect().topLeft()) / zoom_, QSizeF(event->rect().size()) / zoom_);
  paint_columns(painter, visible);
  painter.setBrush(Qt::NoBrush);
  for (const Line& line : lines_) {
    if (!line.bounds.intersects(visible)) continue;
    const QColor colour = line.colour < 0 ? theme_.color(Token::BorderStrong)
                                          : block_colour(theme_, static_cast<std::size_t>(line.colour));
    painter.setPen(QPen(colour, line.width));
    painter.drawPath(line.path);
  }
  paint_boxes(painter, visible);
}

QString PartitionPicture::Canvas::describe(const PartitionBox& box) const {
  QString text = box.op.isEmpty() || box.op == box.id ? box.id : box.id + u'\n' + box.op;
  text +=
      u'\n' + PartitionPicture::tr("block %1; work %2").arg(box.block + 1).arg(cost_text(box.work, unit_));
  if (box.param_bytes > 0) text += PartitionPicture::tr(", %1 of parameters").arg(size_text(box.param_bytes));
  if (box.output_bytes > 0) text += PartitionPicture::tr(", puts out %1").arg(size_text(box.output_bytes));
  return text;
}

bool PartitionPicture::Canvas::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const QPointF at = QPointF(help->pos()) / zoom_;
  for (const PartitionBox& box : layout_.boxes) {
    if (!box_rect(box).contains(at)) continue;
    QToolTip::showText(help->globalPos(), describe(box), this);
    return true;
  }
  QToolTip::hideText();
  return true;
}

PartitionPicture::PartitionPicture(const Theme& theme, QWidget* parent) : QScrollArea(parent) {
  setObjectName(QStringLiteral("partition_picture"));
  setAccessibleName(tr("The cut graph; the table beside it shows the same data"));
  setFrameShape(QFrame::NoFrame);
  setAlignment(Qt::AlignTop | Qt::AlignHCenter);
  viewport()->setAutoFillBackground(false);
  canvas_ = new Canvas(theme, this);
  setWidget(canvas_);
  canvas_->setAutoFillBackground(false);
  connect(&theme, &Theme::changed, canvas_, [this] { canvas_->update(); });
}

PartitionPicture::~PartitionPicture() = default;

void PartitionPicture::set_report(const PartitionReport& report) {
  canvas_->set_report(report);
  setAccessibleDescription(tr("%1 nodes in %2 blocks")
                               .arg(Format::integer(static_cast<std::uint64_t>(report.nodes)),
                                    Format::integer(report.blocks.size())));
  fit(false);
}

double PartitionPicture::zoom() const {
  return canvas_->zoom();
}

void PartitionPicture::set_zoom(double zoom) {
  fitted_ = false;
  canvas_->set_zoom(zoom);
}

void PartitionPicture::fit(bool whole) {
  const QSizeF picture = canvas_->picture();
  if (picture.isEmpty()) return;
  const QSizeF room = maximumViewportSize();
  const double all = std::min(room.width() / picture.width(), room.height() / picture.height());
  canvas_->set_zoom(std::clamp(all, whole ? least_zoom : readable_zoom, 1.0));
  fitted_ = true;
  whole_ = whole;
}

QWidget& PartitionPicture::canvas() const {
  return *canvas_;
}

void PartitionPicture::wheelEvent(QWheelEvent* event) {
  if (!event->modifiers().testFlag(Qt::ControlModifier)) {
    QScrollArea::wheelEvent(event);
    return;
  }
  set_zoom(zoom() * std::pow(1.2, event->angleDelta().y() / 120.0));
  event->accept();
}

void PartitionPicture::resizeEvent(QResizeEvent* event) {
  QScrollArea::resizeEvent(event);
  if (fitted_) fit(whole_);
}

}  // namespace neuroshard::ui
