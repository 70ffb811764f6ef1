#include "ui/pages/playground_page.h"

#include <QClipboard>
#include <QComboBox>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QScrollBar>
#include <QStackedWidget>
#include <QTextBlock>
#include <QTextEdit>
#include <QVBoxLayout>

#include "ui/bridge/bridge.h"
#include "ui/models/text_inbox.h"
#include "ui/pages/page_body.h"
#include "ui/pages/sampling_card.h"
#include "ui/text/format.h"
#include "ui/theme/theme.h"
#include "ui/widgets/banner.h"
#include "ui/widgets/card.h"
#include "ui/widgets/empty_state.h"

namespace neuroshard::ui {

PlaygroundPage::PlaygroundPage(const Context& context, QWidget* parent) : Page(context, parent) {
  QVBoxLayout* page_column = make_page_column(this);
  honesty_ = new Banner(theme(), this);
  honesty_->setObjectName(QStringLiteral("honesty"));
  honesty_->hide();
  page_column->addWidget(honesty_);
  stack_ = new QStackedWidget(this);
  auto* empty = new EmptyState(theme(), icon(), tr("No model yet"),
                               tr("When this node has a model, you can let it continue a text here."));
  empty->set_action(tr("Go to Training"));
  connect(empty, &EmptyState::action_clicked, this,
          [this] { navigate(QStringLiteral("training"), QStringLiteral("start")); });
  stack_->addWidget(empty);
  auto* content = new QWidget;
  auto* line = new QHBoxLayout(content);
  line->setContentsMargins(0, 0, 0, 0);
  line->setSpacing(2 * grid_step);
  line->addWidget(build_talk(), 1);
  line->addWidget(build_side());
  stack_->addWidget(content);
  page_column->addWidget(stack_, 1);
  stream_timer_.setInterval(stream_period);
  connect(&stream_timer_, &QTimer::timeout, this, &PlaygroundPage::stream);
  mode_changed();
  show_busy(false);
}

QWidget* PlaygroundPage::build_talk() {
  auto* card = new Card;
  transcript_ = new QTextEdit;
  transcript_->setObjectName(QStringLiteral("transcript"));
  transcript_->setAccessibleName(tr("Transcript"));
  transcript_->setPlaceholderText(
      tr("Your messages and the model's answers appear here. Write below and press Send."));
  transcript_->setReadOnly(true);
  transcript_->setTabChangesFocus(true);
  transcript_->document()->setMaximumBlockCount(max_blocks);
  card->body()->addWidget(transcript_, 1);
  facts_ = make_paragraph({}, "caption");
  facts_->setObjectName(QStringLiteral("generation_facts"));
  card->body()->addWidget(facts_);
  auto* under = new QHBoxLayout;
  under->addStretch(1);
  copy_ = new QPushButton(theme().icon(QStringLiteral("copy"), Token::Text), tr("Copy answer"));
  copy_->setObjectName(QStringLiteral("copy_answer"));
  copy_->setEnabled(false);
  connect(copy_, &QPushButton::clicked, this, [this] { QGuiApplication::clipboard()->setText(answer_); });
  clear_ = new QPushButton(tr("Clear"));
  clear_->setObjectName(QStringLiteral("clear"));
  clear_->setAccessibleName(tr("Clear the transcript"));
  connect(clear_, &QPushButton::clicked, this, [this] {
    transcript_->clear();
    conversation_.clear();
    answer_.clear();
    facts_->clear();
    copy_->setEnabled(false);
  });
  under->addWidget(copy_);
  under->addWidget(clear_);
  card->body()->addLayout(under);
  auto* line = new QHBoxLayout;
  line->setSpacing(grid_step);
  input_ = new QPlainTextEdit;
  input_->setObjectName(QStringLiteral("prompt"));
  input_->setTabChangesFocus(true);
  input_->setMaximumHeight(84);
  input_->installEventFilter(this);
  line->addWidget(input_, 1);
  auto* buttons = new QVBoxLayout;
  send_ = new QPushButton(tr("Send"));
  send_->setObjectName(QStringLiteral("send"));
  send_->setProperty("role", QStringLiteral("primary"));
  connect(send_, &QPushButton::clicked, this, &PlaygroundPage::send);
  stop_ = new QPushButton(theme().icon(QStringLiteral("stop"), Token::Text), tr("Stop"));
  stop_->setObjectName(QStringLiteral("stop"));
  connect(stop_, &QPushButton::clicked, this, &PlaygroundPage::stop);
  buttons->addWidget(send_);
  buttons->addWidget(stop_);
  buttons->addStretch(1);
  line->addLayout(buttons);
  card->body()->addLayout(line);
  connect(input_, &QPlainTextEdit::textChanged, this, [this] { show_busy(ticket_ != 0); });
  return card;
}

QWidget* PlaygroundPage::build_side() {
  auto* side = new QWidget;
  side->setMinimumWidth(248);
  side->setSizePolicy(QSizePolicy::Maximum, QSizePolicy::Preferred);  // as wide as its fields need
  auto* column = new QVBoxLayout(side);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(2 * grid_step);
  auto* card = new Card(tr("Mode"));
  mode_ = new QComboBox;
  mode_->setObjectName(QStringLiteral("mode"));
  mode_->setAccessibleName(tr("Mode"));
  mode_->addItems({tr("Continue a text"), tr("Chat")});
  card->body()->addWidget(mode_);
  mode_help_ = make_paragraph({}, "caption");
  card->body()->addWidget(mode_help_);
  connect(mode_, &QComboBox::currentIndexChanged, this, &PlaygroundPage::mode_changed);
  column->addWidget(card);
  sampling_ = new SamplingCard;
  column->addWidget(sampling_);
  column->addStretch(1);
  return side;
}

PlaygroundPage::Mode PlaygroundPage::mode() const {
  return mode_->currentIndex() == 1 ? Mode::Chat : Mode::Completion;
}

void PlaygroundPage::mode_changed() {
  const bool chat = mode() == Mode::Chat;
  input_->setPlaceholderText(chat ? tr("Say something") : tr("Begin a text; the model continues it"));
  input_->setAccessibleName(chat ? tr("Message") : tr("Beginning of the text"));
  mode_help_->setText(
      chat ? tr("The model was not trained on dialogue: it reads the turns as one text and continues it.")
           : tr("The model continues your text. It is trained for this."));
}

void PlaygroundPage::shown() {
  input_->setFocus();
}

void PlaygroundPage::refresh(const node::Snapshot& snapshot) {
  show_model(snapshot);
}

void PlaygroundPage::show_model(const node::Snapshot& snapshot) {
  const bool model = snapshot.training.step > 0 || !snapshot.checkpoint.newest.empty();
  stack_->setCurrentIndex(model ? 1 : 0);
  const auto& loss = snapshot.training.smoothed_loss;
  const std::uint64_t seen = snapshot.training.last_step ? snapshot.training.last_step->tokens : 0;
  QString text;
  if (model && snapshot.safe_mode)
    text = tr("Safe mode: no model can be loaded. Restart the core normally to use this page.");
  else if (model && loss && *loss > young_loss)
    text = tr("The model has read %1 in %2 steps; its loss is %3. Expect fragments, not answers. Sentences "
              "appear below a loss of about %4.")
               .arg(seen == 0 ? tr("little") : tr("%1 tokens").arg(Format::si(static_cast<double>(seen))),
                    Format::integer(snapshot.training.step), Format::significant(*loss, 3),
                    Format::significant(young_loss, 2));
  honesty_->setVisible(!text.isEmpty());
  // Not with every step: a banner that is read should not change under the eyes, and each change lays the
  // page out again.
  if (text.isEmpty() == honesty_text_.isEmpty()) return;
  honesty_text_ = text;
  if (text.isEmpty()) return;
  BannerContent content;
  content.tone = snapshot.safe_mode ? Tone::Warning : Tone::Info;
  content.title = snapshot.safe_mode ? tr("Not now") : tr("This model is young");
  content.text = text;
  honesty_->set_content(content);
}

bool PlaygroundPage::eventFilter(QObject* watched, QEvent* event) {
  if (watched == input_ && event->type() == QEvent::KeyPress) {
    const auto* key = static_cast<QKeyEvent*>(event);
    const bool enter = key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter;
    // Enter sends, Shift+Enter begins a line.
    if (enter && !key->modifiers().testFlag(Qt::ShiftModifier)) {
      send_->click();
      return true;
    }
    if (key->key() == Qt::Key_Escape && ticket_ != 0) {
      stop();
      return true;
    }
  }
  return Page::eventFilter(watched, event);
}

void PlaygroundPage::send() {
  const QString text = input_->toPlainText();
  if (ticket_ != 0 || text.isEmpty()) return;
  if (static_cast<std::size_t>(text.toUtf8().size()) > node::max_prompt_bytes / 2) {
    facts_->setText(
        tr("That is too long: at most %1 can be sent.").arg(Format::bytes(node::max_prompt_bytes / 2)));
    return;
  }
  node::GenerateRequest request = sampling_->request();
  answer_.clear();
  cut_ = false;
  if (mode() == Mode::Chat) {
    conversation_.ask(text);
    request.prompt = conversation_.prompt(node::max_prompt_bytes).toStdString();
    append(tr("You"), "name");
    append(text, "own");
    append(tr("Model"), "name");
    append({}, "answer");
  } else {
    request.prompt = text.toStdString();
    append(tr("Model, continuing your text"), "name");
    append(text, "own");
  }
  input_->clear();
  facts_->setText(tr("reading the text …"));
  inbox_ = std::make_shared<TextInbox>();
  ticket_ = bridge().run(
      this,
      [request, inbox = inbox_](node::Node& node) {
        return node.generate(request, [inbox](const node::TextPiece& piece) { inbox->put(piece.text); });
      },
      [this](const Expected<node::CommandResult>& result) { finish(result); });
  show_busy(true);
  stream_timer_.start();
}

void PlaygroundPage::stop() {
  if (ticket_ != 0) bridge().cancel(ticket_);
}

void PlaygroundPage::stream() {
  const QString text = QString::fromStdString(inbox_->take());
  if (text.isEmpty() || cut_) return;
  QString fresh = text;
  if (mode() == Mode::Chat && !conversation_.turns().empty()) {
    const qsizetype before = answer_.size();
    cut_ = conversation_.add(text);
    const QString& whole = conversation_.turns().back().answer;
    fresh = whole.mid(std::min(before, whole.size()));
    answer_ = whole;
    if (cut_) stop();
  } else {
    answer_ += text;
  }
  QScrollBar* bar = transcript_->verticalScrollBar();
  const bool follow = bar->value() >= bar->maximum() - 4;
  QTextCursor end(transcript_->document());
  end.movePosition(QTextCursor::End);
  QTextCharFormat format;
  format.setForeground(theme().color(Token::Accent));
  end.insertText(fresh, format);
  if (follow) bar->setValue(bar->maximum());
}

void PlaygroundPage::finish(const Expected<node::CommandResult>& result) {
  stream();
  stream_timer_.stop();
  ticket_ = 0;
  show_busy(false);
  copy_->setEnabled(!answer_.isEmpty());
  const bool cancelled = !result.ok() && result.error().code == ErrorCode::Cancelled;
  if (!result.ok() && !cancelled) {
    facts_->setText(tr("The model gave no answer: %1").arg(QString::fromStdString(result.error().message)));
    return;
  }
  const auto* done = result.ok() ? std::get_if<node::GenerateResult>(&*result) : nullptr;
  if (done == nullptr) {
    facts_->setText(cut_ ? tr("ended with the turn") : tr("stopped"));
    return;
  }
  const double rate = done->seconds > 0 ? done->tokens / done->seconds : 0;
  QString ended = done->stopped_by == "length"        ? tr("ended at the longest answer")
                  : done->stopped_by == "cancelled"   ? tr("stopped")
                  : done->stopped_by == "end of text" ? tr("ended by itself")
                                                      : QString::fromStdString(done->stopped_by);
  if (cut_) ended = tr("ended with the turn");
  facts_->setText(tr("%1 tokens, %2, answered by the model at step %3, %4")
                      .arg(Format::integer(done->tokens), rate > 0 ? Format::rate(rate) : Format::dash(),
                           Format::integer(done->step), ended));
}

void PlaygroundPage::show_busy(bool busy) {
  send_->setVisible(!busy);
  stop_->setVisible(busy);
  send_->setEnabled(!input_->toPlainText().isEmpty());
  mode_->setEnabled(!busy);
  clear_->setEnabled(!busy);
}

void PlaygroundPage::append(const QString& text, const char* role) {
  QTextCursor end(transcript_->document());
  end.movePosition(QTextCursor::End);
  const bool name = qstrcmp(role, "name") == 0;
  QTextBlockFormat block;
  block.setTopMargin(name && !transcript_->document()->isEmpty() ? 2 * grid_step : 0);
  if (transcript_->document()->isEmpty())
    end.setBlockFormat(block);
  else
    end.insertBlock(block);
  QTextCharFormat format;
  format.setForeground(theme().color(name ? Token::TextMuted : Token::Text));
  format.setFontWeight(name ? QFont::DemiBold : QFont::Normal);
  end.insertText(text, format);
  transcript_->verticalScrollBar()->setValue(transcript_->verticalScrollBar()->maximum());
}

}  // namespace neuroshard::ui
