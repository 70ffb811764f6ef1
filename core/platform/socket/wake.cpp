#include "core/platform/socket/wake.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

namespace neuroshard::platform {

Expected<Wake> Wake::make() {
  const int descriptor = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (descriptor < 0) return make_error(ErrorCode::Exhausted, "this process has no descriptors left");
  return Wake(descriptor);
}

Wake::Wake(Wake&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

Wake::~Wake() {
  if (descriptor_ >= 0) close(descriptor_);
}

void Wake::set() const {
  const std::uint64_t one = 1;
  static_cast<void>(!write(descriptor_, &one, sizeof one));  // full: it is readable all the same
}

void Wake::clear() const {
  std::uint64_t count = 0;
  static_cast<void>(!read(descriptor_, &count, sizeof count));
}

}  // namespace neuroshard::platform
