// The checkpoints along the steps of training, each branch on a line of its own. A picture to click in and to
// walk through with the arrow keys; the table beside it shows the same data.
#pragma once

#include <QWidget>
#include <vector>

#include "core/node/queries.h"
#include "ui/models/checkpoint_branches.h"
#include "ui/widgets/cached_picture.h"

namespace neuroshard::ui {

class Theme;

// Threads: ui.
class CheckpointTimeline final : public QWidget {
  Q_OBJECT
 public:
  explicit CheckpointTimeline(const Theme& theme, QWidget* parent = nullptr);

  void set_entries(const std::vector<node::CheckpointEntry>& newest_first);
  void set_selected(const QStringList& names);
  // The place of a checkpoint's mark; null for an unknown one.
  QPointF position_of(const QString& name) const;

  QSize sizeHint() const override;
  QSize minimumSizeHint() const override { return {200, sizeHint().height()}; }

 Q_SIGNALS:
  void selected(const QString& name, bool add);  // add = besides those that are
  void activated(const QString& name);

 protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void focusInEvent(QFocusEvent* event) override;
  void focusOutEvent(QFocusEvent* event) override;

 private:
  QPointF position(int index) const;
  double across(double share) const;  // of the steps; from where the language begins
  int index_at(const QPointF& point) const;
  int neighbour(int dx, int dy) const;
  void move_to(int index, bool add);
  void paint_all(QPainter& painter) const;
  void paint_lines(QPainter& painter) const;
  void paint_mark(QPainter& painter, int index) const;
  void paint_axis(QPainter& painter) const;
  QString describe(int index) const;

  const Theme& theme_;
  CachedPicture* picture_;
  std::vector<node::CheckpointEntry> entries_;
  std::vector<CheckpointPlace> places_;
  std::vector<int> by_step_;  // indices, ascending by step, then older first
  std::vector<bool> selected_;
  int lanes_ = 1;
  int current_ = -1;  // where the keyboard is
};

}  // namespace neuroshard::ui
