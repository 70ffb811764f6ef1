#include "ui/widgets/chart_style.h"

#include <QAbstractAxis>
#include <QChart>
#include <QChartView>
#include <QGraphicsLayout>
#include <QPainter>

#include "ui/theme/theme.h"

namespace neuroshard::ui {
namespace {
constexpr int label_pixels = 12;
constexpr qreal picture_scale = 2;
}  // namespace

QChart* make_chart() {
  auto* chart = new QChart;
  chart->legend()->hide();
  chart->setMargins({0, 0, 0, 0});
  chart->layout()->setContentsMargins(0, 0, 0, 0);
  chart->setBackgroundVisible(false);
  chart->setAnimationOptions(QChart::NoAnimation);
  return chart;
}

QChartView* make_chart_view(QChart* chart, QWidget* parent) {
  auto* view = new QChartView(chart, parent);
  view->setRenderHint(QPainter::Antialiasing);
  view->setFrameShape(QFrame::NoFrame);
  view->setFocusPolicy(Qt::NoFocus);
  view->setBackgroundBrush(Qt::NoBrush);
  view->setStyleSheet(QStringLiteral("background: transparent"));
  // Nothing in it is to be pressed, and the page scrolls under the pointer.
  view->setAttribute(Qt::WA_TransparentForMouseEvents);
  return view;
}

void style_axis(QAbstractAxis& axis, const Theme& theme) {
  QFont small;
  small.setPixelSize(label_pixels);
  const QColor text = theme.color(Token::TextMuted);
  axis.setLabelsColor(text);
  axis.setLabelsFont(small);
  axis.setTitleBrush(text);
  axis.setTitleFont(small);
  axis.setLinePenColor(theme.color(Token::Border));
  axis.setGridLineColor(theme.color(Token::Grid));
}

QImage picture_of(QWidget& widget, const Theme& theme) {
  QImage image(widget.size() * picture_scale, QImage::Format_ARGB32_Premultiplied);
  image.setDevicePixelRatio(picture_scale);
  image.fill(theme.color(Token::Surface));
  QPainter painter(&image);
  widget.render(&painter, {}, {}, QWidget::DrawChildren);
  return image;
}

}  // namespace neuroshard::ui
