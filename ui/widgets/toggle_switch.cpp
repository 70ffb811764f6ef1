#include "ui/widgets/toggle_switch.h"

#include <QAccessible>
#include <QAccessibleWidget>
#include <QPainter>

#include "ui/theme/theme.h"

namespace neuroshard::ui {
namespace {

constexpr int track_width = 40, track_height = 22, gap = 8, frame = 4;

// Qt's own interface of a checkable button changes its state without a click, so that whoever waits for
// clicked() never hears of a screen reader's press. Here the press is a click.
class AccessibleSwitch final : public QAccessibleWidget {
 public:
  explicit AccessibleSwitch(QAbstractButton* button)
      : QAccessibleWidget(button, QAccessible::CheckBox), button_(button) {}

  QString text(QAccessible::Text kind) const override {
    const QString text = QAccessibleWidget::text(kind);
    return text.isEmpty() && kind == QAccessible::Name ? button_->text() : text;
  }
  QAccessible::State state() const override {
    QAccessible::State state = QAccessibleWidget::state();
    state.checkable = true;
    state.checked = button_->isChecked();
    return state;
  }
  QStringList actionNames() const override {
    QStringList names;
    if (button_->isEnabled()) names << toggleAction();
    return names << QAccessibleWidget::actionNames();
  }
  void doAction(const QString& name) override {
    if (name != toggleAction() && name != pressAction()) return QAccessibleWidget::doAction(name);
    if (button_->isEnabled()) button_->click();
  }

 private:
  QAbstractButton* button_;  // this goes with its widget
};

QAccessibleInterface* make_accessible(const QString&, QObject* object) {
  auto* button = qobject_cast<ToggleSwitch*>(object);
  return button == nullptr ? nullptr : new AccessibleSwitch(button);  // NOLINT: Qt's cache owns it
}

}  // namespace

ToggleSwitch::ToggleSwitch(const Theme& theme, const QString& text, QWidget* parent)
    : QAbstractButton(parent), theme_(theme) {
  QAccessible::installFactory(make_accessible);  // once, although this runs often
  setCheckable(true);
  setText(text);
  setFocusPolicy(Qt::StrongFocus);
  setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
  setCursor(Qt::PointingHandCursor);
  connect(&theme, &Theme::changed, this, qOverload<>(&QWidget::update));
}

QSize ToggleSwitch::sizeHint() const {
  QFont font = this->font();
  font.setWeight(QFont::DemiBold);
  const QFontMetrics metrics(font);
  const int text = this->text().isEmpty() ? 0 : gap + metrics.horizontalAdvance(this->text());
  return {track_width + text + 2 * frame, std::max(track_height, metrics.height()) + 2 * frame};
}

void ToggleSwitch::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const bool rtl = layoutDirection() == Qt::RightToLeft;
  QRectF track(rtl ? width() - frame - track_width : frame, (height() - track_height) / 2.0, track_width,
               track_height);
  const QColor on = theme_.color(isEnabled() ? Token::Accent : Token::TextDisabled);
  const QColor edge = theme_.color(isEnabled() ? Token::BorderStrong : Token::Border);
  painter.setPen(QPen(isChecked() ? on : edge, 1.5));
  painter.setBrush(isChecked() ? on : theme_.color(Token::SurfaceAlt));
  painter.drawRoundedRect(track.adjusted(0.75, 0.75, -0.75, -0.75), track_height / 2.0, track_height / 2.0);
  const qreal radius = track_height / 2.0 - 4.5;
  const bool right = isChecked() != rtl;
  const QPointF knob(right ? track.right() - track_height / 2.0 : track.left() + track_height / 2.0,
                     track.center().y());
  painter.setPen(Qt::NoPen);
  painter.setBrush(isChecked() ? theme_.color(Token::OnAccent) : edge);
  painter.drawEllipse(knob, radius, radius);
  QFont font = this->font();
  font.setWeight(QFont::DemiBold);
  painter.setFont(font);
  painter.setPen(theme_.color(isEnabled() ? Token::Text : Token::TextDisabled));
  const QRectF text =
      rtl ? QRectF(frame, 0, width() - track_width - gap - 2 * frame, height())
          : QRectF(frame + track_width + gap, 0, width() - track_width - gap - 2 * frame, height());
  painter.drawText(text, static_cast<int>(Qt::AlignVCenter | Qt::AlignLeft), this->text());
  if (hasFocus()) {
    painter.setPen(QPen(theme_.color(Token::Focus), 2));
    painter.setBrush(Qt::NoBrush);
    painter.drawRoundedRect(QRectF(rect()).adjusted(1, 1, -1, -1), 8, 8);
  }
}

}  // namespace neuroshard::ui
