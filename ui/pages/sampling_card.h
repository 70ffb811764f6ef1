// The choice of the next token: temperature, top-k, top-p, length, seed, within the limits of the core.
#pragma once

#include "core/node/node.h"
#include "ui/widgets/card.h"

class QDoubleSpinBox;
class QSpinBox;

namespace neuroshard::ui {

class SamplingCard final : public Card {
  Q_OBJECT
 public:
  explicit SamplingCard(QWidget* parent = nullptr);
  // Without a prompt.
  node::GenerateRequest request() const;

 private:
  QDoubleSpinBox* temperature_;
  QSpinBox* top_k_;
  QDoubleSpinBox* top_p_;
  QSpinBox* max_tokens_;
  QSpinBox* seed_;
};

}  // namespace neuroshard::ui
