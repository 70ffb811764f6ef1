// About this program: its purpose, version and licences.
#pragma once

#include <QDialog>

namespace neuroshard::ui {

class Theme;

class AboutDialog final : public QDialog {
  Q_OBJECT
 public:
  // `core_version`: of the attached core; empty = none.
  AboutDialog(const Theme& theme, const QString& app_version, const QString& core_version,
              QWidget* parent = nullptr);

 Q_SIGNALS:
  void news_wanted();  // the button "What is new"

 protected:
  void showEvent(QShowEvent* event) override;
};

}  // namespace neuroshard::ui
