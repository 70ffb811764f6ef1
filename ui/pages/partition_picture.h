// The cut graph: one column and colour per block, a box per node, lines inside a block thin, a tensor that
// goes to another block thick, once for each block that it goes to. Ctrl and the wheel, or the buttons of the
// owner, change the size; hints under the mouse say what a node is.
#pragma once

#include <QScrollArea>

#include "ui/pages/partition_report.h"

namespace neuroshard::ui {

class Theme;

// Threads: ui.
class PartitionPicture final : public QScrollArea {
  Q_OBJECT
 public:
  explicit PartitionPicture(const Theme& theme, QWidget* parent = nullptr);
  ~PartitionPicture() override;
  void set_report(const PartitionReport& report);
  double zoom() const;
  void set_zoom(double zoom);  // 0.1 … 4
  // As much as there is room for, no larger than 1:1: all of it, or no smaller than what can be read.
  void fit(bool whole);
  // The whole drawing, for exports.
  QWidget& canvas() const;

 protected:
  void wheelEvent(QWheelEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  class Canvas;
  Canvas* canvas_;
  bool fitted_ = true, whole_ = false;
};

}  // namespace neuroshard::ui
