// A listening socket on 127.0.0.1 that bounds how many connections are open at the same time, the silent ones
// included: a program that opens a thousand of them must not cost the process its file descriptors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "core/base/expected.h"

namespace neuroshard::platform {

class LoopbackListener {
 public:
  // Listens at once, on a port that the system chooses.  Errors: Io.
  static Expected<std::unique_ptr<LoopbackListener>> open(std::size_t max_connections);
  virtual ~LoopbackListener() = default;

  virtual std::uint16_t port() const = 0;
  // Blocks until stop(): gives each connection (a non-blocking socket, owned by the receiver from then on) to
  // `take`, and closes at once those beyond the bound. A place is free again when either side has shut the
  // connection down.  Threads: one at a time.
  virtual void serve(const std::function<void(int descriptor)>& take) = 0;
  virtual void stop() = 0;                  // threads: any
  virtual std::size_t refused() const = 0;  // connections beyond the bound so far; threads: any
};

}  // namespace neuroshard::platform
