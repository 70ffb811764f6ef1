// The C library's heap. A program with a hard memory limit can't leave freed memory resident; one that runs
// the same large computation over and over wants it to stay.
#pragma once

namespace neuroshard::platform {

// One arena: of several, each keeps what its threads have freed, and a burst of messages leaves gaps in all of
// them. At its end 16 MiB of free memory stay. Blocks of up to 8 MiB, so messages of peers and pieces of files,
// are taken from there: as mappings of their own, or with the end given back each time, the system would clear
// every page of every message anew (a fifth of the processor time of a stream). To be called early, before
// threads allocate; again is harmless. No effect on C libraries without these knobs.
void keep_heap_small();

// The opposite: what is freed stays with the process, up to the most that it has had at once, and threads that
// compute have a second arena; to be called before they do. Otherwise every run of a model gets fresh pages for
// its large results, and the system clears each. No effect where keep_heap_small() has none.
void keep_freed_memory();

// Gives freed memory back to the system; for the moments after something large is gone. Milliseconds.
void trim_heap();

}  // namespace neuroshard::platform
