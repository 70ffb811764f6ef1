#include "app/gui/arguments.h"

namespace neuroshard::gui {
namespace {

constexpr qsizetype longest_link = 4096;

// "--data-dir X" and "--data-dir=X".
bool take_value(const QStringList& all, qsizetype* at, const QString& name, QString* value, QString* error) {
  const QString& argument = all[*at];
  if (argument.startsWith(name + '=')) {
    *value = argument.mid(name.size() + 1);
  } else if (argument == name) {
    if (*at + 1 >= all.size()) {
      *error = QString("%1 needs a value; see --help").arg(name);
      return true;
    }
    *value = all[++*at];
  } else {
    return false;
  }
  if (value->isEmpty()) *error = QString("%1 needs a value; see --help").arg(name);
  return true;
}

}  // namespace

Arguments parse_arguments(const QStringList& all) {
  Arguments result;
  for (qsizetype i = 0; i < all.size() && result.error.isEmpty(); ++i) {
    const QString& argument = all[i];
    if (argument == "--help" || argument == "-h") {
      result.help = true;
    } else if (argument == "--version") {
      result.version = true;
    } else if (argument == "--minimized") {
      result.minimized = true;
    } else if (argument == "--setup") {
      result.setup = true;
    } else if (argument == "--quit") {
      result.quit = true;
    } else if (take_value(all, &i, "--data-dir", &result.data_directory, &result.error) ||
               take_value(all, &i, "--text", &result.text, &result.error)) {
      continue;
    } else if (argument.startsWith("neuroshard:", Qt::CaseInsensitive)) {
      if (!result.link.isEmpty()) result.error = "one link at a time; see --help";
      if (argument.size() > longest_link) result.error = "that link is too long";
      result.link = argument;
    } else {
      result.error = QString("unknown argument %1; see --help").arg(argument.left(100));
    }
  }
  return result;
}

QString help_text() {
  return QStringLiteral(
      "NeuroShard, the desktop app: see and control what your node does.\n\nUsage: neuroshard [OPTIONS] "
      "[neuroshard:LINK]\n\n  --data-dir PATH   use this data directory and do not remember it\n  --text "
      "PATH       a folder or file of text to train on, in addition to the data\n  --minimized       start "
      "in the tray, or minimised without one (used by autostart)\n  --setup           open the set-up "
      "assistant\n  --quit            ask the running app to quit\n  --version         print the version\n  "
      "--help            print this\n\nThe app starts the core (neuroshardd) in the background, or uses the "
      "one that runs. Closing the window does not\nstop it; Quit does, with a final checkpoint, if the app "
      "started it. Started a second time, the app shows the\nwindow of the first.\n\nExit codes: 0 success, "
      "1 no display or the app could not start, 64 wrong command line.\n\nThis program is free software "
      "under the GPL, version 3, because it uses Qt Charts; its own source is under the\nApache License "
      "2.0.\n");
}

}  // namespace neuroshard::gui
