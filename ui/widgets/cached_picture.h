// The picture of a widget that takes long to draw. It is drawn anew in an event of its own, once per pass of
// the event loop at most; the repaint of a page with many such widgets only copies pictures, so no event is
// long.
#pragma once

#include <QObject>
#include <QPixmap>
#include <QTimer>
#include <functional>

class QPainter;
class QWidget;

namespace neuroshard::ui {

// Threads: ui.
class CachedPicture final : public QObject {
 public:
  // `draw` fills the widget's rectangle, on a transparent ground, in the widget's coordinates.
  CachedPicture(QWidget* widget, std::function<void(QPainter&)> draw);

  // The content has changed; the widget is repainted soon.
  void invalidate();
  // In the widget's paintEvent. Draws it first when it must: a new size, or a paint before the picture's own
  // event.
  void paint(QPainter& painter);
  int drawings() const { return drawings_; }

 private:
  void draw();

  QWidget* widget_;
  std::function<void(QPainter&)> draw_;
  QPixmap picture_;
  QTimer soon_;
  bool stale_ = true;
  int drawings_ = 0;
};

}  // namespace neuroshard::ui
