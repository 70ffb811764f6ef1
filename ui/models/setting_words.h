// The texts of the core's settings in the user's language. The core gives a setting's name and its English
// text; the catalogues have the translations, in the context "CoreSettings" (choices: "CoreChoices"). A text
// that they lack, such as that of a newer core's setting, is shown in English.
//
// The contexts are filled by app/translations, from the core's whole table. Threads: ui.
#pragma once

#include <QString>

#include "core/node/queries.h"

namespace neuroshard::ui {

QString setting_title(const node::SettingEntry& entry);  // without one: the setting's name
// Begins in lower case, as the core's does. A translation keeps the digit of "0 = no limit".
QString setting_help(const node::SettingEntry& entry);
QString choice_word(const std::string& choice);  // of "on", "low", "fp32" …
// A value of that setting: a choice's word, else the core's text.
QString shown_value(const node::SettingEntry& entry, const std::string& value);

}  // namespace neuroshard::ui
