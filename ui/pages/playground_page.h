// Text from the running model or from checkpoints: continue a text, or talk with it; two of them side by side, with the
// same text and seed. Honest about how much the model has learned.
#pragma once

#include <vector>

#include "core/base/expected.h"
#include "core/node/queries.h"
#include "ui/pages/page.h"

class QComboBox;
class QLabel;
class QPlainTextEdit;
class QPushButton;
class QScrollArea;
class QStackedWidget;

namespace neuroshard::ui {

class AnswerPane;
class Banner;
struct BannerContent;
class Card;
class SamplingCard;

class PlaygroundPage final : public Page {
  Q_OBJECT
 public:
  static constexpr double young_loss = 3.5;  // nats per token: above it whole sentences are rare

  explicit PlaygroundPage(const Context& context, QWidget* parent = nullptr);
  QString title() const override { return tr("Playground"); }
  QString icon() const override { return QStringLiteral("playground"); }
  void refresh(const node::Snapshot& snapshot) override;
  void shown() override;

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  enum class Mode { Completion, Chat };
  void plan_talk(Card* card);
  void plan_controls(QScrollArea* area);
  QWidget* build_input(QWidget* parent);
  Card* build_mode(QWidget* parent);
  Card* build_models(QWidget* parent);
  void connect_signals();
  Mode mode() const;
  void mode_changed();
  void send();
  void stop();
  bool busy() const;
  void take_back(const QString& text);  // of a question that got no answer
  void left_finished(bool answered);
  void show_busy();
  void ask_checkpoints();
  void take_checkpoints(const std::vector<node::CheckpointEntry>& entries);
  void models_changed();
  bool compares() const;
  QString who_answers() const;
  QString model_name(const QComboBox& box) const;
  static BannerContent warning(const node::Snapshot& snapshot);
  void show_warning(const BannerContent& content);

  QStackedWidget* stack_;
  Banner* honesty_;
  QPlainTextEdit* input_;
  QPushButton* send_;
  QPushButton* stop_;
  QPushButton* clear_;
  QComboBox* mode_;
  QLabel* mode_help_;
  QLabel* parts_help_;  // shown where other nodes see the text
  SamplingCard* sampling_;
  AnswerPane* left_;
  AnswerPane* right_;  // of the second model; hidden without one
  QComboBox* model_;
  QComboBox* second_;
  QLabel* models_help_;
  node::GenerateRequest request_;  // of the question that is answered, for the second model
  QString question_;
  std::optional<MonotonicTime> warned_at_;  // when the banner got its numbers
};

}  // namespace neuroshard::ui
