// Values of settings between the short texts of the core ("2GiB", "10min") and the numbers of an editor.
#pragma once

#include <QString>
#include <QStringList>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/node/queries.h"

namespace neuroshard::ui {

struct SettingUnit {
  QString suffix;  // "MiB"; empty = the type has no units
  std::uint64_t factor = 1;
};
// Ascending. Of types without units: one without a suffix.
std::vector<SettingUnit> setting_units(const std::string& type);

// A rate: its units are shown as "MiB/s".
bool is_rate(const node::SettingEntry& entry);

struct ScaledValue {
  std::uint64_t number = 0;
  std::size_t unit = 0;  // index into setting_units()
};
// "1536MiB" -> 1536 of MiB. Nothing for what the core does not write. A plain 0 is 0 of first_unit().
std::optional<ScaledValue> read_scaled(const node::SettingEntry& entry, const QString& text);
// The unit that a person would use next where nothing is set: GiB of a size, MiB/s of a rate, minutes.
std::size_t first_unit(const node::SettingEntry& entry);
QString write_scaled(const std::string& type, const ScaledValue& value);  // "1536MiB"

// The names in "a|b|c".
QStringList setting_choices(const node::SettingEntry& entry);
bool is_switch(const node::SettingEntry& entry);  // a choice of on and off

// The meaning of 0, from the help: "memory of the whole process; 0 = no limit" -> "no limit". Empty = a
// plain 0.
QString meaning_of_zero(const QString& help);

// Whether a setting is meant by what was typed into the search box: every word is found in its name, title,
// group or help.
bool matches_search(const node::SettingEntry& entry, const QString& words);
// Whether each of the words stands somewhere in the text.
bool has_words(const QString& text, const QString& words);

// "steam.exe, vlc" <-> names; without duplicates and empty ones.
QStringList read_programs(const QString& text);
QString write_programs(const QStringList& names);

}  // namespace neuroshard::ui
