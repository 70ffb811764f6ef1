// The work of each block of a partition in one round: receive, compute, stream parameters in, send. One bar
// per block on one scale, the slowest marked.
#pragma once

#include <QWidget>

#include "ui/pages/partition_report.h"

namespace neuroshard::ui {

class Theme;

// Threads: ui.
class PartitionBars final : public QWidget {
  Q_OBJECT
 public:
  explicit PartitionBars(const Theme& theme, QWidget* parent = nullptr);
  void set_report(const PartitionReport& report);
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;
  // Of one part (0 receive, 1 work, 2 stream, 3 send) of a block's bar; for tests.
  QRectF part_rect(std::size_t block, std::size_t part) const;

 protected:
  void paintEvent(QPaintEvent* event) override;
  bool event(QEvent* event) override;

 private:
  QRectF bar_rect(std::size_t block) const;
  QString describe(std::size_t block) const;
  void paint_legend(QPainter& painter) const;

  const Theme& theme_;
  std::vector<PartitionBlock> blocks_;
  double most_ = 0;
  QString unit_;
};

// The colour of a block, the same in bars and picture; neighbours differ.
QColor block_colour(const Theme& theme, std::size_t block);

}  // namespace neuroshard::ui
