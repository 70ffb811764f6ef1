#include "ui/wizard/setup_page.h"

#include <QLabel>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/text/program_error.h"

namespace neuroshard::ui {

void wipe(QString* text) {
  text->fill(QChar('\0'));
  text->clear();
}

void wipe(QStringList* texts) {
  for (QString& text : *texts) wipe(&text);
  texts->clear();
}

QString shell_word(const QString& path) {
  const bool plain = std::all_of(path.begin(), path.end(), [](QChar c) {
    return c.isLetterOrNumber() || QStringLiteral("/._-+,@").contains(c);
  });
  if (plain && !path.isEmpty()) return path;
  QString quoted = path;
  quoted.replace(QStringLiteral("'"), QStringLiteral("'\\''"));
  return '\'' + quoted + '\'';
}

SetupPage::SetupPage(SetupDraft& draft, SetupServices& services, QWidget* parent)
    : QWidget(parent), draft_(draft), services_(services) {
  auto* outer = new QVBoxLayout(this);
  outer->setContentsMargins(0, 0, 0, 0);
  outer->setSpacing(16);
  body_ = new QVBoxLayout;
  body_->setSpacing(12);
  outer->addLayout(body_);
  problem_ = new QLabel(this);
  problem_->setObjectName("setupProblem");
  problem_->setWordWrap(true);
  problem_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  problem_->setProperty("role", "danger");
  problem_->hide();
  outer->addWidget(problem_);
  outer->addStretch(1);
}

QString SetupPage::next_text() const {
  return tr("Next");
}

void SetupPage::show_problem(const QString& text) {
  problem_->setText(text);
  problem_->setVisible(!text.isEmpty());
}

QLabel* SetupPage::add_note(const QString& text) {
  auto* label = new QLabel(text, this);
  label->setWordWrap(true);
  label->setProperty("role", "caption");
  body_->addWidget(label);
  return label;
}

QString SetupPage::reason(const CommandOutcome& outcome) {
  QString line = error_of_program(outcome.err).section('\n', -1).trimmed();
  if (line.isEmpty()) return tr("neuroshardd ended with code %1 and gave no reason.").arg(outcome.code);
  for (const char* prefix : {"neuroshardd: ", "error: "}) {
    if (line.startsWith(QLatin1String(prefix))) line.remove(0, static_cast<int>(qstrlen(prefix)));
  }
  return line;
}

}  // namespace neuroshard::ui
