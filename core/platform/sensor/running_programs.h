// Which programs run. Linux: /proc; elsewhere unknown.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace neuroshard::platform {

// Those of `listed` that run now, as they are written there. A name fits the file name of a program or its
// process name, in any case, with or without ".exe" (Windows programs under Wine). Nothing about other
// programs is kept. Unknown when the system does not tell.  `root` stands for "/", for tests.
// Cost: two small files per process: not on the core thread.
std::optional<std::vector<std::string>> running_programs(const std::vector<std::string>& listed,
                                                         const std::string& root = "/");

}  // namespace neuroshard::platform
