#include "ui/models/setting_words.h"

#include <QCoreApplication>

namespace neuroshard::ui {
namespace {

QString translated(const std::string& english, const std::string& name) {
  return QCoreApplication::translate("CoreSettings", english.c_str(), name.c_str());
}

}  // namespace

QString setting_title(const node::SettingEntry& entry) {
  return entry.title.empty() ? QString::fromStdString(entry.name) : translated(entry.title, entry.name);
}

QString setting_help(const node::SettingEntry& entry) {
  return entry.help.empty() ? QString() : translated(entry.help, entry.name);
}

QString choice_word(const std::string& choice) {
  return choice.empty() ? QString() : QCoreApplication::translate("CoreChoices", choice.c_str());
}

QString shown_value(const node::SettingEntry& entry, const std::string& value) {
  return entry.choices.empty() ? QString::fromStdString(value) : choice_word(value);
}

}  // namespace neuroshard::ui
