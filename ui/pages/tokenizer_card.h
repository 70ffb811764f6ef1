// "Try the tokenizer": what is typed, cut into tokens by the core.
#pragma once

#include <QTimer>

#include "core/base/expected.h"
#include "core/node/queries.h"
#include "ui/widgets/card.h"

class QLabel;
class QPlainTextEdit;
class QPushButton;

namespace neuroshard::ui {

class Bridge;
class Theme;
class TokenView;

// Threads: ui.
class TokenizerCard final : public Card {
  Q_OBJECT
 public:
  static constexpr int max_bytes = 4096;  // of text, as the seam says

  TokenizerCard(Bridge& bridge, const Theme& theme, QWidget* parent = nullptr);

 private:
  void ask();
  void show_tokens(const Expected<std::vector<node::TokenPiece>>& tokens, int characters);

  Bridge& bridge_;
  QTimer delay_;
  quint64 question_ = 0;
  QPlainTextEdit* input_;
  QLabel* summary_;
  TokenView* view_;
  QPushButton* copy_;
};

}  // namespace neuroshard::ui
