// A switch: on or off at a glance, by position, colour and word. A checkable button to keyboards and screen
// readers.
#pragma once

#include <QAbstractButton>

namespace neuroshard::ui {

class Theme;

class ToggleSwitch final : public QAbstractButton {
  Q_OBJECT
 public:
  ToggleSwitch(const Theme& theme, const QString& text, QWidget* parent = nullptr);
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override { return sizeHint(); }

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  const Theme& theme_;
};

}  // namespace neuroshard::ui
