// Removes checkpoints by a rule, after showing which ones would go and what that frees.
#pragma once

#include <QDialog>
#include <QTimer>

#include "core/base/expected.h"
#include "core/node/queries.h"

class QLabel;
class QListWidget;
class QPushButton;
class QSpinBox;

namespace neuroshard::ui {

class Bridge;

// Threads: ui.
class PruneDialog final : public QDialog {
  Q_OBJECT
 public:
  explicit PruneDialog(Bridge& bridge, QWidget* parent = nullptr);
  node::PrunePolicy policy() const;

 Q_SIGNALS:
  void agreed(const neuroshard::node::PrunePolicy& policy, int count);

 private:
  void ask();
  void show_preview(const Expected<node::PrunePreview>& preview);

  Bridge& bridge_;
  QTimer delay_;
  quint64 question_ = 0;  // answers to older ones are of no interest
  int count_ = 0;
  QSpinBox* newest_;
  QSpinBox* every_;
  QSpinBox* best_;
  QLabel* summary_;
  QListWidget* list_;
  QPushButton* remove_;
};

}  // namespace neuroshard::ui
