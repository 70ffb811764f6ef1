#include <QButtonGroup>
#include <QComboBox>
#include <QFormLayout>
#include <QVBoxLayout>

#include "ui/text/translation.h"
#include "ui/wizard/setup_pages.h"

namespace neuroshard::ui {

LookPage::LookPage(SetupDraft& draft, SetupServices& services) : SetupPage(draft, services) {
  auto* form = new QFormLayout;
  auto* language = new QComboBox(this);
  language->setObjectName("setupLanguage");
  language->setAccessibleName(tr("Language"));
  language->addItem(tr("Follow the desktop"), QString());
  for (const Language& one : languages()) language->addItem(one.name, one.code);
  language->setCurrentIndex(std::max(0, language->findData(draft.language)));
  connect(language, &QComboBox::currentIndexChanged, this,
          [this, language] { draft_.language = language->currentData().toString(); });
  form->addRow(tr("Language"), language);
  auto* theme = new QComboBox(this);
  theme->setObjectName("setupTheme");
  theme->setAccessibleName(tr("Appearance"));
  theme->addItem(tr("Follow the desktop"), static_cast<int>(ThemeChoice::System));
  theme->addItem(tr("Light"), static_cast<int>(ThemeChoice::Light));
  theme->addItem(tr("Dark"), static_cast<int>(ThemeChoice::Dark));
  theme->setCurrentIndex(std::max(0, theme->findData(static_cast<int>(draft.theme))));
  connect(theme, &QComboBox::currentIndexChanged, this, [this, theme] {
    draft_.theme = static_cast<ThemeChoice>(theme->currentData().toInt());
    Q_EMIT theme_chosen(draft_.theme);
  });
  form->addRow(tr("Appearance"), theme);
  body()->addLayout(form);
  add_note(
      tr("A new language takes effect at the next start. The app is available in English; translations can "
         "be added."));
}

QString LookPage::intro() const {
  return tr(
      "NeuroShard trains an open language model on ordinary computers. Answer five short questions to "
      "begin.");
}

}  // namespace neuroshard::ui
