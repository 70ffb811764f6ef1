// The services of the set-up assistant, from this machine and its neuroshardd.
#pragma once

#include <QString>

#include "app/gui/background.h"
#include "ui/wizard/setup_services.h"

namespace neuroshard::gui {

class MachineSetup final : public ui::SetupServices {
 public:
  // `program` is neuroshardd; empty when it is missing; every run then fails with that reason.
  MachineSetup(QString program, QString default_folder, Background& background);

  QString default_folder() const override { return default_folder_; }
  QString sample_text() const override { return sample_text_; }
  ui::MachineInfo machine() const override;
  void look_at(QObject* context, const QString& folder,
               std::function<void(const ui::FolderInfo&)> then) override;
  void run(QObject* context, const QStringList& arguments, const QByteArray& input,
           std::function<void(ui::CommandOutcome)> then) override;

 private:
  QString program_, default_folder_, sample_text_;
  Background& background_;
};

// Blocks: not on the UI thread. The wallet's id is not in it.
ui::FolderInfo look_at_folder(const QString& folder);

}  // namespace neuroshard::gui
