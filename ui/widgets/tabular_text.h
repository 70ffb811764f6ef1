// Text whose digits all have the same width, so that numbers that change do not jump and columns line up.
// Qt 6.4 cannot ask a font for its tabular digits, so each digit is drawn in the middle of a cell as wide as
// the widest.
#pragma once

#include <QFontMetricsF>
#include <QWidget>

class QPainter;

namespace neuroshard::ui {

class Theme;

qreal tabular_width(const QString& text, const QFontMetricsF& metrics);
// Draws in one line with the painter's font and pen; alignment as QPainter::drawText.
void draw_tabular(QPainter& painter, const QRectF& rect, Qt::Alignment alignment, const QString& text);

// A label for one number.
class NumberLabel final : public QWidget {
  Q_OBJECT
  Q_PROPERTY(QString text READ text)
 public:
  NumberLabel(const Theme& theme, int pixel_size, QWidget* parent = nullptr);
  void set_text(const QString& text);
  QString text() const { return text_; }
  // Stale values are drawn muted.
  void set_dimmed(bool dimmed);
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override { return sizeHint(); }

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  const Theme& theme_;
  QString text_;
  bool dimmed_ = false;
};

}  // namespace neuroshard::ui
