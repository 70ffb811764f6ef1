// The peers that blocks are placed on, and the cost of a block on one of them.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace neuroshard::partition {

inline constexpr double unlimited = std::numeric_limits<double>::infinity();

// As a user or a measurement gives it.
struct Peer {
  std::string name;
  double speed = 1;              // work(v) / speed is the time of node v; > 0
  double memory = unlimited;     // bytes for parameters and activations
  double bandwidth = unlimited;  // bytes/s of its network link, each way; unlimited: as the graph prints
  double stream_bandwidth = 0;   // bytes/s at which parameters may be streamed; 0: they must fit
};

// A peer in the units of the graph. Equal devices are interchangeable.
struct Device {
  double work_factor = 1;            // time per unit of work
  double io_factor = 1;              // time per unit of tensor cost
  double memory = unlimited;         // bytes
  double stream_factor = unlimited;  // time per byte of streamed parameters; unlimited: not allowed

  bool operator==(const Device&) const = default;

  // io_in + work + overflow + io_out of a block. `held` = bytes of activations at the peak. Infinite when the
  // block does not fit: activations cannot be streamed, parameters only where stream_factor is finite.
  //   overflow = min(params, max(0, params + peak − M)) · stream_factor
  // (The usual print of the formula adds bytes to seconds; this is what its units allow.)
  double block_cost(double work, double io, double params, double held) const {
    const double cost = work * work_factor + io * io_factor;
    const double excess = params + held - memory;
    if (!(excess > 0)) return cost;
    if (held > memory || stream_factor == unlimited) return unlimited;
    return cost + (excess < params ? excess : params) * stream_factor;
  }
};

// Equal devices and how many there are of each; at most as many kinds as devices.
struct DeviceKind {
  Device device;
  std::uint32_t count = 0;
};
std::vector<DeviceKind> kinds_of(const std::vector<Device>& devices);

// The best value of any device of a list, in each respect separately: costs on it are lower bounds for all.
Device best_of(const std::vector<Device>& devices);

}  // namespace neuroshard::partition
