// Text from the running model: continue a text, or talk with it. Honest about how much the model has learned.
#pragma once

#include <QTimer>
#include <memory>

#include "core/base/expected.h"
#include "core/node/events.h"
#include "ui/models/conversation.h"
#include "ui/pages/page.h"

class QComboBox;
class QLabel;
class QPlainTextEdit;
class QPushButton;
class QStackedWidget;
class QTextEdit;

namespace neuroshard::ui {

class Banner;
class SamplingCard;
class TextInbox;

class PlaygroundPage final : public Page {
  Q_OBJECT
 public:
  static constexpr int max_blocks = 4'000;   // paragraphs of the transcript; older ones go
  static constexpr double young_loss = 3.5;  // nats per token: above it whole sentences are rare
  static constexpr std::chrono::milliseconds stream_period{50};

  explicit PlaygroundPage(const Context& context, QWidget* parent = nullptr);
  QString title() const override { return tr("Playground"); }
  QString icon() const override { return QStringLiteral("playground"); }
  void refresh(const node::Snapshot& snapshot) override;
  void shown() override;

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  enum class Mode { Completion, Chat };
  QWidget* build_talk();
  QWidget* build_side();
  Mode mode() const;
  void mode_changed();
  void send();
  void stop();
  void stream();
  void finish(const Expected<node::CommandResult>& result);
  void show_busy(bool busy);
  void append(const QString& text, const char* role);
  void show_model(const node::Snapshot& snapshot);

  QStackedWidget* stack_;
  Banner* honesty_;
  QTextEdit* transcript_;
  QPlainTextEdit* input_;
  QPushButton* send_;
  QPushButton* stop_;
  QPushButton* copy_;
  QPushButton* clear_;
  QLabel* facts_;
  QComboBox* mode_;
  QLabel* mode_help_;
  SamplingCard* sampling_;
  Conversation conversation_;
  QString answer_;
  std::shared_ptr<TextInbox> inbox_;
  QTimer stream_timer_;
  quint64 ticket_ = 0;
  bool cut_ = false;  // the model began the next turn by itself, so it was stopped
  QString honesty_text_;
};

}  // namespace neuroshard::ui
