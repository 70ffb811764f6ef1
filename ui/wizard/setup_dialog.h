// The set-up assistant: from the first start to the loss falling. Can be run again at any time; then what is
// there is kept unless it is changed.
#pragma once

#include <QDialog>
#include <vector>

#include "ui/wizard/setup_page.h"

class QLabel;
class QPushButton;
class QStackedWidget;

namespace neuroshard::ui {

class SetupDialog final : public QDialog {
  Q_OBJECT
 public:
  // `services` outlives it. `draft` is what is known before.
  SetupDialog(SetupServices& services, SetupDraft draft, QWidget* parent = nullptr);
  ~SetupDialog() override;

  // The choices, once accepted.
  const SetupDraft& draft() const { return draft_; }
  // Proposes it on the page that asks what to train on.
  void propose(const QString& invitation);

 Q_SIGNALS:
  void theme_chosen(neuroshard::ui::ThemeChoice choice);

 protected:
  void reject() override;

 private:
  void show_page(int index);
  int needed_page(int index, int step) const;
  void next();
  void back();
  void update_buttons();

  SetupDraft draft_;
  std::vector<SetupPage*> pages_;
  QLabel *step_, *title_, *intro_;
  QStackedWidget* stack_;
  QPushButton *back_, *next_, *cancel_;
  bool busy_ = false;
};

}  // namespace neuroshard::ui
