// ns_setting_words FILE: writes the words of the core's settings as a C++ file in which lupdate finds them,
// so that the catalogues of the app have them (ui/models/setting_words.h shows them). Run by the target
// update_translations.
#include <cstdio>
#include <set>
#include <string>

#include "core/config/settings_table.h"
#include "core/storage/file_env.h"

namespace {

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

std::string setting_words() {
  std::string text = "// Made from the core's table of settings.\n";
  std::set<std::string> choices;
  for (const neuroshard::config::SettingInfo& info : neuroshard::config::settings_table()) {
    // The setting's name as the comment tells apart what English says with one word.
    for (const char* words : {info.label, info.help})
      text += "QT_TRANSLATE_NOOP3(\"CoreSettings\", " + quoted(words) + ", " + quoted(info.name) + ")\n";
    const std::string all = info.choices;
    for (std::size_t at = 0; at < all.size();) {
      const std::size_t end = std::min(all.find('|', at), all.size());
      choices.insert(all.substr(at, end - at));
      at = end + 1;
    }
  }
  for (const std::string& choice : choices)
    text += "QT_TRANSLATE_NOOP(\"CoreChoices\", " + quoted(choice) + ")\n";
  return text;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fputs("usage: ns_setting_words FILE\n", stderr);
    return 64;
  }
  const std::string text = setting_words();
  const auto files = neuroshard::storage::make_posix_file_env();
  const auto written =
      neuroshard::storage::write_file_atomic(*files, arguments[1], neuroshard::as_bytes(text));
  if (written.ok()) return 0;
  std::fprintf(stderr, "error: %s\n", written.error().message.c_str());
  return 1;
}
