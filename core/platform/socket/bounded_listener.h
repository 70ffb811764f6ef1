// A listening TCP socket that bounds how many connections are open at the same time, the silent ones
// included: a program that opens a thousand of them must not cost the process its file descriptors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "core/base/expected.h"
#include "core/platform/socket/ip_address.h"

namespace neuroshard::platform {

struct ConnectionBounds {
  std::size_t all = 0;        // open at the same time
  std::size_t per_group = 0;  // of them, from one address group (prefix_group)
};

class BoundedListener {
 public:
  // Listens at once; the system chooses a port in place of 0. The address "::" takes IPv4 connections too.
  // Errors: Busy (the port is taken), Denied (a port below 1024), InvalidArgument (no address of this
  // machine), Io.
  static Expected<std::unique_ptr<BoundedListener>> open(const Endpoint& at, ConnectionBounds bounds);
  virtual ~BoundedListener() = default;

  virtual Endpoint endpoint() const = 0;  // with the port that was given
  // Blocks until stop(): gives each connection (a non-blocking socket, owned by the receiver from then on) to
  // `take`, and closes at once those beyond the bounds. A place is free again when either side has shut the
  // connection down.  Threads: one at a time.
  virtual void serve(const std::function<void(int descriptor)>& take) = 0;
  virtual void stop() = 0;                  // threads: any
  virtual std::size_t refused() const = 0;  // connections beyond the bounds so far; threads: any
};

}  // namespace neuroshard::platform
