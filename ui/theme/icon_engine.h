// Draws one of our SVG icons in a colour of the theme. The files draw with "currentColor".
#pragma once

#include <QByteArray>
#include <QIconEngine>
#include <QPointer>

#include "ui/theme/tokens.h"

namespace neuroshard::ui {

class Theme;

class IconEngine final : public QIconEngine {
 public:
  IconEngine(const Theme* theme, const QString& name, Token colour);
  void paint(QPainter* painter, const QRect& rect, QIcon::Mode mode, QIcon::State state) override;
  QPixmap pixmap(const QSize& size, QIcon::Mode mode, QIcon::State state) override;
  QIconEngine* clone() const override { return new IconEngine(*this); }

 private:
  QPointer<const Theme> theme_;
  QByteArray svg_;
  Token colour_;
};

}  // namespace neuroshard::ui
