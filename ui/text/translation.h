// The app's words in another language. Catalogues stand in resources/translations and are built into the
// program; what has no catalogue is shown in English. "pseudo" and "pseudo-rtl" are for tests: every text
// longer and accented, the second one mirrored too, so that a text that is not translatable, or a label
// without room, is seen at once.
#pragma once

#include <QString>
#include <QTranslator>
#include <vector>

class QCoreApplication;

namespace neuroshard::ui {

// language: as the user's choice has it; empty = the system's. Call once, before the first widget. The
// environment variable NEUROSHARD_LANGUAGE, given by the caller, is passed the same way.
void install_translation(QCoreApplication& application, const QString& language);

// The languages that a catalogue is built in for, by their own names, English first: what a person can choose
// from.
struct Language {
  QString code;  // "en", "pt_BR"
  QString name;
};
std::vector<Language> languages();

// Makes "[Ĺöšš šö ƒåŕ ···]" of "Loss so far": accents, brackets, and a third more length; %1, %n, & and line
// breaks are kept.
QString pseudo(const QString& text);

class PseudoTranslator final : public QTranslator {
  Q_OBJECT
 public:
  PseudoTranslator(bool mirrored, QObject* parent) : QTranslator(parent), mirrored_(mirrored) {}
  bool load_english();  // for plurals
  bool isEmpty() const override { return false; }
  QString translate(const char* context, const char* source, const char* disambiguation,
                    int n) const override;

 private:
  bool mirrored_;
  QTranslator english_;
};

}  // namespace neuroshard::ui
