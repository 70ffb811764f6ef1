#include "ui/pages/app_settings_card.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QVBoxLayout>

#include "ui/models/preferences.h"
#include "ui/models/release_view.h"
#include "ui/models/setting_text.h"
#include "ui/pages/setting_editor_parts.h"
#include "ui/text/translation.h"
#include "ui/theme/theme.h"
#include "ui/widgets/toggle_switch.h"

namespace neuroshard::ui {
namespace {

QComboBox* make_choice(const char* object, const QString& name) {
  auto* box = new QComboBox;
  box->setObjectName(QString::fromLatin1(object));
  box->setAccessibleName(name);
  box->setMinimumWidth(150);
  guard_wheel(box);
  return box;
}

QWidget* make_switch(const Theme& theme, const char* object, const QString& name, bool on,
                     const std::function<void(bool)>& set) {
  auto* made = new ToggleSwitch(theme, {});
  made->setObjectName(QString::fromLatin1(object));
  made->setAccessibleName(name);
  made->setChecked(on);
  QObject::connect(made, &QAbstractButton::clicked, made, set);
  return made;
}

}  // namespace

AppSettingsCard::AppSettingsCard(const Theme& theme, Preferences& preferences, const ReleaseView* releases,
                                 QWidget* parent)
    : Card(tr("This app"), parent) {
  setObjectName(QStringLiteral("app_settings"));
  set_caption(tr("stored on this computer, not in the core"));
  QComboBox* look = make_choice("app_theme", tr("Theme"));
  look->addItem(tr("Follow the desktop"), static_cast<int>(ThemeChoice::System));
  look->addItem(tr("Light"), static_cast<int>(ThemeChoice::Light));
  look->addItem(tr("Dark"), static_cast<int>(ThemeChoice::Dark));
  look->setCurrentIndex(look->findData(static_cast<int>(preferences.theme())));
  connect(look, &QComboBox::activated, this, [look, &preferences] {
    preferences.set_theme(static_cast<ThemeChoice>(look->currentData().toInt()));
  });
  add_row(tr("Theme"), tr("Light, dark, or the same as the desktop."), look);

  QComboBox* language = make_choice("app_language", tr("Language"));
  language->addItem(tr("Follow the desktop"), QString());
  for (const Language& one : languages()) language->addItem(one.name, one.code);
  language->setCurrentIndex(std::max(0, language->findData(preferences.language())));
  connect(language, &QComboBox::activated, this,
          [language, &preferences] { preferences.set_language(language->currentData().toString()); });
  add_row(tr("Language"), tr("Takes effect at the next start of the app."), language);

  const auto add_switch = [&](const char* object, const QString& title, const QString& help, bool on,
                              const std::function<void(bool)>& set) {
    add_row(title, help, make_switch(theme, object, title, on, set));
  };
  add_switch("app_close_to_tray", tr("Keep running in the tray"),
             tr("If the desktop has a tray, the app stays in it when you close the window."),
             preferences.close_to_tray(), [&preferences](bool on) { preferences.set_close_to_tray(on); });
  add_switch("app_autostart", tr("Start with the session"), tr("Starts in the tray, without a window."),
             preferences.autostart(), [&preferences](bool on) { preferences.set_autostart(on); });
  auto* autostart = findChild<ToggleSwitch*>(QStringLiteral("app_autostart"));
  // The app takes it over when the desktop's own settings have changed it.
  connect(&preferences, &Preferences::changed, autostart,
          [autostart, &preferences] { autostart->setChecked(preferences.autostart()); });
  const auto notify = [&](const char* object, const QString& title, const QString& help,
                          NotificationClass about) {
    add_switch(object, title, help, preferences.notify(about),
               [&preferences, about](bool on) { preferences.set_notify(about, on); });
  };
  notify("app_notify_problem", tr("Notify of problems"),
         tr("When something needs attention, such as a full disk."), NotificationClass::Problem);
  notify("app_notify_pause", tr("Notify of pauses"), tr("When training pauses or resumes by itself."),
         NotificationClass::Pause);
  notify("app_notify_finished", tr("Notify of results"), tr("When long work, such as an export, is done."),
         NotificationClass::Finished);
  if (releases != nullptr) add_releases(theme, preferences, *releases);
}

void AppSettingsCard::add_releases(const Theme& theme, Preferences& preferences,
                                   const ReleaseView& releases) {
  QWidget* toggle = make_switch(theme, "app_look_for_releases", ReleaseWords::title(),
                                preferences.look_for_releases() && !releases.place().isEmpty(),
                                [&preferences](bool on) { preferences.set_look_for_releases(on); });
  toggle->setEnabled(!releases.place().isEmpty());
  QVBoxLayout* words = add_row(ReleaseWords::title(), ReleaseWords::help(releases.place()), toggle);
  QLabel* note = make_paragraph({}, "caption", this);
  note->setObjectName(QStringLiteral("release_note"));
  words->addWidget(note);
  const auto show = [note, &releases] {
    const ReleaseWords::Note& told = releases.note();
    note->setText(told.text);
    note->setVisible(!told.text.isEmpty());
    set_role(note, "role", told.tone == Tone::Danger ? QStringLiteral("danger") : QStringLiteral("caption"));
  };
  connect(&releases, &ReleaseView::changed, note, show);
  show();
}

QVBoxLayout* AppSettingsCard::add_row(const QString& title, const QString& help, QWidget* editor) {
  auto* row = new QWidget(this);
  auto* line = new QHBoxLayout(row);
  line->setContentsMargins(0, grid_step / 2, 0, grid_step / 2);
  auto* words = new QVBoxLayout;
  words->setSpacing(0);
  words->addWidget(make_label(title, "strong", row));
  words->addWidget(make_paragraph(help, "caption", row));
  line->addLayout(words, 1);
  line->addWidget(editor, 0, Qt::AlignVCenter);
  body()->addWidget(row);
  rows_.push_back({row, title + u' ' + help});
  return words;
}

bool AppSettingsCard::filter(const QString& words) {
  bool any = false;
  for (const Row& row : rows_) {
    const bool found = has_words(row.words, words);
    row.widget->setVisible(found);
    any = any || found;
  }
  return any;
}

}  // namespace neuroshard::ui
