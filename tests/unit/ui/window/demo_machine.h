// A computer for pictures of the set-up assistant.
#pragma once

#include <QDialog>
#include <QLineEdit>

#include "ui/wizard/setup_services.h"

namespace neuroshard::ui {

inline constexpr const char* twelve = "one two three four five six seven eight nine ten eleven twelve";

class DemoMachine final : public SetupServices {
 public:
  QString default_folder() const override { return QStringLiteral("/srv/neuroshard"); }
  QString sample_text() const override { return QStringLiteral("/usr/share/neuroshardd/sample-text"); }
  MachineInfo machine() const override { return {8, 16ull << 30}; }
  void look_at(QObject*, const QString&, std::function<void(const FolderInfo&)> then) override {
    then({true, {}, 50ull << 30, false, false, {}});
  }
  void run(QObject*, const QStringList&, const QByteArray&,
           std::function<void(CommandOutcome)> then) override {
    then({0, R"({"wallet_id":"26870dc7719c62a5"})", QByteArray("\nThe 12 words:\n\n  ") + twelve + "\n\n"});
  }
};

// Where the assistant asks for words of the wallet.
inline void answer_words(const QDialog& setup) {
  const QStringList words = QString::fromLatin1(twelve).split(u' ');
  for (auto* answer : setup.findChildren<QLineEdit*>())
    if (answer->isVisible() && answer->property("word").isValid())
      answer->setText(words[answer->property("word").toInt()]);
}

}  // namespace neuroshard::ui
