// The signals by which a terminal, a service manager or a person asks a program to stop.
#pragma once

#include <signal.h>

namespace neuroshard::platform {

// SIGTERM, and those of SIGINT and SIGHUP that this program does not ignore. Its starter had it ignore them so that it
// outlives a terminal (nohup) or Ctrl-C (the & of a script). Ask before the first handler is installed.
sigset_t stop_signals();

}  // namespace neuroshard::platform
