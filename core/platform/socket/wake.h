// Wakes a thread that waits for descriptors (socket_wait.h).
#pragma once

#include "core/base/expected.h"

namespace neuroshard::platform {

class Wake {
 public:
  static Expected<Wake> make();
  Wake(Wake&& other) noexcept;
  Wake& operator=(Wake&&) = delete;
  ~Wake();

  // Readable from set() on, until clear(). Owned by this object.
  int descriptor() const { return descriptor_; }
  void set() const;    // threads: any
  void clear() const;  // threads: the waiting one

 private:
  explicit Wake(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

}  // namespace neuroshard::platform
