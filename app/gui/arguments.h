// The command line of the app. Parsed before anything else exists, so that --help needs no display.
#pragma once

#include <QString>
#include <QStringList>

namespace neuroshard::gui {

struct Arguments {
  QString data_directory;  // --data-dir: this one, without asking and without remembering it
  QString text;            // --text: a folder or file of text to train on, in addition to the data
  QString link;            // a neuroshard: link, or empty
  bool minimized = false;  // starts in the tray (autostart)
  bool setup = false;      // opens the wizard
  bool quit = false;       // tells the running app to quit
  bool help = false, version = false;
  QString error;  // what is wrong with the command line; empty = nothing
};

// Without the program's name. Never fails: `error` has the problem.
Arguments parse_arguments(const QStringList& arguments);
QString help_text();

}  // namespace neuroshard::gui
