#include "core/platform/process/heap.h"

#include <climits>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace neuroshard::platform {

void keep_heap_small() {
#if defined(__GLIBC__)
  ::mallopt(M_ARENA_MAX, 1);
  // Both, as setting either one ends the library's own adapting of the two.
  ::mallopt(M_MMAP_THRESHOLD, 8 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 16 << 20);
#endif
}

void keep_freed_memory() {
#if defined(__GLIBC__)
  ::mallopt(M_ARENA_MAX, 2);
  constexpr int largest_in_heap = 32 << 20;  // the C library's own limit for blocks that are no mappings
  ::mallopt(M_MMAP_THRESHOLD, largest_in_heap);
  ::mallopt(M_TRIM_THRESHOLD, INT_MAX);
#endif
}

void trim_heap() {
#if defined(__GLIBC__)
  ::malloc_trim(0);
#endif
}

}  // namespace neuroshard::platform
