#include "ui/theme/field_style.h"

#include <QPainter>
#include <QPainterPath>
#include <QStyleFactory>
#include <QStyleOptionComboBox>
#include <QStyleOptionSpinBox>
#include <algorithm>

#include "ui/theme/theme.h"

namespace neuroshard::ui {
namespace {
// As QLineEdit and QPushButton in style.qss.
constexpr int field_height = 32, padding = 8, arrows_width = 24;
constexpr double radius = 8, chevron = 3.5, tick_radius = 3, tick_edge = 1.5;
}  // namespace

FieldStyle::FieldStyle(const Theme* theme)
    : QProxyStyle(QStyleFactory::create(QStringLiteral("Fusion"))), theme_(theme) {}

void FieldStyle::draw_frame(QPainter& painter, const QStyleOption& option) const {
  const bool enabled = option.state.testFlag(State_Enabled), focus = option.state.testFlag(State_HasFocus);
  const double width = focus ? 2 : 1, inset = width / 2;
  painter.setPen(QPen(theme_->color(focus     ? Token::Focus
                                    : enabled ? Token::BorderStrong
                                              : Token::Border),
                      width));
  painter.setBrush(theme_->color(Token::Surface));
  painter.drawRoundedRect(QRectF(option.rect).adjusted(inset, inset, -inset, -inset), radius, radius);
}

void FieldStyle::draw_arrow(QPainter& painter, const QRect& rect, bool up, bool enabled) const {
  const QPointF middle = QRectF(rect).center();
  const double tip = up ? -chevron / 2 : chevron / 2;
  QPainterPath path(middle + QPointF(-chevron, -tip));
  path.lineTo(middle + QPointF(0, tip));
  path.lineTo(middle + QPointF(chevron, -tip));
  painter.setPen(QPen(theme_->color(enabled ? Token::TextMuted : Token::TextDisabled), 1.5, Qt::SolidLine,
                      Qt::RoundCap, Qt::RoundJoin));
  painter.setBrush(Qt::NoBrush);
  painter.drawPath(path);
}

void FieldStyle::draw_pressed(QPainter& painter, const QStyleOptionComplex& option, const QRect& rect,
                              SubControl part) const {
  if (!option.activeSubControls.testFlag(part) ||
      !(option.state & (QStyle::State_Sunken | QStyle::State_MouseOver)))
    return;
  painter.setPen(Qt::NoPen);
  painter.setBrush(theme_->color(option.state.testFlag(State_Sunken) ? Token::Selection : Token::SurfaceAlt));
  painter.drawRoundedRect(rect.adjusted(2, 2, -2, -2), 4, 4);
}

void FieldStyle::drawComplexControl(ComplexControl control, const QStyleOptionComplex* option,
                                    QPainter* painter, const QWidget* widget) const {
  const auto* spin = qstyleoption_cast<const QStyleOptionSpinBox*>(option);
  const auto* choice = qstyleoption_cast<const QStyleOptionComboBox*>(option);
  if (theme_.isNull() ||
      (control == CC_SpinBox ? spin == nullptr : control != CC_ComboBox || choice == nullptr))
    return QProxyStyle::drawComplexControl(control, option, painter, widget);
  const bool enabled = option->state.testFlag(State_Enabled);
  painter->save();
  painter->setRenderHint(QPainter::Antialiasing);
  draw_frame(*painter, *option);
  if (control == CC_ComboBox) {
    draw_arrow(*painter, proxy()->subControlRect(control, option, SC_ComboBoxArrow, widget), false, enabled);
  } else {
    for (const SubControl part : {SC_SpinBoxUp, SC_SpinBoxDown}) {
      const QRect rect = proxy()->subControlRect(control, option, part, widget);
      const bool up = part == SC_SpinBoxUp;
      const bool can = enabled && spin->stepEnabled.testFlag(up ? QAbstractSpinBox::StepUpEnabled
                                                                : QAbstractSpinBox::StepDownEnabled);
      if (can) draw_pressed(*painter, *option, rect, part);
      draw_arrow(*painter, rect, up, can);
    }
  }
  painter->restore();
}

void FieldStyle::drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                               const QWidget* widget) const {
  const bool radio = element == PE_IndicatorRadioButton;
  if (theme_.isNull() || (!radio && element != PE_IndicatorCheckBox))
    return QProxyStyle::drawPrimitive(element, option, painter, widget);
  const bool on = option->state.testFlag(State_On), enabled = option->state.testFlag(State_Enabled);
  const double side = std::min(option->rect.width(), option->rect.height()) - tick_edge;
  QRectF box(0, 0, side, side);
  box.moveCenter(QRectF(option->rect).center());
  const QColor mark = theme_->color(enabled ? Token::Accent : Token::TextDisabled);
  painter->save();
  painter->setRenderHint(QPainter::Antialiasing);
  painter->setPen(QPen(on ? mark : theme_->color(enabled ? Token::BorderStrong : Token::Border), tick_edge));
  painter->setBrush(on && !radio ? mark : theme_->color(Token::Surface));
  if (radio) {
    painter->drawEllipse(box);
    painter->setPen(Qt::NoPen);
    painter->setBrush(mark);
    if (on) painter->drawEllipse(box.center(), side / 4, side / 4);
  } else {
    painter->drawRoundedRect(box, tick_radius, tick_radius);
    painter->setPen(QPen(theme_->color(Token::OnAccent), 1.5, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
    painter->setBrush(Qt::NoBrush);
    const QPointF tick[] = {box.topLeft() + QPointF(0.25, 0.52) * side,
                            box.topLeft() + QPointF(0.43, 0.70) * side,
                            box.topLeft() + QPointF(0.76, 0.32) * side};
    if (on) painter->drawPolyline(tick, 3);
  }
  painter->restore();
}

QRect FieldStyle::subControlRect(ComplexControl control, const QStyleOptionComplex* option, SubControl part,
                                 const QWidget* widget) const {
  if (control != CC_SpinBox && control != CC_ComboBox)
    return QProxyStyle::subControlRect(control, option, part, widget);
  const QRect all = option->rect;
  const QRect arrows(all.right() - arrows_width + 1, all.top() + 1, arrows_width - 1, all.height() - 2);
  QRect rect;
  if (control == CC_ComboBox) {
    switch (part) {
      case SC_ComboBoxArrow: rect = arrows; break;
      case SC_ComboBoxEditField: rect = all.adjusted(padding, 1, -arrows_width, -1); break;
      default: return QProxyStyle::subControlRect(control, option, part, widget);
    }
  } else {
    switch (part) {
      case SC_SpinBoxUp: rect = arrows.adjusted(0, 0, 0, -arrows.height() / 2); break;
      case SC_SpinBoxDown: rect = arrows.adjusted(0, arrows.height() / 2, 0, 0); break;
      case SC_SpinBoxEditField: rect = all.adjusted(padding - 2, 2, -arrows_width, -2); break;
      default: rect = all; break;
    }
  }
  return visualRect(option->direction, all, rect);
}

QSize FieldStyle::sizeFromContents(ContentsType type, const QStyleOption* option, const QSize& contents,
                                   const QWidget* widget) const {
  QSize size = QProxyStyle::sizeFromContents(type, option, contents, widget);
  if (type == CT_SpinBox || type == CT_ComboBox) {
    size.setHeight(std::max(size.height(), field_height));
    size.setWidth(std::max(size.width(), contents.width() + 2 * padding + arrows_width));
  }
  return size;
}

}  // namespace neuroshard::ui
