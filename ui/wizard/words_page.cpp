#include <QGridLayout>
#include <QLabel>
#include <QLineEdit>
#include <QRandomGenerator>
#include <QVBoxLayout>

#include "ui/wizard/setup_pages.h"

namespace neuroshard::ui {
namespace {

constexpr int word_count = 12, columns = 3, asked = 2;

}  // namespace

WordsPage::WordsPage(SetupDraft& draft, SetupServices& services) : SetupPage(draft, services) {
  auto* grid = new QGridLayout;
  grid->setHorizontalSpacing(24);
  grid->setVerticalSpacing(8);
  for (int i = 0; i < word_count; ++i) {
    auto* label = new QLabel(this);
    label->setObjectName(QString("setupWord%1").arg(i + 1));
    label->setTextInteractionFlags(Qt::NoTextInteraction);  // paper, not the clipboard
    QFont font = label->font();
    font.setPointSizeF(font.pointSizeF() * 1.2);
    label->setFont(font);
    grid->addWidget(label, i % (word_count / columns), i / (word_count / columns));
    labels_.push_back(label);
  }
  body()->addLayout(grid);
}

QString WordsPage::intro() const {
  return tr(
      "Write these words on paper, in this order. Without them you can't restore the wallet if this computer "
      "is lost. Do not photograph them or save them in a file.");
}

void WordsPage::entered() {
  for (int i = 0; i < word_count; ++i) {
    const QString word = i < draft_.words.size() ? draft_.words[i] : QString();
    labels_[static_cast<std::size_t>(i)]->setText(tr("%1.  %2").arg(i + 1, 2).arg(word));
  }
}

ConfirmPage::ConfirmPage(SetupDraft& draft, SetupServices& services) : SetupPage(draft, services) {
  for (int i = 0; i < asked; ++i) {
    Question question;
    question.label = new QLabel(this);
    question.answer = new QLineEdit(this);
    question.answer->setObjectName(QString("setupAnswer%1").arg(i + 1));
    question.label->setBuddy(question.answer);
    connect(question.answer, &QLineEdit::textChanged, this, &SetupPage::complete_changed);
    body()->addWidget(question.label);
    body()->addWidget(question.answer);
    questions_.push_back(question);
  }
}

QString ConfirmPage::intro() const {
  return tr("Enter these words to confirm that you wrote them down. Press “Back” to see them again.");
}

void ConfirmPage::entered() {
  // One of each half.
  constexpr int half = word_count / asked;
  for (int i = 0; i < asked; ++i) {
    Question& question = questions_[static_cast<std::size_t>(i)];
    question.word = i * half + QRandomGenerator::global()->bounded(half);
    question.label->setText(tr("Word %1").arg(question.word + 1));
    question.answer->setAccessibleName(question.label->text());
    question.answer->setProperty("word", question.word);
    question.answer->clear();
  }
  questions_.front().answer->setFocus();
}

bool ConfirmPage::complete() const {
  return std::all_of(questions_.begin(), questions_.end(),
                     [](const Question& question) { return !question.answer->text().trimmed().isEmpty(); });
}

void ConfirmPage::leave(std::function<void(bool)> done) {
  for (const Question& question : questions_) {
    if (question.answer->text().trimmed().toLower() == draft_.words.value(question.word)) continue;
    show_problem(
        tr("Word %1 does not match. Check what you wrote down, or press “Back” to see the words again.")
            .arg(question.word + 1));
    question.answer->setFocus();
    return done(false);
  }
  show_problem({});
  for (const Question& question : questions_) question.answer->clear();
  wipe(&draft_.words);
  done(true);
}

}  // namespace neuroshard::ui
