#include "ui/pages/token_view.h"

#include <QPaintEvent>
#include <QPainter>

#include "ui/models/token_text.h"
#include "ui/theme/theme.h"

namespace neuroshard::ui {
namespace {
constexpr int padding = 4, gap = 2, line_gap = 8;
}

TokenView::TokenView(const Theme& theme, QWidget* parent) : QWidget(parent), theme_(theme) {
  QSizePolicy policy(QSizePolicy::Expanding, QSizePolicy::Minimum);
  policy.setHeightForWidth(true);
  setSizePolicy(policy);
  setAccessibleName(tr("Tokens of the text"));
  connect(&theme_, &Theme::changed, this, QOverload<>::of(&QWidget::update));
}

QFont TokenView::id_font() const {
  QFont small = font();
  small.setPointSizeF(std::max(7.0, small.pointSizeF() * 0.8));
  return small;
}

void TokenView::set_tokens(const std::vector<node::TokenPiece>& tokens) {
  chips_.clear();
  ids_.clear();
  QStringList spoken;
  for (const node::TokenPiece& token : tokens) {
    Chip chip;
    chip.text = visible_token(token.text);
    chip.id = QString::number(token.id);
    chip.ends_line = !token.text.empty() && token.text.back() == '\n';
    spoken.append(chip.text + QStringLiteral(" ") + chip.id);
    chips_.push_back(std::move(chip));
    ids_.push_back(token.id);
  }
  setAccessibleDescription(spoken.mid(0, 200).join(QStringLiteral(", ")));
  measure();
}

void TokenView::measure() {
  const QFontMetrics text(theme_.monospace()), id(id_font());
  for (Chip& chip : chips_)
    chip.width = std::max(text.horizontalAdvance(chip.text), id.horizontalAdvance(chip.id)) + 2 * padding;
  updateGeometry();
  update();
}

QString TokenView::ids() const {
  QStringList words;
  for (const std::uint32_t id : ids_) words.append(QString::number(id));
  return words.join(u' ');
}

template <class Place>
int TokenView::lay_out(int width, Place place) const {
  const int height = QFontMetrics(theme_.monospace()).height() + QFontMetrics(id_font()).height() + padding;
  int x = 0, y = 0;
  for (std::size_t i = 0; i < chips_.size(); ++i) {
    if (x > 0 && x + chips_[i].width > width) {
      x = 0;
      y += height + line_gap;
    }
    place(i, x, y);
    x += chips_[i].width + gap;
    if (chips_[i].ends_line && i + 1 < chips_.size()) {
      x = 0;
      y += height + line_gap;
    }
  }
  return chips_.empty() ? 0 : y + height;
}

int TokenView::heightForWidth(int width) const {
  return lay_out(width, [](std::size_t, int, int) {});
}

QSize TokenView::sizeHint() const {
  const int wide = width() > 0 ? width() : 400;
  return {wide, heightForWidth(wide)};
}

void TokenView::resizeEvent(QResizeEvent*) {
  setMinimumHeight(heightForWidth(width()));
}

void TokenView::paintEvent(QPaintEvent* event) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const QFont mono = theme_.monospace(), small = id_font();
  const int text_height = QFontMetrics(mono).height(), id_height = QFontMetrics(small).height();
  const QColor backgrounds[] = {theme_.color(Token::InfoSoft), theme_.color(Token::WarningSoft)};
  lay_out(width(), [&](std::size_t i, int x, int y) {
    const Chip& chip = chips_[i];
    const QRect box(x, y, chip.width, text_height + 2);
    if (!event->rect().intersects(QRect(x, y, chip.width, text_height + id_height + padding))) return;
    painter.setPen(Qt::NoPen);
    painter.setBrush(backgrounds[i % 2]);
    painter.drawRoundedRect(box, 4, 4);
    painter.setPen(theme_.color(Token::Text));
    painter.setFont(mono);
    painter.drawText(box, Qt::AlignCenter, chip.text);
    painter.setPen(theme_.color(Token::TextMuted));
    painter.setFont(small);
    painter.drawText(QRect(x, y + text_height + padding, chip.width, id_height), Qt::AlignCenter, chip.id);
  });
}

}  // namespace neuroshard::ui
