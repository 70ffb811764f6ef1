// How often and how much others may ask of the chain's methods (docs/protocol/peers.md, "Limits of the methods").
#pragma once

#include "core/net/request_limiter.h"

namespace neuroshard::runtime {

namespace detail {
inline constexpr std::size_t kibi = 1024, mebi = 1024 * kibi;
}

// A member's items, of which a proposal has up to 4 MiB. A newcomer has a few statements to make.
inline constexpr net::RequestLimits post_limits{
    .per_second = 100, .burst = 1000, .bytes_per_second = 8 * detail::mebi, .bytes_burst = 64 * detail::mebi};
inline constexpr net::RequestLimits post_limits_of_stranger{.per_second = 2,
                                                            .burst = 40,
                                                            .bytes_per_second = 64 * detail::kibi,
                                                            .bytes_burst = 5 * detail::mebi,
                                                            .strangers_factor = 16};
inline constexpr net::RequestLimits chain_request_limits{
    .per_second = 20, .burst = 200, .bytes_per_second = 4 * detail::mebi, .bytes_burst = 64 * detail::mebi};
inline constexpr net::RequestLimits piece_limits{.per_second = 500,
                                                 .burst = 5000,
                                                 .bytes_per_second = 128 * detail::mebi,
                                                 .bytes_burst = 1024 * detail::mebi};
inline constexpr std::size_t piece_request_bytes = 256, chain_request_bytes = 512;

}  // namespace neuroshard::runtime
