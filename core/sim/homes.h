// Homes that lend computers, for simulated plans: their hardware and lines, and when each is there.
//
// Sessions have Weibull lengths with a shape below 1, as sessions of volunteers and peers have (Stutzbach, Rejaie 2006): many
// are short, and who has been there long stays longer. The same options give the same homes on every machine: what libm
// computes is rounded.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/chain.h"

namespace neuroshard::sim {

struct Session {
  std::int64_t from = 0, to = 0;  // seconds since the start
};

struct Home {
  plan::PlanPeer peer;            // what it has
  plan::PlanPeer declared;        // what it says it has
  std::vector<Session> sessions;  // ascending, not empty; the first may begin before the start
};

struct HomesOptions {
  std::size_t nodes = 100;         // that are there at the end, on average
  std::size_t nodes_at_start = 0;  // grows evenly from here; 0: as many as at the end
  double hours = 24;
  double leaving_per_hour = 0.2;  // part of the nodes that are there
  double returning = 0;           // part of those that leave and come back
  double away_hours = 1;          // until then, on average
  double inflated = 0;            // part of the nodes that declare ten times their speed and memory
  double speed_decades = 3;       // between the slowest and the fastest
  double line_least = 10, line_most = 1'000;  // Mbit/s up
  std::uint32_t peers_per_owner = 1;
  std::uint64_t seed = 1;
};
// leaving_per_hour 0: nobody leaves.
std::vector<Home> make_homes(const HomesOptions& options);

}  // namespace neuroshard::sim
