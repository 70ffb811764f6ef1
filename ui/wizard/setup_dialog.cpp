#include "ui/wizard/setup_dialog.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QMessageBox>
#include <QPushButton>
#include <QScrollArea>
#include <QStackedWidget>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/wizard/setup_pages.h"

namespace neuroshard::ui {

SetupDialog::SetupDialog(SetupServices& services, SetupDraft draft, QWidget* parent)
    : QDialog(parent), draft_(std::move(draft)) {
  setWindowTitle(tr("Set up NeuroShard"));
  setObjectName("setupDialog");
  resize(640, 520);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(24, 24, 24, 16);
  layout->setSpacing(8);
  step_ = new QLabel(this);
  step_->setObjectName("setupStep");
  step_->setProperty("role", "caption");
  title_ = new QLabel(this);
  title_->setProperty("role", "page-title");
  intro_ = new QLabel(this);
  intro_->setWordWrap(true);
  layout->addWidget(step_);
  layout->addWidget(title_);
  layout->addWidget(intro_);
  layout->addSpacing(8);
  stack_ = new QStackedWidget(this);
  layout->addWidget(stack_, 1);

  auto* look = new LookPage(draft_, services);
  connect(look, &LookPage::theme_chosen, this, &SetupDialog::theme_chosen);
  pages_ = {look,
            new FolderPage(draft_, services),
            new IdentityPage(draft_, services),
            new WordsPage(draft_, services),
            new ConfirmPage(draft_, services),
            new LimitsPage(draft_, services),
            new StartPage(draft_, services)};
  for (SetupPage* page : pages_) {
    auto* scroll = new QScrollArea(stack_);
    scroll->setWidgetResizable(true);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setFocusPolicy(Qt::NoFocus);
    scroll->setWidget(page);
    stack_->addWidget(scroll);
    connect(page, &SetupPage::complete_changed, this, &SetupDialog::update_buttons);
  }

  auto* buttons = new QHBoxLayout;
  cancel_ = new QPushButton(tr("Cancel"), this);
  back_ = new QPushButton(tr("Back"), this);
  back_->setObjectName("setupBack");
  next_ = new QPushButton(this);
  next_->setObjectName("setupNext");
  next_->setDefault(true);
  next_->setProperty("role", "primary");
  buttons->addWidget(cancel_);
  buttons->addStretch(1);
  buttons->addWidget(back_);
  buttons->addWidget(next_);
  layout->addLayout(buttons);
  connect(cancel_, &QPushButton::clicked, this, &SetupDialog::reject);
  connect(back_, &QPushButton::clicked, this, &SetupDialog::back);
  connect(next_, &QPushButton::clicked, this, &SetupDialog::next);
  show_page(needed_page(-1, 1));
}

SetupDialog::~SetupDialog() {
  wipe(&draft_.words);
}

void SetupDialog::show_page(int index) {
  stack_->setCurrentIndex(index);
  SetupPage* page = pages_[static_cast<std::size_t>(index)];
  int number = 0, count = 0;
  for (int i = 0; i < static_cast<int>(pages_.size()); ++i) {
    const SetupPage* one = pages_[static_cast<std::size_t>(i)];
    if (!one->opens_step() || !one->needed()) continue;
    ++count;
    if (i <= index) ++number;
  }
  step_->setText(tr("Step %1 of %2").arg(number).arg(count));
  title_->setText(page->title());
  intro_->setText(page->intro());
  page->entered();
  update_buttons();
}

void SetupDialog::update_buttons() {
  const int index = stack_->currentIndex();
  if (index < 0) return;
  const SetupPage* page = pages_[static_cast<std::size_t>(index)];
  back_->setEnabled(!busy_ && needed_page(index, -1) >= 0);
  next_->setText(page->next_text());
  next_->setEnabled(!busy_ && page->complete());
  cancel_->setEnabled(!busy_);
}

void SetupDialog::next() {
  const int index = stack_->currentIndex();
  SetupPage* page = pages_[static_cast<std::size_t>(index)];
  if (busy_ || !page->complete()) return;
  busy_ = true;
  update_buttons();
  page->leave([this, index](bool ok) {
    busy_ = false;
    if (!ok) return update_buttons();
    const int further = needed_page(index, 1);
    if (further >= 0) return show_page(further);
    accept();
  });
}

void SetupDialog::back() {
  const int earlier = needed_page(stack_->currentIndex(), -1);
  if (earlier >= 0) show_page(earlier);
}

// The next page that is asked for, behind this one in the direction of `step`; -1: none.
int SetupDialog::needed_page(int index, int step) const {
  for (int i = index + step; i >= 0 && i < static_cast<int>(pages_.size()); i += step) {
    if (pages_[static_cast<std::size_t>(i)]->needed()) return i;
  }
  return -1;
}

void SetupDialog::propose(const QString& invitation) {
  draft_.invitation = invitation;
  const int last = static_cast<int>(pages_.size()) - 1;  // the page that asks for it
  if (stack_->currentIndex() == last) pages_.back()->entered();
}

void SetupDialog::reject() {
  if (busy_) return;
  if (!draft_.words.isEmpty()) {
    const auto answer =
        QMessageBox::warning(this, tr("The words are not confirmed"),
                             tr("The wallet was created, but you did not confirm its words. To see them "
                                "again, run “neuroshardd wallet backup --words --data-dir %1”. Leave "
                                "anyway?")
                                 .arg(shell_word(draft_.made_in)),
                             QMessageBox::Discard | QMessageBox::Cancel, QMessageBox::Cancel);
    if (answer != QMessageBox::Discard) return;
  }
  QDialog::reject();
}

}  // namespace neuroshard::ui
