// How many files and sockets this process may have open at the same time, and their numbers.
#pragma once

#include <cstddef>

namespace neuroshard::platform {

// Raises the soft limit to the hard one, at most 65,536. Systems begin with a soft limit of 1024 for programs
// that use select(); a node with many connections needs more. Best effort.
void raise_open_file_limit();
// The soft limit now; the largest number where there is none, or the system does not tell.
std::size_t open_file_limit();

// The same file at a number beyond those that select() can handle, which keeps the low ones free for
// libraries that use it; `descriptor` is closed. `descriptor` itself where the limit allows no higher number.
int move_high(int descriptor);
// Another descriptor of the same file, high where that is possible; -1: none is left.
int duplicate_high(int descriptor);

// Whether the next file to open gets a number that select() can handle, with a quarter of them to spare for
// files that other threads open meanwhile. Ask before a call of a library that uses select().
bool next_file_suits_select();

}  // namespace neuroshard::platform
