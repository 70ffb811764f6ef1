#include "ui/pages/tokenizer_card.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QVBoxLayout>

#include "ui/bridge/bridge.h"
#include "ui/pages/token_view.h"
#include "ui/text/format.h"
#include "ui/theme/theme.h"

namespace neuroshard::ui {

TokenizerCard::TokenizerCard(Bridge& bridge, const Theme& theme, QWidget* parent)
    : Card(tr("Try the tokenizer"), parent), bridge_(bridge) {
  set_caption(tr("The model reads numbers, not letters. This card shows how it reads a text."));
  input_ = new QPlainTextEdit(this);
  input_->setObjectName(QStringLiteral("tokenizer_input"));
  input_->setAccessibleName(tr("Text to split into tokens"));
  input_->setPlaceholderText(tr("Type or paste some text"));
  input_->setTabChangesFocus(true);
  input_->setMaximumHeight(84);
  body()->addWidget(input_);
  auto* line = new QHBoxLayout;
  summary_ = make_paragraph({}, "muted", this);
  summary_->setObjectName(QStringLiteral("tokenizer_summary"));
  copy_ = new QPushButton(theme.icon(QStringLiteral("copy"), Token::Text), tr("Copy ids"), this);
  copy_->setObjectName(QStringLiteral("tokenizer_copy"));
  copy_->setEnabled(false);
  line->addWidget(summary_, 1);
  line->addWidget(copy_);
  body()->addLayout(line);
  view_ = new TokenView(theme, this);
  view_->setObjectName(QStringLiteral("token_view"));
  body()->addWidget(view_);
  connect(copy_, &QPushButton::clicked, this,
          [this] { QGuiApplication::clipboard()->setText(view_->ids()); });
  delay_.setSingleShot(true);
  delay_.setInterval(200);
  connect(&delay_, &QTimer::timeout, this, &TokenizerCard::ask);
  connect(input_, &QPlainTextEdit::textChanged, this, [this] { delay_.start(); });
}

void TokenizerCard::ask() {
  const QString text = input_->toPlainText();
  const QByteArray bytes = text.toUtf8();
  const quint64 question = ++question_;
  if (text.isEmpty() || bytes.size() > max_bytes) {
    view_->set_tokens({});
    copy_->setEnabled(false);
    summary_->setText(text.isEmpty() ? QString()
                                     : tr("That is %1; at most %2 can be tried here.")
                                           .arg(Format::bytes(static_cast<std::uint64_t>(bytes.size())),
                                                Format::bytes(max_bytes)));
    return;
  }
  const int characters = static_cast<int>(text.toUcs4().size());
  bridge_.query<std::vector<node::TokenPiece>>(
      this,
      [text = bytes.toStdString()](node::Node& node, node::Reply<std::vector<node::TokenPiece>> reply) {
        return node.query_tokens(text, std::move(reply));
      },
      [this, question, characters](const Expected<std::vector<node::TokenPiece>>& tokens) {
        if (question == question_) show_tokens(tokens, characters);
      });
}

void TokenizerCard::show_tokens(const Expected<std::vector<node::TokenPiece>>& tokens, int characters) {
  if (!tokens.ok()) {
    view_->set_tokens({});
    copy_->setEnabled(false);
    summary_->setText(QString::fromStdString(tokens.error().message));
    return;
  }
  view_->set_tokens(*tokens);
  copy_->setEnabled(!tokens->empty());
  const double each =
      tokens->empty() ? 0 : static_cast<double>(characters) / static_cast<double>(tokens->size());
  summary_->setText(tr("%1 tokens for %2 characters, %3 characters per token")
                        .arg(Format::integer(tokens->size()),
                             Format::integer(static_cast<std::uint64_t>(characters)),
                             Format::significant(each, 3)));
}

}  // namespace neuroshard::ui
