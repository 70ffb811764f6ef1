#include "ui/text/translation.h"

#include <QCoreApplication>
#include <QDir>
#include <QLocale>
#include <algorithm>
#include <cstring>

// Resources of a static library are registered only when asked for; the macro must stand outside of
// namespaces.
static void init_translations() {
  Q_INIT_RESOURCE(translations);
}

namespace neuroshard::ui {
namespace {

constexpr const char* folder = ":/translations";
constexpr double growth = 0.35;  // German and Finnish are about a third longer than English

QChar accented(QChar c) {
  static const QString plain = QStringLiteral("aceinosuyzACEINOSUYZdglrt");
  static const QString other = QStringLiteral("åçéîñöšûýžÅÇÉÎÑÖŠÛÝŽďğĺŕť");
  const auto at = plain.indexOf(c);
  return at < 0 ? c : other[at];
}

}  // namespace

QString pseudo(const QString& text) {
  if (text.isEmpty()) return text;
  QString result;
  bool keep = false;  // after %: the next character names an argument
  for (const QChar c : text) {
    result += keep ? c : accented(c);
    keep = c == QLatin1Char('%');
  }
  const auto letters = std::count_if(text.begin(), text.end(), [](QChar c) { return c.isLetter(); });
  const int more = letters < 2 ? 0 : std::max(1, static_cast<int>(static_cast<double>(letters) * growth));
  return QLatin1Char('[') + result + QString(more, QChar(0x00b7)) + QLatin1Char(']');
}

bool PseudoTranslator::load_english() {
  init_translations();
  return english_.load(QStringLiteral("neuroshard_en"), QString::fromLatin1(folder));
}

QString PseudoTranslator::translate(const char* context, const char* source, const char* disambiguation,
                                    int n) const {
  // Qt asks the catalogue for the direction of the language by this name.
  if (std::strcmp(source, "QT_LAYOUT_DIRECTION") == 0)
    return mirrored_ ? QStringLiteral("RTL") : QStringLiteral("LTR");
  const QString english = english_.translate(context, source, disambiguation, n);
  const QString text = pseudo(english.isEmpty() ? QString::fromUtf8(source) : english);
  // A mark makes it a text from right to left, as one of such a language is: labels align by their text.
  return mirrored_ ? QChar(0x200f) + text : text;
}

std::vector<Language> languages() {
  init_translations();
  static const QString prefix = QStringLiteral("neuroshard_"), english = QStringLiteral("en");
  std::vector<Language> found = {{english, QStringLiteral("English")}};
  const QStringList files = QDir(QString::fromLatin1(folder)).entryList({prefix + QStringLiteral("*.qm")});
  for (const QString& file : files) {
    const QString code = file.mid(prefix.size()).chopped(3);
    if (code == english) continue;
    QString name = QLocale(code).nativeLanguageName();
    if (!name.isEmpty()) name[0] = name[0].toUpper();
    found.push_back({code, name.isEmpty() ? code : name});
  }
  return found;
}

void install_translation(QCoreApplication& application, const QString& language) {
  init_translations();
  if (language.startsWith(QLatin1String("pseudo"))) {
    auto* translator = new PseudoTranslator(language.endsWith(QLatin1String("rtl")), &application);
    translator->load_english();
    QCoreApplication::installTranslator(translator);
    return;
  }
  // English first, for its plurals and for what another language does not have yet; the last one installed is
  // asked first.
  auto* english = new QTranslator(&application);
  if (english->load(QStringLiteral("neuroshard_en"), QString::fromLatin1(folder)))
    QCoreApplication::installTranslator(english);
  const QLocale locale = language.isEmpty() ? QLocale() : QLocale(language);
  auto* own = new QTranslator(&application);
  if (locale.language() != QLocale::English &&
      own->load(locale, QStringLiteral("neuroshard"), QStringLiteral("_"), QString::fromLatin1(folder)))
    QCoreApplication::installTranslator(own);
}

}  // namespace neuroshard::ui
