// The button with which a chart or a table leaves the app: as a picture, as values, or both.
#pragma once

#include <QImage>
#include <QToolButton>
#include <functional>

namespace neuroshard::ui {

class Theme;

class ExportButton final : public QToolButton {
  Q_OBJECT
 public:
  // The export is made on request; without a picture there are only values. `file_name` is
  // suggested, without ending.
  ExportButton(const Theme& theme, const QString& title, const QString& file_name,
               std::function<QString()> csv, std::function<QImage()> picture, QWidget* parent = nullptr);

 private:
  void export_picture();
  void export_csv();

  QString file_name_;
  std::function<QString()> csv_;
  std::function<QImage()> picture_;
};

}  // namespace neuroshard::ui
