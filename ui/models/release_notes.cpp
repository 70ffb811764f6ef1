#include "ui/models/release_notes.h"

#include <QFile>
#include <QXmlStreamReader>
#include <algorithm>

// Qt wants this outside of a namespace.
static void init_metainfo() {
  Q_INIT_RESOURCE(desktop);
}

namespace neuroshard::ui {
namespace {

// The paragraphs and items of one description.
std::vector<ReleaseNote::Block> read_blocks(QXmlStreamReader* xml, const QString& language) {
  std::vector<ReleaseNote::Block> plain, own;
  for (int depth = 1; depth > 0 && !xml->atEnd();) {
    const QXmlStreamReader::TokenType token = xml->readNext();
    if (token == QXmlStreamReader::EndElement) --depth;
    if (token != QXmlStreamReader::StartElement) continue;
    const bool item = xml->name() == QLatin1String("li");
    if (!item && xml->name() != QLatin1String("p")) {
      ++depth;
      continue;
    }
    const QString of = xml->attributes().value(QLatin1String("xml:lang")).toString();
    const QString text = xml->readElementText(QXmlStreamReader::IncludeChildElements).simplified();
    if (text.isEmpty() || (!of.isEmpty() && of != language)) continue;
    (of.isEmpty() ? plain : own).push_back({text, item});
  }
  return own.empty() ? plain : own;
}

}  // namespace

std::vector<ReleaseNote> read_release_notes(const QByteArray& metainfo, const QString& language) {
  std::vector<ReleaseNote> notes;
  QXmlStreamReader xml(metainfo);
  bool in_release = false;
  while (!xml.atEnd()) {
    const QXmlStreamReader::TokenType token = xml.readNext();
    if (token == QXmlStreamReader::EndElement && xml.name() == QLatin1String("release")) in_release = false;
    if (token != QXmlStreamReader::StartElement) continue;
    if (xml.name() == QLatin1String("release")) {
      const auto version =
          Version::parse(xml.attributes().value(QLatin1String("version")).toString().toStdString());
      in_release = version.ok();
      if (!in_release) continue;
      ReleaseNote note;
      note.version = *version;
      note.date = QDate::fromString(xml.attributes().value(QLatin1String("date")).toString(), Qt::ISODate);
      notes.push_back(std::move(note));
    } else if (in_release && xml.name() == QLatin1String("description")) {
      notes.back().blocks = read_blocks(&xml, language);
    }
  }
  notes.erase(
      std::remove_if(notes.begin(), notes.end(), [](const ReleaseNote& note) { return note.blocks.empty(); }),
      notes.end());
  std::stable_sort(notes.begin(), notes.end(),
                   [](const ReleaseNote& a, const ReleaseNote& b) { return b.version < a.version; });
  return notes;
}

std::vector<ReleaseNote> own_release_notes(const QString& language) {
  init_metainfo();
  QFile file(QStringLiteral(":/desktop/metainfo.xml"));
  if (!file.open(QIODevice::ReadOnly)) return {};
  return read_release_notes(file.readAll(), language);
}

std::vector<ReleaseNote> notes_between(const std::vector<ReleaseNote>& all, const Version& before,
                                       const Version& until) {
  std::vector<ReleaseNote> found;
  for (const ReleaseNote& note : all)
    if (before < note.version && !(until < note.version)) found.push_back(note);
  return found;
}

}  // namespace neuroshard::ui
