#include "core/platform/heap.h"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace neuroshard::platform {

void keep_heap_small() {
#if defined(__GLIBC__)
  // Two arenas: one for the computing thread and its helpers, one for the rest.
  ::mallopt(M_ARENA_MAX, 2);
#endif
}

void trim_heap() {
#if defined(__GLIBC__)
  ::malloc_trim(0);
#endif
}

}  // namespace neuroshard::platform
