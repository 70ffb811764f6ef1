#include "ui/widgets/export_button.h"

#include <QBuffer>
#include <QMenu>

#include "ui/theme/theme.h"
#include "ui/widgets/csv.h"

namespace neuroshard::ui {

ExportButton::ExportButton(const Theme& theme, const QString& title, const QString& file_name,
                           std::function<QString()> csv, std::function<QImage()> picture, QWidget* parent)
    : QToolButton(parent), file_name_(file_name), csv_(std::move(csv)), picture_(std::move(picture)) {
  setIcon(theme.icon(QStringLiteral("export")));
  setToolTip(tr("Export"));
  setAccessibleName(tr("%1: export").arg(title));
  setPopupMode(QToolButton::InstantPopup);
  auto* menu = new QMenu(this);
  if (picture_) {
    menu->addAction(tr("Picture (PNG) …"), this, &ExportButton::export_picture)
        ->setObjectName(QStringLiteral("export_png"));
  }
  menu->addAction(tr("Values (CSV) …"), this, &ExportButton::export_csv)
      ->setObjectName(QStringLiteral("export_csv"));
  setMenu(menu);
}

void ExportButton::export_picture() {
  QBuffer buffer;
  buffer.open(QIODevice::WriteOnly);
  picture_().save(&buffer, "PNG");
  save_text_as(this, file_name_ + QStringLiteral(".png"), tr("Pictures (*.png)"), buffer.data());
}

void ExportButton::export_csv() {
  save_text_as(this, file_name_ + QStringLiteral(".csv"), tr("Tables (*.csv)"), csv_().toUtf8());
}

}  // namespace neuroshard::ui
