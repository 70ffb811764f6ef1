// The row "Look for new versions" of the settings: what it says. The app fills it, the settings page shows it.
#pragma once

#include <QObject>
#include <QString>

#include "ui/text/release_text.h"

namespace neuroshard::ui {

// Threads: ui.
class ReleaseView final : public QObject {
  Q_OBJECT
 public:
  using QObject::QObject;

  // Address of the place where releases are; empty: this build has none, and nothing can be switched on.
  const QString& place() const { return place_; }
  void set_place(const QString& place) { place_ = place; }
  const ReleaseWords::Note& note() const { return note_; }
  void set_note(const ReleaseWords::Note& note) {
    if (note.text == note_.text && note.tone == note_.tone) return;
    note_ = note;
    Q_EMIT changed();
  }

 Q_SIGNALS:
  void changed();

 private:
  QString place_;
  ReleaseWords::Note note_;
};

}  // namespace neuroshard::ui
