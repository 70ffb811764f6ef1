#include "ui/pages/partition_bars.h"

#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <array>

#include "ui/pages/partition_words.h"
#include "ui/text/format.h"
#include "ui/theme/theme.h"
#include "ui/widgets/card.h"

namespace neuroshard::ui {
namespace {

constexpr int row_height = 28, bar_height = 14, legend_height = 26, name_width = 92, value_width = 190;
constexpr std::size_t parts = 4;

std::array<double, parts> parts_of(const PartitionBlock& block) {
  return {block.in, block.work, block.overflow, block.out};
}

QColor part_colour(const Theme& theme, std::size_t block, std::size_t part) {
  switch (part) {
    case 0: return mix(theme.color(Token::Surface), theme.color(Token::TextMuted), 0.55);
    case 1: return block_colour(theme, block);
    case 2: return theme.color(Token::Danger);
    default: return theme.color(Token::TextMuted);
  }
}

}  // namespace

QColor block_colour(const Theme& theme, std::size_t block) {
  constexpr int colours = 6;
  return theme.series(static_cast<int>(block % colours));
}

PartitionBars::PartitionBars(const Theme& theme, QWidget* parent) : QWidget(parent), theme_(theme) {
  setObjectName(QStringLiteral("partition_bars"));
  setAccessibleName(tr("Load of each block"));
  setMouseTracking(true);
  connect(&theme, &Theme::changed, this, [this] { update(); });
}

void PartitionBars::set_report(const PartitionReport& report) {
  blocks_ = report.blocks;
  unit_ = report.unit;
  most_ = 0;
  QStringList said;
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    most_ = std::max(most_, blocks_[b].cost);
    said << describe(b);
  }
  setAccessibleDescription(said.join(u'\n'));
  updateGeometry();
  update();
}

QSize PartitionBars::sizeHint() const {
  return {720, legend_height + row_height * static_cast<int>(std::max<std::size_t>(blocks_.size(), 1))};
}

QSize PartitionBars::minimumSizeHint() const {
  return {name_width + value_width + 120, sizeHint().height()};
}

QRectF PartitionBars::bar_rect(std::size_t block) const {
  const double top =
      legend_height + row_height * static_cast<double>(block) + (row_height - bar_height) / 2.0;
  return {name_width, top, std::max(10.0, static_cast<double>(width() - name_width - value_width)),
          bar_height};
}

QRectF PartitionBars::part_rect(std::size_t block, std::size_t part) const {
  const QRectF whole = bar_rect(block);
  const auto times = parts_of(blocks_[block]);
  const double scale = most_ > 0 ? whole.width() / most_ : 0;
  double x = whole.left();
  for (std::size_t i = 0; i < part; ++i) x += times[i] * scale;
  return {x, whole.top(), times[part] * scale, whole.height()};
}

QString PartitionBars::describe(std::size_t block) const {
  const PartitionBlock& b = blocks_[block];
  QString text = tr("Block %1 on %2: %3 in all; receives %4, computes %5, sends %6")
                     .arg(block + 1)
                     .arg(b.peer, cost_text(b.cost, unit_), cost_text(b.in, unit_), cost_text(b.work, unit_),
                          cost_text(b.out, unit_));
  if (b.overflow > 0) text += tr(", streams parameters in for %1").arg(cost_text(b.overflow, unit_));
  return text + tr("; %1 nodes, %2 of parameters, %3 of memory at most")
                    .arg(Format::integer(static_cast<std::uint64_t>(b.nodes)), size_text(b.param_bytes),
                         size_text(b.param_bytes + b.peak_bytes));
}

void PartitionBars::paint_legend(QPainter& painter) const {
  const std::array<QString, parts> names{tr("receive"), tr("compute (colour of the block)"),
                                         tr("stream parameters in"), tr("send")};
  const bool streams =
      std::any_of(blocks_.begin(), blocks_.end(), [](const PartitionBlock& b) { return b.overflow > 0; });
  double x = name_width;
  for (std::size_t part = 0; part < parts; ++part) {
    if (part == 2 && !streams) continue;
    painter.fillRect(QRectF(x, 5, 10, 10), part_colour(theme_, 0, part));
    painter.setPen(theme_.color(Token::TextMuted));
    painter.drawText(QPointF(x + 15, 14), names[part]);
    x += 34 + painter.fontMetrics().horizontalAdvance(names[part]);
  }
}

void PartitionBars::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  paint_legend(painter);
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    const PartitionBlock& block = blocks_[b];
    const bool slowest = block.cost >= most_ * (1 - 1e-9);
    const double top = legend_height + row_height * static_cast<double>(b);
    QFont font = painter.font();
    font.setBold(slowest);
    painter.setFont(font);
    painter.setPen(theme_.color(Token::Text));
    painter.drawText(QRectF(0, top, name_width - 8, row_height), Qt::AlignVCenter | Qt::AlignLeft,
                     tr("Block %1").arg(b + 1));
    painter.fillRect(bar_rect(b), theme_.color(Token::SurfaceAlt));
    for (std::size_t part = 0; part < parts; ++part)
      painter.fillRect(part_rect(b, part), part_colour(theme_, b, part));
    if (slowest) {
      painter.setPen(QPen(theme_.color(Token::Warning), 2));
      painter.setBrush(Qt::NoBrush);
      painter.drawRoundedRect(bar_rect(b).adjusted(-3, -3, 3, 3), 4, 4);
      painter.setPen(theme_.color(Token::Text));
    }
    const QString value = cost_text(block.cost, unit_);
    painter.drawText(QRectF(width() - value_width + 12, top, value_width - 12, row_height),
                     Qt::AlignVCenter | Qt::AlignLeft, slowest ? tr("%1 · the slowest").arg(value) : value);
    font.setBold(false);
    painter.setFont(font);
  }
}

bool PartitionBars::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const int row = (help->pos().y() - legend_height) / row_height;
  if (help->pos().y() >= legend_height && row >= 0 && static_cast<std::size_t>(row) < blocks_.size()) {
    QToolTip::showText(help->globalPos(), describe(static_cast<std::size_t>(row)), this);
  } else {
    QToolTip::hideText();
  }
  return true;
}

}  // namespace neuroshard::ui
