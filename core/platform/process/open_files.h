// How many files and sockets this process may have open at the same time.
#pragma once

namespace neuroshard::platform {

// Raises the soft limit to the hard one, at most 65,536. Systems begin with a soft limit of 1024 for programs
// that use select(); a node with many connections needs more. Best effort.
void raise_open_file_limit();

// Whether the next file to open gets a number below half of what select() can handle; the other half is for
// files that other threads open meanwhile. Ask before a call of a library that uses select().
bool next_file_suits_select();

}  // namespace neuroshard::platform
