// Parts of measure_peers: what connections cost that nobody uses or that mean harm, and raw TCP.
#pragma once

#include <cstddef>

namespace neuroshard::testing {

// Each prints its figures and returns the exit code.
int measure_idle(int peers, int seconds);
int measure_connections(int number);
int measure_limit(int bytes_per_second);

// Time for so many pieces of net::chunk_bytes through a plain TCP connection of the loopback interface.
double tcp_seconds(std::size_t pieces);

}  // namespace neuroshard::testing
