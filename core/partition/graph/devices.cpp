#include "core/partition/graph/devices.h"

#include <algorithm>

namespace neuroshard::partition {

std::vector<DeviceKind> kinds_of(const std::vector<Device>& devices) {
  std::vector<DeviceKind> kinds;
  for (const Device& device : devices) {
    const auto known = std::find_if(kinds.begin(), kinds.end(),
                                    [&](const DeviceKind& kind) { return kind.device == device; });
    if (known == kinds.end()) {
      kinds.push_back({device, 1});
    } else {
      ++known->count;
    }
  }
  return kinds;
}

Device best_of(const std::vector<Device>& devices) {
  Device best = devices.front();
  for (const Device& device : devices) {
    best.work_factor = std::min(best.work_factor, device.work_factor);
    best.io_factor = std::min(best.io_factor, device.io_factor);
    best.memory = std::max(best.memory, device.memory);
    best.stream_factor = std::min(best.stream_factor, device.stream_factor);
  }
  return best;
}

}  // namespace neuroshard::partition
