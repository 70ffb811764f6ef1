// Release notes in a dialog: those of one or more versions, newest first. Escape, Enter and the button close it.
#pragma once

#include <QDialog>
#include <vector>

#include "ui/models/release_notes.h"

class QScrollArea;

namespace neuroshard::ui {

class NewsDialog final : public QDialog {
  Q_OBJECT
 public:
  explicit NewsDialog(const std::vector<ReleaseNote>& notes, QWidget* parent = nullptr);

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  QScrollArea* area_;
};

}  // namespace neuroshard::ui
