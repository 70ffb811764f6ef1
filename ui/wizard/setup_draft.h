// The choices in the assistant so far.
#pragma once

#include <QString>
#include <QStringList>

#include "ui/theme/theme.h"
#include "ui/wizard/setup_services.h"

namespace neuroshard::ui {

enum class LimitsPreset { Keep, Light, Balanced, Max };

struct SetupDraft {
  ThemeChoice theme = ThemeChoice::System;
  QString language;  // empty = the desktop's
  QString folder;
  FolderInfo folder_info;
  QStringList words;    // of a wallet that was made just now, until they are confirmed; wiped then
  QString made_wallet;  // its id
  QString made_in;      // the folder of that wallet
  LimitsPreset limits = LimitsPreset::Balanced;
  QString text_folder;
  QString invitation;  // a link to a network, to be looked at and confirmed afterwards; empty = none
  bool autostart = false;
  bool again = false;  // the assistant was opened again: what is there is kept unless changed
  // The node joins a network in `folder`: only the wallet and the limits are asked for.
  bool joining = false;
};

// Overwrites what is in memory.
void wipe(QString* text);
void wipe(QStringList* texts);

// A path as one word of a shell's command line.
QString shell_word(const QString& path);

}  // namespace neuroshard::ui
