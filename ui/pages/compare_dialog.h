// Two checkpoints side by side: when, how good, and how far their weights are apart, by layer and by slot.
#pragma once

#include <QDialog>

#include "core/node/queries.h"

namespace neuroshard::ui {

class Theme;

class CompareDialog final : public QDialog {
  Q_OBJECT
 public:
  CompareDialog(const Theme& theme, const node::CheckpointComparison& comparison, QWidget* parent = nullptr);
};

}  // namespace neuroshard::ui
