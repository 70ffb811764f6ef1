// The C library's heap. A program with a hard memory limit can't leave freed memory resident; one that runs
// the same large computation over and over wants it to stay.
#pragma once

namespace neuroshard::platform {

// Few arenas: each keeps what its threads have freed. To be called once, before threads allocate. No effect
// on C libraries without this knob.
void keep_heap_small();

// The opposite: what is freed stays with the process, up to the most that it has had at once. Otherwise every
// run of a model gets fresh pages for its large results, and the system clears each. No effect where
// keep_heap_small() has none.
void keep_freed_memory();

// Gives freed memory back to the system; for the moments after something large is gone. Milliseconds.
void trim_heap();

}  // namespace neuroshard::platform
