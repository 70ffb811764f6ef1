#include <QButtonGroup>
#include <QJsonDocument>
#include <QJsonObject>
#include <QLabel>
#include <QPlainTextEdit>
#include <QRadioButton>
#include <QVBoxLayout>

#include "ui/wizard/setup_pages.h"

namespace neuroshard::ui {
namespace {

constexpr int word_count = 12;
constexpr int token_characters = 64;

// neuroshardd writes them on standard error, on a line of their own.
QStringList words_in(const QByteArray& text) {
  for (const QByteArray& line : text.split('\n')) {
    const QStringList words = QString::fromUtf8(line).simplified().split(' ', Qt::SkipEmptyParts);
    if (words.size() != word_count) continue;
    const bool plain = std::all_of(words.begin(), words.end(), [](const QString& word) {
      return std::all_of(word.begin(), word.end(), [](QChar c) { return c >= 'a' && c <= 'z'; });
    });
    if (plain) return words;
  }
  return {};
}

QString wallet_id_in(const QByteArray& json) {
  return QJsonDocument::fromJson(json).object().value("wallet_id").toString();
}

}  // namespace

IdentityPage::IdentityPage(SetupDraft& draft, SetupServices& services) : SetupPage(draft, services) {
  keep_ = new QRadioButton(this);
  keep_->setObjectName("setupKeep");
  create_ = new QRadioButton(tr("Create a new wallet"), this);
  create_->setObjectName("setupCreate");
  restore_ = new QRadioButton(tr("Restore an existing wallet"), this);
  restore_->setObjectName("setupRestore");
  for (QRadioButton* button : {keep_, create_, restore_}) {
    body()->addWidget(button);
    connect(button, &QRadioButton::toggled, this, [this] {
      secret_->setVisible(restore_->isChecked());
      show_problem({});
      Q_EMIT complete_changed();
    });
  }
  secret_ = new QPlainTextEdit(this);
  secret_->setObjectName("setupSecret");
  secret_->setAccessibleName(tr("The 12 words, or the wallet token"));
  secret_->setPlaceholderText(tr("The 12 words in order, or the wallet token of 64 characters"));
  secret_->setTabChangesFocus(true);
  secret_->setUndoRedoEnabled(false);  // no copies of the secret
  secret_->setMaximumHeight(96);
  secret_->hide();
  connect(secret_, &QPlainTextEdit::textChanged, this, &SetupPage::complete_changed);
  body()->addWidget(secret_);
}

QString IdentityPage::intro() const {
  const QString about = tr(
      "A wallet is the key that owns what this computer earns. Anyone who has its 12 words controls it, and "
      "nobody can restore it without them.");
  if (!draft_.joining) return about;
  return tr("The network gets a data folder of its own, %1. To use the wallet that you have, restore it "
            "there "
            "from its words.")
             .arg(draft_.folder) +
         ' ' + about;
}

void IdentityPage::entered() {
  const QString wallet = draft_.made_wallet.isEmpty() ? draft_.folder_info.wallet_id : draft_.made_wallet;
  keep_->setVisible(!wallet.isEmpty());
  create_->setVisible(wallet.isEmpty());
  keep_->setText(tr("Keep the wallet in this folder (%1)").arg(wallet));
  if (!restore_->isChecked()) (wallet.isEmpty() ? create_ : keep_)->setChecked(true);
}

bool IdentityPage::complete() const {
  return !restore_->isChecked() || !secret_->toPlainText().trimmed().isEmpty();
}

void IdentityPage::leave(std::function<void(bool)> done) {
  show_problem({});
  if (restore_->isChecked()) return restore(std::move(done));
  if (keep_->isChecked()) return done(true);
  create(std::move(done));
}

void IdentityPage::create(std::function<void(bool)> done) {
  services_.run(
      this, {"wallet", "create", "--data-dir", draft_.folder, "--json"}, {},
      [this, done](CommandOutcome outcome) {
        if (!outcome.ok()) {
          show_problem(reason(outcome));
          return done(false);
        }
        draft_.words = words_in(outcome.err);
        outcome.err.fill('\0');
        draft_.made_wallet = wallet_id_in(outcome.out);
        draft_.made_in = draft_.folder;
        if (draft_.words.isEmpty()) {
          show_problem(tr("The wallet was created, but its words could not be read. To see them, run "
                          "“neuroshardd wallet backup --words --data-dir %1” in a terminal.")
                           .arg(shell_word(draft_.made_in)));
          return done(false);
        }
        done(true);
      });
}

void IdentityPage::restore(std::function<void(bool)> done) {
  QString written = secret_->toPlainText().simplified();
  const auto count = written.split(' ', Qt::SkipEmptyParts).size();
  if (count != word_count && !(count == 1 && written.size() == token_characters)) {
    show_problem(tr("A wallet has 12 words, or a wallet token of 64 characters; this is %n word(s).", nullptr,
                    static_cast<int>(count)));
    wipe(&written);
    return done(false);
  }
  QStringList arguments{"wallet", "restore", "--from", "-", "--data-dir", draft_.folder, "--json"};
  if (keep_->isVisibleTo(this)) arguments << "--replace";  // that one is kept aside
  const QByteArray input = written.toUtf8() + '\n';
  wipe(&written);
  services_.run(this, arguments, input, [this, done](const CommandOutcome& outcome) {
    if (!outcome.ok()) {
      show_problem(reason(outcome));
      return done(false);
    }
    draft_.made_wallet = wallet_id_in(outcome.out);
    draft_.made_in = draft_.folder;
    wipe(&draft_.words);
    secret_->clear();
    keep_->setChecked(true);
    done(true);
  });
}

}  // namespace neuroshard::ui
