#include "ui/pages/answer_pane.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QScrollBar>
#include <QStandardItemModel>
#include <QTextBlock>
#include <QTextEdit>
#include <QTextLayout>
#include <QVBoxLayout>
#include <cmath>

#include "ui/bridge/bridge.h"
#include "ui/models/text_inbox.h"
#include "ui/text/format.h"
#include "ui/theme/theme.h"
#include "ui/widgets/card.h"
#include "ui/widgets/table_view.h"

namespace neuroshard::ui {
namespace {

constexpr int token_rows = 6;  // in view

// As people can tell it apart: spaces and line breaks are shown, parts of characters by their bytes.
QString shown_token(const std::string& bytes) {
  if (bytes.empty()) return AnswerPane::tr("end of text");
  const QString text = QString::fromUtf8(bytes.data(), static_cast<qsizetype>(bytes.size()));
  if (text.contains(QChar::ReplacementCharacter))
    return QString::fromLatin1(QByteArray::fromStdString(bytes).toHex(' '));
  QString shown = text;
  shown.replace(u' ', QChar(0x2423)).replace(u'\n', QChar(0x21B5)).replace(u'\t', QChar(0x21E5));
  return shown;
}

QStandardItem* cell(const QString& text, bool number = false) {
  auto* item = new QStandardItem(text);
  item->setEditable(false);
  if (number) item->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
  return item;
}

QString ended_as(const std::string& stopped_by) {
  if (stopped_by == "length") return AnswerPane::tr("ended at the longest answer");
  if (stopped_by == "cancelled") return AnswerPane::tr("stopped");
  if (stopped_by == "end of text") return AnswerPane::tr("ended by itself");
  if (stopped_by == "stop sequence") return AnswerPane::tr("ended at a stop text");
  return QString::fromStdString(stopped_by);
}

}  // namespace

AnswerPane::AnswerPane(const Theme& theme, Bridge& bridge, const QString& suffix, QWidget* parent)
    : QWidget(parent), theme_(theme), bridge_(bridge) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(grid_step);
  title_ = make_label({}, "strong", this);
  title_->hide();
  column->addWidget(title_);
  transcript_ = new QTextEdit(this);
  transcript_->setObjectName(QStringLiteral("transcript") + suffix);
  transcript_->setAccessibleName(tr("Transcript"));
  transcript_->setPlaceholderText(
      tr("Your messages and the model's answers appear here. Write below and press Send."));
  transcript_->setReadOnly(true);
  transcript_->setTabChangesFocus(true);
  transcript_->document()->setMaximumBlockCount(max_blocks);
  column->addWidget(transcript_, 2);
  build_tokens(suffix);
  column->addWidget(token_table_, 1);
  facts_ = make_paragraph({}, "caption", this);
  facts_->setObjectName(QStringLiteral("generation_facts") + suffix);
  copy_ = new QPushButton(theme.icon(QStringLiteral("copy"), Token::Text), tr("Copy answer"), this);
  copy_->setObjectName(QStringLiteral("copy_answer") + suffix);
  copy_->setEnabled(false);
  connect(copy_, &QPushButton::clicked, this, [this] { QGuiApplication::clipboard()->setText(answer_); });
  auto* under = new QHBoxLayout;
  under->setSpacing(grid_step);
  under->addWidget(facts_, 1);
  under->addWidget(copy_, 0, Qt::AlignTop);
  column->addLayout(under);
  connect(&theme, &Theme::changed, this, &AnswerPane::recolour);
  stream_timer_.setInterval(stream_period);
  connect(&stream_timer_, &QTimer::timeout, this, &AnswerPane::stream);
}

void AnswerPane::build_tokens(const QString& suffix) {
  token_table_ = new TableView(tr("Tokens of the answer"), this);
  token_table_->setObjectName(QStringLiteral("answer_tokens") + suffix);
  tokens_ = new QStandardItemModel(token_table_);
  tokens_->setHorizontalHeaderLabels(
      {tr("Token"), tr("Probability"), tr("Log-probability"), tr("Likeliest")});
  token_table_->setModel(tokens_);
  token_table_->set_file_name(QStringLiteral("tokens"));
  QHeaderView* head = token_table_->horizontalHeader();
  head->setSectionResizeMode(QHeaderView::ResizeToContents);
  head->setSectionResizeMode(tokens_->columnCount() - 1, QHeaderView::Stretch);
  token_table_->setMinimumHeight(token_rows * token_table_->verticalHeader()->defaultSectionSize());
  token_table_->hide();
}

void AnswerPane::set_title(const QString& title) {
  title_->setText(title);
  title_->setVisible(!title.isEmpty());
}

void AnswerPane::clear() {
  transcript_->clear();
  conversation_.clear();
  answer_.clear();
  facts_->clear();
  tokens_->removeRows(0, tokens_->rowCount());
  token_table_->hide();
  copy_->setEnabled(false);
}

void AnswerPane::show_problem(const QString& problem) {
  facts_->setText(problem);
}

void AnswerPane::ask(const Question& question) {
  question_ = question;
  node::GenerateRequest request = question.request;
  answer_.clear();
  cut_ = false;
  tokens_->removeRows(0, tokens_->rowCount());
  asked_ = QTextCursor(transcript_->document());
  asked_.movePosition(QTextCursor::End);
  asked_.setKeepPositionOnInsert(true);
  token_table_->setVisible(request.logprobs.has_value());
  if (question.chat) {
    conversation_.ask(question.text);
    request.prompt = conversation_.prompt(node::max_prompt_bytes).toStdString();
    append(tr("You"), "name");
    append(question.text, "own");
    append(tr("Model"), "name");
    append({}, "answer");
  } else {
    request.prompt = question.text.toStdString();
    append(tr("Model, continuing your text"), "name");
    append(question.text, "own");
  }
  facts_->setText(tr("reading the text …"));
  inbox_ = std::make_shared<TextInbox>();
  ticket_ = bridge_.run(
      this,
      [request, inbox = inbox_](node::Node& node) {
        return node.generate(request, [inbox](const node::TextPiece& piece) { inbox->put(piece); });
      },
      [this](const Expected<node::CommandResult>& result) { finish(result); });
  stream_timer_.start();
}

void AnswerPane::take_back() {
  QTextCursor part(transcript_->document());
  part.setPosition(asked_.position());
  part.movePosition(QTextCursor::End, QTextCursor::KeepAnchor);
  part.removeSelectedText();
}

void AnswerPane::stop() {
  if (ticket_ != 0) bridge_.cancel(ticket_);
}

void AnswerPane::stream() {
  add_tokens();
  const QString text = QString::fromStdString(inbox_->take());
  if (text.isEmpty() || cut_) return;
  QString fresh = text;
  int stale = 0;  // characters of the transcript that begin the next turn: its mark came in pieces
  if (question_.chat && !conversation_.turns().empty()) {
    const qsizetype before = answer_.size();
    cut_ = conversation_.add(text);
    const QString& whole = conversation_.turns().back().answer;
    fresh = whole.mid(std::min(before, whole.size()));
    stale = static_cast<int>(std::max<qsizetype>(0, before - whole.size()));
    answer_ = whole;
    if (cut_) stop();
  } else {
    answer_ += text;
  }
  facts_->setText(tr("writing …"));
  QScrollBar* bar = transcript_->verticalScrollBar();
  const bool follow = bar->value() >= bar->maximum() - 4;
  QTextCursor end(transcript_->document());
  end.movePosition(QTextCursor::End);
  end.setPosition(std::max(0, end.position() - stale), QTextCursor::KeepAnchor);
  end.removeSelectedText();
  end.insertText(fresh, colour_of(Token::Accent));
  if (follow) bar->setValue(bar->maximum());
}

void AnswerPane::add_tokens() {
  const QLocale locale;
  for (const node::GeneratedToken& token : inbox_->take_tokens()) {
    QStringList likeliest;
    for (const node::LikelyToken& likely : token.top)
      likeliest.append(tr("%1 %2").arg(shown_token(likely.text), Format::percent(std::exp(likely.logprob))));
    tokens_->appendRow(
        {cell(shown_token(token.text)),
         cell(token.logprob ? Format::percent(std::exp(*token.logprob)) : Format::dash(), true),
         cell(token.logprob ? locale.toString(*token.logprob, 'f', 3) : Format::dash(), true),
         cell(likeliest.join(QStringLiteral(", ")))});
  }
}

void AnswerPane::finish(const Expected<node::CommandResult>& result) {
  stream();
  stream_timer_.stop();
  ticket_ = 0;
  copy_->setEnabled(!answer_.isEmpty());
  const bool cancelled = !result.ok() && result.error().code == ErrorCode::Cancelled;
  const auto* done = result.ok() ? std::get_if<node::GenerateResult>(&*result) : nullptr;
  const bool failed = !result.ok() && !cancelled;
  if (failed)
    facts_->setText(tr("The model gave no answer: %1").arg(QString::fromStdString(result.error().message)));
  else if (done == nullptr)
    facts_->setText(cut_ ? tr("ended with the turn") : tr("stopped"));
  else
    facts_->setText(facts_of(*done));
  if (failed && answer_.isEmpty()) {
    if (question_.chat) conversation_.take_back();
    Q_EMIT refused(question_.text);
  }
  Q_EMIT finished(result.ok() || cut_);
}

QString AnswerPane::facts_of(const node::GenerateResult& done) const {
  const double rate = done.seconds > 0 ? done.tokens / done.seconds : 0;
  QString facts =
      tr("%1 tokens, %2, answered by the model at step %3, %4")
          .arg(Format::integer(done.tokens), rate > 0 ? Format::rate(rate) : Format::dash(),
               Format::integer(done.step), cut_ ? tr("ended with the turn") : ended_as(done.stopped_by));
  if (done.prompt_seconds > 0) facts += tr(", text read in %1").arg(Format::seconds(done.prompt_seconds));
  if (question_.request.seed != 0) facts += tr(", seed %1").arg(question_.request.seed);
  return facts + QStringLiteral(". ") + question_.answered_by;
}

// The role goes with the text, so that its colour can follow the theme.
QTextCharFormat AnswerPane::colour_of(Token token) const {
  QTextCharFormat format;
  format.setProperty(QTextFormat::UserProperty, static_cast<int>(token));
  format.setForeground(theme_.color(token));
  return format;
}

void AnswerPane::recolour() {
  QTextCursor part(transcript_->document());
  part.beginEditBlock();
  for (QTextBlock block = transcript_->document()->begin(); block.isValid(); block = block.next()) {
    for (const QTextLayout::FormatRange& range : block.textFormats()) {
      if (!range.format.hasProperty(QTextFormat::UserProperty)) continue;
      part.setPosition(block.position() + range.start);
      part.setPosition(block.position() + range.start + range.length, QTextCursor::KeepAnchor);
      const int token = range.format.intProperty(QTextFormat::UserProperty);
      part.mergeCharFormat(colour_of(static_cast<Token>(token)));
    }
  }
  part.endEditBlock();
}

void AnswerPane::append(const QString& text, const char* role) {
  QTextCursor end(transcript_->document());
  end.movePosition(QTextCursor::End);
  const bool name = qstrcmp(role, "name") == 0;
  QTextBlockFormat block;
  block.setTopMargin(name && !transcript_->document()->isEmpty() ? 2 * grid_step : 0);
  if (transcript_->document()->isEmpty())
    end.setBlockFormat(block);
  else
    end.insertBlock(block);
  QTextCharFormat format = colour_of(name ? Token::TextMuted : Token::Text);
  format.setFontWeight(name ? QFont::DemiBold : QFont::Normal);
  end.insertText(text, format);
  transcript_->verticalScrollBar()->setValue(transcript_->verticalScrollBar()->maximum());
}

}  // namespace neuroshard::ui
