// A veil over another widget: the widget stays readable but looks old. Takes no clicks and no
// focus. Painted over, because an opacity effect draws what scrolls a second time, shifted.
#pragma once

#include <QWidget>

namespace neuroshard::ui {

class Theme;

class Veil final : public QWidget {
  Q_OBJECT
 public:
  // Covers `covered`, its parent, whatever size that has; hidden at first.
  Veil(const Theme& theme, QWidget* covered);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;

 private:
  const Theme& theme_;
};

}  // namespace neuroshard::ui
