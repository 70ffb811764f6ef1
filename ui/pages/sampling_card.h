// The choice of the next token, within the limits of the core, where the answer ends, and what is shown of its tokens.
#pragma once

#include <optional>

#include "core/node/node.h"
#include "ui/widgets/card.h"

class QDoubleSpinBox;
class QLabel;
class QLineEdit;
class QSpinBox;

namespace neuroshard::ui {

class SamplingCard final : public Card {
  Q_OBJECT
 public:
  explicit SamplingCard(QWidget* parent = nullptr);
  // Without a prompt. Nothing, and the field says why: a text of a field can't be used.
  std::optional<node::GenerateRequest> request();

 private:
  void build();
  void reset();

  QDoubleSpinBox* temperature_;
  QSpinBox* top_k_;
  QDoubleSpinBox* top_p_;
  QDoubleSpinBox* min_p_;
  QDoubleSpinBox* penalty_;
  QSpinBox* max_tokens_;
  QSpinBox* seed_;
  QLineEdit* stop_;
  QLineEdit* bias_;
  QSpinBox* logprobs_;
  QLabel* problem_;
};

}  // namespace neuroshard::ui
