#include "ui/widgets/cached_picture.h"

#include <QPainter>
#include <QWidget>
#include <utility>

namespace neuroshard::ui {

CachedPicture::CachedPicture(QWidget* widget, std::function<void(QPainter&)> draw)
    : QObject(widget), widget_(widget), draw_(std::move(draw)) {
  soon_.setSingleShot(true);
  soon_.setInterval(0);
  connect(&soon_, &QTimer::timeout, this, [this] {
    if (!stale_ || !widget_->isVisible()) return;
    this->draw();
    widget_->update();
  });
}

void CachedPicture::invalidate() {
  stale_ = true;
  if (picture_.isNull()) return widget_->update();
  soon_.start();
}

void CachedPicture::paint(QPainter& painter) {
  if (stale_ || picture_.size() != widget_->size() * widget_->devicePixelRatioF()) draw();
  painter.drawPixmap(0, 0, picture_);
}

void CachedPicture::draw() {
  picture_ = QPixmap(widget_->size() * widget_->devicePixelRatioF());
  picture_.setDevicePixelRatio(widget_->devicePixelRatioF());
  picture_.fill(Qt::transparent);
  QPainter into(&picture_);
  draw_(into);
  stale_ = false;
  ++drawings_;
}

}  // namespace neuroshard::ui
