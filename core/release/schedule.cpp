#include "core/release/schedule.h"

#include <algorithm>
#include <memory>

#include "core/base/bytes.h"
#include "core/base/rng.h"
#include "core/crypto/entropy.h"

namespace neuroshard::release {
namespace {

std::chrono::milliseconds up_to(std::chrono::milliseconds most, const Chance& chance) {
  return std::chrono::milliseconds(chance(static_cast<std::uint64_t>(most.count())));
}

}  // namespace

Chance system_chance() {
  Hash256 seed{};
  crypto::SystemEntropy().fill(seed);
  return [rng = std::make_shared<Rng>(seed)](std::uint64_t bound) { return rng->below(bound); };
}

WallTime first_look(std::optional<WallTime> last, WallTime now) {
  if (!last || *last > now) return now;
  return std::max(now, *last + shortest_pause);
}

WallTime next_look(WallTime now, const Chance& chance) {
  return now + shortest_pause + up_to(longest_delay, chance);
}

WallTime look_after_start(std::optional<WallTime> chosen, WallTime now, const Chance& chance) {
  if (!chosen || *chosen <= now) return now + up_to(start_spread, chance);
  return *chosen > now + shortest_pause + longest_delay ? next_look(now, chance) : *chosen;
}

}  // namespace neuroshard::release
