// The end of a program's input as a sign that whoever started it is gone: a pipe closes with its last writer,
// however that one died. POSIX.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/base/expected.h"
#include "core/platform/socket/stream_socket.h"

namespace neuroshard::platform {

// Watches on a thread of its own while the object lives; what arrives before the end is read and dropped.
class InputEnd {
 public:
  static constexpr int standard_input = 0;

  // ended: called once, when `descriptor` has no more to read (also when it is closed or can't be read).
  // late: called once, when this object still lives `patience` after that. Both on the watching thread.
  // `descriptor` stays the caller's and outlives this.  Errors: Io.
  static Expected<std::unique_ptr<InputEnd>> watch(int descriptor, std::function<void()> ended,
                                                   Duration patience, std::function<void()> late);
  InputEnd(const InputEnd&) = delete;
  InputEnd& operator=(const InputEnd&) = delete;
  ~InputEnd();  // neither is called afterwards

 private:
  InputEnd() = default;
  void run(int descriptor);

  std::function<void()> ended_, late_;
  Duration patience_{};
  std::pair<StreamSocket, StreamSocket> stop_;  // closing the first wakes the thread
  std::unique_ptr<Executor> thread_;
};

}  // namespace neuroshard::platform
