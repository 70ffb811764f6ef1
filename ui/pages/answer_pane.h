// One model's side of the playground: its transcript, the answer that streams in, the facts about it, and its tokens
// with their probabilities where they were asked for.
#pragma once

#include <QTextCursor>
#include <QTimer>
#include <QWidget>
#include <functional>
#include <memory>

#include "core/base/expected.h"
#include "core/node/generation.h"
#include "core/node/queries.h"
#include "ui/models/conversation.h"
#include "ui/theme/tokens.h"

class QHBoxLayout;
class QLabel;
class QPushButton;
class QStandardItemModel;
class QTextEdit;

namespace neuroshard::ui {

class Bridge;
class TableView;
class TextInbox;
class Theme;

// Threads: ui.
class AnswerPane final : public QWidget {
  Q_OBJECT
 public:
  static constexpr int max_blocks = 4'000;  // paragraphs of the transcript; older ones go
  static constexpr std::chrono::milliseconds stream_period{50};

  struct Question {
    QString text;
    bool chat = false;
    node::GenerateRequest request;  // without its prompt
    QString answered_by;            // "this computer": for the facts
  };

  // suffix: of the names of its parts, where there are several panes.
  AnswerPane(const Theme& theme, Bridge& bridge, const QString& suffix, QWidget* parent = nullptr);
  void set_title(const QString& title);  // empty: none
  void ask(const Question& question);
  void stop();
  void take_back();  // removes the last question, and its answer, from the transcript
  void clear();
  void show_problem(const QString& problem);
  bool busy() const { return ticket_ != 0; }

 Q_SIGNALS:
  void refused(const QString& text);  // before finished(): the question got no answer at all
  void finished(bool answered);

 private:
  void build_tokens(const QString& suffix);
  void stream();
  void add_tokens();
  void finish(const Expected<node::CommandResult>& result);
  void append(const QString& text, const char* role);
  QTextCharFormat colour_of(Token token) const;
  void recolour();  // with the theme
  QString facts_of(const node::GenerateResult& done) const;

  const Theme& theme_;
  Bridge& bridge_;
  QLabel* title_;
  QTextEdit* transcript_;
  QLabel* facts_;
  TableView* token_table_;
  QStandardItemModel* tokens_;
  QPushButton* copy_;
  Conversation conversation_;
  Question question_;
  QString answer_;
  QTextCursor asked_;  // where the last question begins in the transcript
  std::shared_ptr<TextInbox> inbox_;
  QTimer stream_timer_;
  quint64 ticket_ = 0;
  bool cut_ = false;  // the model began the next turn by itself, so it was stopped
};

}  // namespace neuroshard::ui
