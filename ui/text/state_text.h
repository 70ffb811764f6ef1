// The state of a node as icon, word and colour, with the reason: the same for the header, the tray and
// notifications.
#pragma once

#include <QCoreApplication>
#include <QString>
#include <QStringList>
#include <optional>

#include "core/node/snapshot.h"

namespace neuroshard::ui {

// The meaning of a colour; always beside an icon and a word.
enum class Tone { Working, Info, Paused, Warning, Danger };
QString tone_name(Tone tone);  // "working", as the style sheet has it

// The six states of the tray, told apart by shape.
enum class DisplayState { Training, Idle, Paused, Syncing, Warning, Error };
QString tray_icon_name(DisplayState state);  // in resources/icons

// The life of the core while none answers, as the app knows it: "Starting", "Needs attention: the core
// crashed".
struct CoreLife {
  DisplayState display = DisplayState::Error;
  QString word;
  QString reason;
};

struct StateText {
  DisplayState display = DisplayState::Idle;
  Tone tone = Tone::Info;
  QString icon;               // in resources/icons
  QString word;               // "Training", "Paused", "Core not running"
  QString reason;             // one line: why; empty = the word is enough
  QStringList reasons;        // every active one, in full
  bool can_override = false;  // "run anyway" would end the pause
};

// Whether the core takes a start of the training: none runs, also after one that failed.
bool can_start_training(const node::Snapshot& snapshot);

class StateWords {
  Q_DECLARE_TR_FUNCTIONS(neuroshard::ui::StateWords)
 public:
  // snapshot may be null (none has come yet); attached: a core answers. `life` is used while none does.
  static StateText describe(const node::Snapshot* snapshot, bool attached,
                            const std::optional<CoreLife>& life, WallTime now);
  // The effect of "Finish": this node ends after the step, or after the round if others count on its work.
  static QString finish_action(const node::Snapshot* snapshot);
  // In safe mode a node of a network has no peers and no rounds, although it has joined; empty: that is not so.
  static QString without_network(const node::Snapshot& snapshot);
  static QString severity(node::Severity severity);
  static Tone tone(node::Severity severity);

 private:
  static StateText without_core(const std::optional<CoreLife>& life);
  static StateText of_state(const node::Snapshot& snapshot, WallTime now);
  static StateText paused(const node::Snapshot& snapshot, WallTime now);
  static QString idle_reason(const node::TrainingView& training);
  static QString training_reason(const node::Snapshot& snapshot, WallTime now);
};

}  // namespace neuroshard::ui
