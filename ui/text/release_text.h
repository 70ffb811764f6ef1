// Texts about newer releases: for the settings and for the notice over the pages.
#pragma once

#include <QCoreApplication>
#include <QString>
#include <optional>

#include "core/base/clock.h"
#include "ui/text/state_text.h"

namespace neuroshard::ui {

// How this program came onto the computer, which decides how it is upgraded.
enum class InstallKind { Package, Portable, Other };

// The result of the last look.
enum class ReleaseFound { Nothing, Newest, Newer, Refused, NotReached };

struct ReleaseState {
  QString place;  // address; empty: this build has none
  bool on = false, looking = false;
  ReleaseFound found = ReleaseFound::Nothing;
  QString version;  // found there
  QString why;      // it was refused or not reached
  std::optional<WallTime> looked, next;
};

class ReleaseWords {
  Q_DECLARE_TR_FUNCTIONS(neuroshard::ui::ReleaseWords)
 public:
  struct Note {
    QString text;  // empty: nothing to say
    Tone tone = Tone::Info;
  };
  struct Notice {
    QString title, text;
  };
  static QString title();
  // The effect of switching on. `place` as in ReleaseState.
  static QString help(const QString& place);
  static Note note(const ReleaseState& state, WallTime now);
  static Notice notice(const ReleaseState& state, const QString& running, InstallKind kind);
};

}  // namespace neuroshard::ui
