#include "ui/widgets/qr_code.h"

#include <qrencode.h>

#include <QPainter>
#include <algorithm>
#include <memory>

namespace neuroshard::ui {
namespace {

constexpr int easy_pixels = 4;  // a module on a screen, as a phone reads it from a hand's breadth

}  // namespace

QrCode::QrCode(QWidget* parent) : QWidget(parent) {
  QSizePolicy policy(QSizePolicy::Preferred, QSizePolicy::Preferred);
  policy.setHeightForWidth(true);
  setSizePolicy(policy);
}

bool QrCode::set_text(const QString& text) {
  text_ = text;
  image_ = {};
  size_ = 0;
  const QByteArray bytes = text.toUtf8();
  if (!bytes.isEmpty() && bytes.size() <= most_bytes) {
    const std::unique_ptr<QRcode, void (*)(QRcode*)> code(
        QRcode_encodeData(static_cast<int>(bytes.size()),
                          reinterpret_cast<const unsigned char*>(bytes.constData()), 0, QR_ECLEVEL_L),
        QRcode_free);
    if (code) {
      size_ = code->width + 2 * quiet;
      image_ = QImage(size_, size_, QImage::Format_RGB32);
      image_.fill(Qt::white);
      for (int y = 0; y < code->width; ++y)
        for (int x = 0; x < code->width; ++x)
          if ((code->data[y * code->width + x] & 1) != 0)
            image_.setPixelColor(x + quiet, y + quiet, Qt::black);
    }
  }
  setAccessibleName(size_ == 0 ? QString() : tr("QR code of the link beside it"));
  updateGeometry();
  update();
  return size_ > 0;
}

QImage QrCode::image() const {
  return image_;
}

QSize QrCode::sizeHint() const {
  return {size_ * easy_pixels, size_ * easy_pixels};
}

QSize QrCode::minimumSizeHint() const {
  return {size_, size_};
}

void QrCode::paintEvent(QPaintEvent*) {
  if (size_ == 0) return;
  QPainter painter(this);
  // In device pixels, so that no module is blurred whatever the screen's scale.
  const qreal ratio = devicePixelRatioF();
  const int pixels = std::max(1, static_cast<int>(std::min(width(), height()) * ratio) / size_);
  const qreal side = size_ * pixels / ratio;
  const QRectF place((width() - side) / 2, (height() - side) / 2, side, side);
  painter.setRenderHint(QPainter::SmoothPixmapTransform, false);
  painter.drawImage(place, image_);
}

}  // namespace neuroshard::ui
