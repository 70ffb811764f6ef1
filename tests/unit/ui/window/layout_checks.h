// Rules for every page, whatever it shows: names for the screen reader, no text cut off, a tab order.
#pragma once

#include <QAbstractButton>
#include <QAbstractScrollArea>
#include <QAbstractSpinBox>
#include <QAccessible>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QStyle>
#include <QStyleOptionButton>
#include <QToolButton>
#include <QWidget>

namespace neuroshard::ui {

inline QString describe(const QWidget* widget) {
  QString path;
  for (const QWidget* at = widget; at != nullptr && !at->isWindow(); at = at->parentWidget())
    path.prepend(QStringLiteral("/") +
                 QString::fromLatin1(at->metaObject()->className()).section(QStringLiteral("::"), -1) +
                 (at->objectName().isEmpty() ? QString() : QStringLiteral("#") + at->objectName()));
  return path;
}

inline bool focusable(const QWidget* widget) {
  return widget->isVisible() && widget->isEnabled() && (widget->focusPolicy() & Qt::TabFocus) != 0 &&
         widget->focusProxy() == nullptr;
}

// Widgets that can have the focus but say nothing to a screen reader.
inline QStringList nameless(const QWidget* root) {
  QStringList found;
  for (QWidget* widget : root->findChildren<QWidget*>()) {
    if (!focusable(widget) || widget->objectName().startsWith(QStringLiteral("qt_"))) continue;
    QAccessibleInterface* face = QAccessible::queryAccessibleInterface(widget);
    if (face == nullptr || face->text(QAccessible::Name).trimmed().isEmpty()) found << describe(widget);
  }
  return found;
}

// Labels, buttons and fields whose text has no room: narrower than they need in one line, or lower than their
// wrapped text.
inline QStringList clipped(const QWidget* root) {
  QStringList found;
  const auto report = [&found](const QWidget* widget, const QString& text) {
    found << QStringLiteral("%1 \"%2\": %3x%4 of %5x%6")
                 .arg(describe(widget), text)
                 .arg(widget->width())
                 .arg(widget->height())
                 .arg(widget->sizeHint().width())
                 .arg(widget->sizeHint().height());
  };
  for (const QLabel* label : root->findChildren<QLabel*>()) {
    if (!label->isVisible() || label->text().isEmpty() ||
        label->sizePolicy().horizontalPolicy() == QSizePolicy::Ignored)
      continue;
    if (label->wordWrap() ? label->height() + 1 < label->heightForWidth(label->width())
                          : label->width() + 1 < label->sizeHint().width())
      report(label, label->text());
  }
  for (const QAbstractButton* button : root->findChildren<QAbstractButton*>()) {
    if (!button->isVisible() || button->text().isEmpty()) continue;
    const auto* tool = qobject_cast<const QToolButton*>(button);
    if (tool != nullptr && tool->toolButtonStyle() == Qt::ToolButtonIconOnly && !tool->icon().isNull())
      continue;
    if (button->width() + 1 < button->sizeHint().width() ||
        button->height() + 1 < button->minimumSizeHint().height())
      report(button, button->text());
  }
  for (const QWidget* field : root->findChildren<QWidget*>()) {
    const auto* spin = qobject_cast<const QAbstractSpinBox*>(field);
    const auto* choice = qobject_cast<const QComboBox*>(field);
    if ((spin == nullptr && choice == nullptr) || !field->isVisible()) continue;
    if (field->width() + 1 < field->minimumSizeHint().width())
      report(field, spin != nullptr ? spin->text() : choice->currentText());
  }
  return found;
}

}  // namespace neuroshard::ui
