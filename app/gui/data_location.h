// Where the data is, and whether it is there now: distinguishes a first run from a missing disk.
#pragma once

#include <QString>

namespace neuroshard::gui {

enum class DataState {
  FirstRun,  // nothing was ever chosen and the default place is empty: the wizard
  Ready,
  Missing,  // was chosen and is not there, or another directory is in its place: ask, never start anew
};

struct DataLocation {
  DataState state = DataState::FirstRun;
  QString path;
  QString problem;  // with Missing: what was found, for people
};

struct DataChoice {
  QString path;      // as chosen; empty = never
  QString instance;  // UUID of that directory; empty = not yet known
  QString fallback;  // the default place, used when nothing was chosen and a data directory is there
};

// Looks at the disk, which may take long: not on the UI thread.
DataLocation look_for_data(const DataChoice& choice);

// UUID of a data directory; empty when it cannot be read.
QString instance_of(const QString& data_directory);

}  // namespace neuroshard::gui
