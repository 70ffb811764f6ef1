#include "core/history/schema.h"

namespace neuroshard::history {

// branch 0 is what happened; other branches are what a restored checkpoint set aside.
const char schema_v1[] = R"(
CREATE TABLE series (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  first INTEGER NOT NULL,
  last INTEGER NOT NULL
);
CREATE TABLE buckets (
  series INTEGER NOT NULL,
  branch INTEGER NOT NULL,
  level INTEGER NOT NULL,
  position INTEGER NOT NULL,
  count INTEGER NOT NULL,
  sum REAL NOT NULL,
  min REAL NOT NULL,
  max REAL NOT NULL,
  PRIMARY KEY (series, branch, level, position)
) WITHOUT ROWID;
CREATE TABLE branches (
  id INTEGER PRIMARY KEY,
  after INTEGER NOT NULL,
  time_ms INTEGER NOT NULL
);
CREATE TABLE events (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  time_ms INTEGER NOT NULL,
  level INTEGER NOT NULL,
  category TEXT NOT NULL,
  text TEXT NOT NULL
);
)";

}  // namespace neuroshard::history
