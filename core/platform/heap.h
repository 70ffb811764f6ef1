// The C library's heap, kept small: a program with a hard memory limit can't leave freed memory resident.
#pragma once

namespace neuroshard::platform {

// Few arenas: each keeps what its threads have freed. To be called once, before threads allocate. No effect
// on C libraries without this knob.
void keep_heap_small();

// Gives freed memory back to the system; for the moments after something large is gone. Milliseconds.
void trim_heap();

}  // namespace neuroshard::platform
