#include "ui/window/veil.h"

#include <QEvent>
#include <QPainter>

#include "ui/theme/theme.h"

namespace neuroshard::ui {

namespace {
constexpr double strength = 0.35;
}

Veil::Veil(const Theme& theme, QWidget* covered) : QWidget(covered), theme_(theme) {
  setObjectName(QStringLiteral("stale_veil"));
  setAttribute(Qt::WA_TransparentForMouseEvents);
  setFocusPolicy(Qt::NoFocus);
  covered->installEventFilter(this);
  setGeometry(covered->rect());
  hide();
}

bool Veil::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Resize) setGeometry(parentWidget()->rect());
  return QWidget::eventFilter(watched, event);
}

void Veil::paintEvent(QPaintEvent*) {
  QColor colour = theme_.color(Token::Window);
  colour.setAlphaF(static_cast<float>(strength));
  QPainter(this).fillRect(rect(), colour);
}

}  // namespace neuroshard::ui
