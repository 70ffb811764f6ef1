#include "ui/theme/icon_engine.h"

#include <QFile>
#include <QPainter>
#include <QPixmap>
#include <QSvgRenderer>

#include "core/base/check.h"
#include "ui/theme/theme.h"

namespace neuroshard::ui {

IconEngine::IconEngine(const Theme* theme, const QString& name, Token colour)
    : theme_(theme), colour_(colour) {
  QFile file(QStringLiteral(":/icons/%1.svg").arg(name));
  const bool opened = file.open(QIODevice::ReadOnly);
  NS_CHECK(opened);
  svg_ = file.readAll();
}

void IconEngine::paint(QPainter* painter, const QRect& rect, QIcon::Mode mode, QIcon::State state) {
  if (theme_.isNull()) return;
  Token token = colour_;
  if (mode == QIcon::Disabled) {
    token = Token::TextDisabled;
  } else if (mode == QIcon::Selected || (state == QIcon::On && colour_ == Token::TextMuted)) {
    token = Token::Accent;
  }
  QByteArray svg = svg_;
  QSvgRenderer renderer(svg.replace("currentColor", theme_->color(token).name().toLatin1()));
  const int side = std::min(rect.width(), rect.height());
  QRectF square(0, 0, side, side);
  square.moveCenter(QRectF(rect).center());
  painter->setRenderHint(QPainter::Antialiasing);
  renderer.render(painter, square);
}

QPixmap IconEngine::pixmap(const QSize& size, QIcon::Mode mode, QIcon::State state) {
  if (size.isEmpty()) return {};  // asked while a widget has no room yet
  QPixmap result(size);
  result.fill(Qt::transparent);
  QPainter painter(&result);
  paint(&painter, QRect(QPoint(0, 0), size), mode, state);
  return result;
}

}  // namespace neuroshard::ui
