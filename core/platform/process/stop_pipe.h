// The signals of stop_signals.h as something that can be read: for programs with an event loop of their own. The
// handler writes one byte; nothing else happens in it.
#pragma once

#include "core/base/expected.h"

namespace neuroshard::platform {

// At most one at a time in a process (a second one is Busy): signal handlers belong to the process.
class StopPipe {
 public:
  static Expected<StopPipe> install();
  StopPipe(StopPipe&& other) noexcept;
  StopPipe& operator=(StopPipe&&) = delete;
  ~StopPipe();  // puts the former handlers back

  // Becomes readable with the first signal. Owned by this object.
  int descriptor() const { return read_end_; }

 private:
  explicit StopPipe(int read_end) : read_end_(read_end) {}
  int read_end_ = -1;
};

}  // namespace neuroshard::platform
