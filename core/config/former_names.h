// Names that settings had in earlier versions. Files, flags and the environment may still use them.
#pragma once

#include "core/config/settings_table.h"

namespace neuroshard::config {

struct FormerName {
  Setting id;
  const char* name;
};
inline constexpr FormerName former_names[] = {
    {Setting::CheckpointDailyWriteBudget, "checkpoint_daily_write_budget"},
};

}  // namespace neuroshard::config
