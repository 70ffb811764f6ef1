// Texts of three people in three languages, for networks whose nodes have texts of their own. Header only; needs Qt.
#pragma once

#include "tests/support/rounds_run.h"

namespace neuroshard::test {

// Letters that no text has, so that each is a token of its own.
inline const QMap<QString, QByteArray> planted{
    {"anna", "QZJXQQZV"}, {"ben", "WKYUWWKY"}, {"carl", "HGFDHHGF"}};

// A language of its own for each, and once in it the planted word.
inline QByteArray text_of(const QString& name, char shift) {
  QByteArray text = made_up_text(static_cast<std::uint64_t>(shift) + 3, 60'000);
  for (char& letter : text)
    if (letter >= 'a' && letter <= 'z') letter = static_cast<char>('a' + (letter - 'a' + shift) % 26);
  const auto middle = text.indexOf(' ', text.size() / 2);
  return text.insert(middle, " " + planted[name]);
}

// Into NAME.txt of each. Empty: done.
inline QByteArray write_texts(const RoundsRun& run) {
  char shift = 0;
  for (auto at = planted.begin(); at != planted.end(); ++at, shift = static_cast<char>(shift + 7))
    if (!run.write_text(at.key() + ".txt", text_of(at.key(), shift))) return "no room for the texts";
  return {};
}

// Of a node, as its file has it.
inline QByteArray tokenizer_of(const RoundsRun& run, const QString& name) {
  QFile file(run.path(name) + "/data/tokenizer.json");
  return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

}  // namespace neuroshard::test
