#include "ui/models/setting_text.h"

#include <QRegularExpression>

#include "ui/models/setting_words.h"

namespace neuroshard::ui {

std::vector<SettingUnit> setting_units(const std::string& type) {
  if (type == "bytes") {
    return {{QStringLiteral("B"), 1},
            {QStringLiteral("KiB"), 1u << 10},
            {QStringLiteral("MiB"), 1u << 20},
            {QStringLiteral("GiB"), 1u << 30},
            {QStringLiteral("TiB"), std::uint64_t{1} << 40}};
  }
  if (type == "seconds") {
    return {{QStringLiteral("s"), 1},
            {QStringLiteral("min"), 60},
            {QStringLiteral("h"), 3600},
            {QStringLiteral("d"), 86'400}};
  }
  return {{QString(), 1}};
}

bool is_rate(const node::SettingEntry& entry) {
  return entry.unit == "B/s";
}

std::size_t first_unit(const node::SettingEntry& entry) {
  if (entry.type == "bytes") return is_rate(entry) ? 2 : 3;
  return entry.type == "seconds" ? 1 : 0;
}

std::optional<ScaledValue> read_scaled(const node::SettingEntry& entry, const QString& text) {
  const std::vector<SettingUnit> units = setting_units(entry.type);
  const QString trimmed = text.trimmed();
  qsizetype digits = 0;
  while (digits < trimmed.size() && trimmed[digits] >= u'0' && trimmed[digits] <= u'9') ++digits;
  bool ok = false;
  const qulonglong number = trimmed.left(digits).toULongLong(&ok);
  if (!ok) return std::nullopt;
  const QString suffix = trimmed.mid(digits).trimmed();
  if (suffix.isEmpty() && number == 0) return ScaledValue{0, first_unit(entry)};
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (suffix == units[i].suffix || (suffix.isEmpty() && i == 0)) return ScaledValue{number, i};
  }
  return std::nullopt;
}

QString write_scaled(const std::string& type, const ScaledValue& value) {
  const std::vector<SettingUnit> units = setting_units(type);
  return QString::number(value.number) + (value.number == 0 ? QString() : units[value.unit].suffix);
}

QStringList setting_choices(const node::SettingEntry& entry) {
  return QString::fromStdString(entry.choices).split(u'|', Qt::SkipEmptyParts);
}

bool is_switch(const node::SettingEntry& entry) {
  return entry.choices == "on|off" || entry.choices == "off|on";
}

QString meaning_of_zero(const QString& help) {
  static const QRegularExpression pattern(QStringLiteral(R"((?:^|[\s;,(])0 = ([^;,.)]+))"));
  return pattern.match(help).captured(1).trimmed();
}

bool matches_search(const node::SettingEntry& entry, const QString& words) {
  // In the language of the page and in that of the core: its command line and documents are English.
  const QString all = QStringList{QString::fromStdString(entry.name + ' ' + entry.title + ' ' + entry.group +
                                                         ' ' + entry.help),
                                  setting_title(entry), setting_help(entry)}
                          .join(u' ');
  return has_words(all, words);
}

bool has_words(const QString& text, const QString& words) {
  for (const QString& word : words.split(u' ', Qt::SkipEmptyParts))
    if (!text.contains(word, Qt::CaseInsensitive)) return false;
  return true;
}

QStringList read_programs(const QString& text) {
  QStringList names;
  for (const QString& part : text.split(u',')) {
    const QString name = part.trimmed();
    if (!name.isEmpty() && !names.contains(name)) names.append(name);
  }
  return names;
}

QString write_programs(const QStringList& names) {
  return names.join(QStringLiteral(", "));
}

}  // namespace neuroshard::ui
