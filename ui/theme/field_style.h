// Fusion, but number fields and choices look as the style sheet's text fields do: the same frame, height and
// focus. The style sheet itself can't colour their arrows. And boxes and circles to tick have an edge that
// can be seen in the dark too.
#pragma once

#include <QPointer>
#include <QProxyStyle>

namespace neuroshard::ui {

class Theme;

class FieldStyle final : public QProxyStyle {
  Q_OBJECT
 public:
  explicit FieldStyle(const Theme* theme);
  void drawComplexControl(ComplexControl control, const QStyleOptionComplex* option, QPainter* painter,
                          const QWidget* widget) const override;
  void drawPrimitive(PrimitiveElement element, const QStyleOption* option, QPainter* painter,
                     const QWidget* widget) const override;
  QRect subControlRect(ComplexControl control, const QStyleOptionComplex* option, SubControl part,
                       const QWidget* widget) const override;
  QSize sizeFromContents(ContentsType type, const QStyleOption* option, const QSize& contents,
                         const QWidget* widget) const override;

 private:
  void draw_frame(QPainter& painter, const QStyleOption& option) const;
  void draw_arrow(QPainter& painter, const QRect& rect, bool up, bool enabled) const;
  void draw_pressed(QPainter& painter, const QStyleOptionComplex& option, const QRect& rect,
                    SubControl part) const;

  QPointer<const Theme> theme_;
};

}  // namespace neuroshard::ui
