#include "ui/pages/about_dialog.h"

#include <QDialogButtonBox>
#include <QLabel>
#include <QPushButton>
#include <QShowEvent>
#include <QVBoxLayout>

#include "ui/text/format.h"
#include "ui/theme/theme.h"
#include "ui/widgets/card.h"

namespace neuroshard::ui {
namespace {
constexpr int about_width = 480;
}  // namespace

AboutDialog::AboutDialog(const Theme& theme, const QString& app_version, const QString& core_version,
                         QWidget* parent)
    : QDialog(parent) {
  setObjectName(QStringLiteral("about_dialog"));
  setAttribute(Qt::WA_DeleteOnClose);
  setWindowTitle(tr("About NeuroShard"));
  auto* column = new QVBoxLayout(this);
  column->setSpacing(2 * grid_step);
  column->setContentsMargins(3 * grid_step, 3 * grid_step, 3 * grid_step, 2 * grid_step);
  auto* heading = new QHBoxLayout;
  auto* picture = new QLabel(this);
  picture->setPixmap(theme.icon(QStringLiteral("neuroshard"), Token::Accent).pixmap(48, 48));
  heading->addWidget(picture, 0, Qt::AlignTop);
  auto* words = new QVBoxLayout;
  words->setSpacing(2);
  words->addWidget(make_label(QStringLiteral("NeuroShard"), "page-title", this));
  words->addWidget(make_label(
      tr("App %1, core %2").arg(app_version, core_version.isEmpty() ? Format::dash() : core_version), "muted",
      this));
  heading->addLayout(words, 1);
  column->addLayout(heading);
  const auto paragraph = [this, column](const QString& text) {
    QLabel* label = make_paragraph(text, nullptr, this);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    column->addWidget(label);
  };
  paragraph(
      tr("Many ordinary computers train one open model together. This window shows and controls the core, "
         "which does the work."));
  paragraph(
      tr("Licences: the source of NeuroShard is under Apache-2.0. This program contains Qt Charts, which is "
         "under "
         "GPL-3, so as a whole you receive it under GPL-3. The core, neuroshardd, contains no Qt and stays "
         "under "
         "Apache-2.0."));
  paragraph(tr("Qt %1 is used under LGPL-3 (Qt Charts under GPL-3). It comes without any warranty.")
                .arg(QString::fromLatin1(qVersion())));
  column->addStretch(1);  // paragraphs stay together
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  QPushButton* news = buttons->addButton(tr("What is new"), QDialogButtonBox::ActionRole);
  news->setObjectName(QStringLiteral("about_news"));
  connect(news, &QPushButton::clicked, this, &AboutDialog::news_wanted);
  news->setAutoDefault(false);
  buttons->button(QDialogButtonBox::Close)->setDefault(true);
  buttons->button(QDialogButtonBox::Close)->setFocus();
  column->addWidget(buttons);
  setMinimumWidth(about_width);
}

// As high as its text: known only now, with the fonts of the style sheet.
void AboutDialog::showEvent(QShowEvent* event) {
  QDialog::showEvent(event);
  if (event->spontaneous()) return;
  layout()->activate();
  resize(about_width, layout()->heightForWidth(about_width));
}

}  // namespace neuroshard::ui
