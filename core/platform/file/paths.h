// Where things are on this machine. Linux and the BSDs follow the XDG base directory specification; the
// branches for Windows and macOS are written down and not verified on a real system.
#pragma once

#include <functional>
#include <string>

#include "core/base/expected.h"

namespace neuroshard::platform {

// Reads an environment variable: empty when it is not set. Injected, so that tests choose it.
using Environment = std::function<std::string(const char* name)>;
// The process's own.
Environment process_environment();

// $XDG_DATA_HOME/neuroshard, ~/.local/share/neuroshard · %LOCALAPPDATA%\NeuroShard ·
// ~/Library/Application Support/NeuroShard. Not created. NotFound: there is no home directory.
Expected<std::string> default_data_directory(const Environment& environment);

// Private to this user and gone at logout where the system has such a place ($XDG_RUNTIME_DIR/neuroshard);
// else a folder of the temporary directory named by the user. Not created: the creator uses mode 0700 and
// checks the owner.
std::string runtime_directory(const Environment& environment);

// Absolute path of the running program, symbolic links resolved. Unavailable when the system does not tell.
Expected<std::string> executable_path();

}  // namespace neuroshard::platform
