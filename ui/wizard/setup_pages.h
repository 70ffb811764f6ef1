// The pages of the assistant, in order: appearance → folder → identity → (words → confirm) → limits → start.
#pragma once

#include <vector>

#include "ui/wizard/setup_page.h"

class QCheckBox;
class QComboBox;
class QLabel;
class QLineEdit;
class QPlainTextEdit;
class QRadioButton;

namespace neuroshard::ui {

// Language and theme.
class LookPage final : public SetupPage {
  Q_OBJECT
 public:
  LookPage(SetupDraft& draft, SetupServices& services);
  QString title() const override { return tr("Welcome"); }
  QString intro() const override;
  bool needed() const override { return !draft_.joining; }

 Q_SIGNALS:
  void theme_chosen(neuroshard::ui::ThemeChoice choice);  // tried out at once
};

// The folder of the data, with its free space.
class FolderPage final : public SetupPage {
  Q_OBJECT
 public:
  FolderPage(SetupDraft& draft, SetupServices& services);
  QString title() const override { return tr("Where the data is kept"); }
  QString intro() const override;
  bool needed() const override { return !draft_.joining; }
  bool complete() const override;
  void entered() override;
  void leave(std::function<void(bool)> done) override;

 private:
  void look();
  void show_info(const FolderInfo& info);
  QLineEdit* folder_;
  QLabel* space_;
  bool known_ = false;  // what is shown is about the folder that is written there
};

// Keep the wallet that is there, make one, or bring one back.
class IdentityPage final : public SetupPage {
  Q_OBJECT
 public:
  IdentityPage(SetupDraft& draft, SetupServices& services);
  QString title() const override { return tr("Your identity"); }
  QString intro() const override;
  bool complete() const override;
  void entered() override;
  void leave(std::function<void(bool)> done) override;

 private:
  void create(std::function<void(bool)> done);
  void restore(std::function<void(bool)> done);
  QRadioButton *keep_, *create_, *restore_;
  QPlainTextEdit* secret_;
};

// The twelve words, to be written down.
class WordsPage final : public SetupPage {
  Q_OBJECT
 public:
  WordsPage(SetupDraft& draft, SetupServices& services);
  QString title() const override { return tr("Write down these words"); }
  QString intro() const override;
  QString next_text() const override { return tr("I have written them down"); }
  bool needed() const override { return !draft_.words.isEmpty(); }
  bool opens_step() const override { return false; }  // of the identity
  void entered() override;

 private:
  std::vector<QLabel*> labels_;
};

// Two of them, asked back.
class ConfirmPage final : public SetupPage {
  Q_OBJECT
 public:
  ConfirmPage(SetupDraft& draft, SetupServices& services);
  QString title() const override { return tr("Check the words"); }
  QString intro() const override;
  bool needed() const override { return !draft_.words.isEmpty(); }
  bool opens_step() const override { return false; }  // of the identity
  bool complete() const override;
  void entered() override;
  void leave(std::function<void(bool)> done) override;

 private:
  struct Question {
    QLabel* label = nullptr;
    QLineEdit* answer = nullptr;
    int word = 0;  // from 0
  };
  std::vector<Question> questions_;
};

// The share of the machine.
class LimitsPage final : public SetupPage {
  Q_OBJECT
 public:
  LimitsPage(SetupDraft& draft, SetupServices& services);
  QString title() const override { return tr("Limits for this computer"); }
  QString intro() const override;
  QString next_text() const override;
  void entered() override;
  void leave(std::function<void(bool)> done) override;

 private:
  void write(std::vector<std::pair<QString, QString>> settings, std::function<void(bool)> done);
  QRadioButton *keep_, *light_, *balanced_, *max_;
};

// The training text or invitation, and whether to start with the session.
class StartPage final : public SetupPage {
  Q_OBJECT
 public:
  StartPage(SetupDraft& draft, SetupServices& services);
  QString title() const override { return tr("What to train on"); }
  QString intro() const override;
  bool needed() const override { return !draft_.joining; }
  QString next_text() const override { return tr("Start"); }
  bool complete() const override;
  void entered() override;
  void leave(std::function<void(bool)> done) override;

 private:
  QLineEdit* text_;
  QRadioButton *solo_, *sample_, *join_;
  QLineEdit* invitation_;
  QCheckBox* autostart_;
};

// The values of a preset on this machine: names and values for `neuroshardd settings set`.
std::vector<std::pair<QString, QString>> preset_settings(LimitsPreset preset, const MachineInfo& machine);

}  // namespace neuroshard::ui
