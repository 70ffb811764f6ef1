// The tables of series and events in state.db. Versions are the database's user_version.
#pragma once

namespace neuroshard::history {

// Creates them in an empty database; the first migration of state.db.
extern const char schema_v1[];

}  // namespace neuroshard::history
