#include "core/net/traffic_meter.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace neuroshard::net {
namespace {

constexpr std::uint64_t packet_payload = 1448, packet_overhead = 52;
constexpr std::uint64_t tls_record = 16u << 10, tls_overhead = 22;
constexpr std::uint64_t message_headers = 150;  // measured: an answer of gRPC with its hello, HPACK warm
constexpr double quarter_second = 0.25;         // of the rate passes at once: a small call does not wait
constexpr double least_burst = 32u << 10;

std::optional<TokenBucket> bucket_of(std::uint64_t rate, MonotonicTime now) {
  if (rate == 0) return std::nullopt;
  const double per_second = static_cast<double>(rate);
  return TokenBucket(per_second, std::max(per_second * quarter_second, std::min(least_burst, per_second)),
                     now);
}

}  // namespace

std::uint64_t wire_bytes(std::uint64_t payload) {
  const std::uint64_t sealed =
      payload + message_headers + tls_overhead * ((payload + tls_record - 1) / tls_record);
  return sealed + packet_overhead * ((sealed + packet_payload - 1) / packet_payload);
}

TrafficMeter::TrafficMeter(const Clock& clock, Logger& logger, TrafficLimits limits, TrafficCap* cap)
    : clock_(clock),
      logger_(logger),
      up_(bucket_of(limits.up, clock.monotonic_now())),
      down_(bucket_of(limits.down, clock.monotonic_now())),
      small_up_(up_),
      cap_(cap) {}

TrafficMeter::~TrafficMeter() {
  if (cap_ == nullptr) return;
  if (const auto saved = cap_->save(clock_.wall_now()); !saved.ok())
    logger_.warning("swarm", "the month's traffic is not written: " + saved.error().describe());
}

void TrafficMeter::set_limits(TrafficLimits limits, std::uint64_t month) {
  const MonotonicTime now = clock_.monotonic_now();
  const std::lock_guard lock(mutex_);
  up_ = small_up_ = bucket_of(limits.up, now);
  down_ = bucket_of(limits.down, now);
  if (cap_ != nullptr) cap_->set_limit(month);
}

void TrafficMeter::count(std::uint64_t bytes) {
  if (cap_ == nullptr) return;
  const auto written = cap_->count(bytes, clock_.wall_now());
  if (!written.ok() && !failed_)
    logger_.warning("swarm", "the month's traffic is not written: " + written.error().describe());
  failed_ = !written.ok();
}

Expected<void> TrafficMeter::check() {
  const std::lock_guard lock(mutex_);
  return check_locked();
}

Expected<void> TrafficMeter::check_locked() {
  if (cap_ == nullptr) return {};
  const WallTime now = clock_.wall_now();
  if (cap_->left(now) > 0) {
    logged_ = false;
    return {};
  }
  std::string message = fmt::format(
      "this month's data is used up (monthly_data); a new month begins on {:%Y-%m-%d} (UTC)",
      fmt::gmtime(std::chrono::system_clock::to_time_t(
          std::chrono::time_point_cast<std::chrono::system_clock::duration>(TrafficCap::next_month(now)))));
  if (!logged_) logger_.warning("swarm", message + ": nothing is exchanged with peers until then");
  logged_ = true;
  return make_error(ErrorCode::Exhausted, std::move(message));
}

void TrafficMeter::count_strangers(std::uint64_t bytes) {
  if (cap_ == nullptr) return;
  // Without room on the disk the count holds in memory; the count of all bytes says so in the log.
  static_cast<void>(cap_->count_strangers(bytes, clock_.wall_now()));
}

void TrafficMeter::of_stranger(std::uint64_t payload) {
  const std::lock_guard lock(mutex_);
  count_strangers(wire_bytes(payload));
}

Expected<void> TrafficMeter::check_strangers() {
  const std::lock_guard lock(mutex_);
  return check_strangers_locked();
}

Expected<void> TrafficMeter::check_strangers_locked() {
  NS_RETURN_IF_ERROR(check_locked());
  if (cap_ == nullptr || cap_->left_to_strangers(strangers_month_share, clock_.wall_now()) > 0) return {};
  return make_error(ErrorCode::Exhausted,
                    "this node has no data left today for nodes that are no members (monthly_data); try "
                    "another node, or again tomorrow");
}

Expected<Duration> TrafficMeter::sent(std::uint64_t payload) {
  const std::lock_guard lock(mutex_);
  NS_RETURN_IF_ERROR(check_locked());
  const std::uint64_t bytes = wire_bytes(payload);
  Duration wait{0};
  if (up_) {
    const MonotonicTime now = clock_.monotonic_now();
    const bool small = payload <= small_bytes;
    TokenBucket& queue = small ? *small_up_ : *up_;
    // The debt is more than the longest wait repays: one more message would wait longer.
    if (const Duration behind = queue.take(0, now); behind > longest_wait)
      return make_error(ErrorCode::Exhausted,
                        "too much waits to be sent at the speed that upload_limit allows; try again later");
    wait = queue.take(static_cast<double>(bytes), now);
    if (small) static_cast<void>(up_->take(static_cast<double>(bytes), now));
  }
  sent_ += bytes;
  count(bytes);
  return wait;
}

Duration TrafficMeter::received(std::uint64_t payload) {
  const std::uint64_t bytes = wire_bytes(payload);
  const std::lock_guard lock(mutex_);
  received_ += bytes;
  count(bytes);
  return down_ ? down_->take(static_cast<double>(bytes), clock_.monotonic_now()) : Duration(0);
}

void TrafficMeter::received_unasked(std::uint64_t payload) {
  const std::uint64_t bytes = wire_bytes(payload);
  const std::lock_guard lock(mutex_);
  received_ += bytes;
  count(bytes);
  if (down_) down_->take_within(static_cast<double>(bytes), longest_unasked, clock_.monotonic_now());
}

Expected<Duration> TrafficMeter::relayed(std::uint64_t bytes) {
  bytes += packet_overhead * ((bytes + packet_payload - 1) / packet_payload);
  const std::lock_guard lock(mutex_);
  const MonotonicTime now = clock_.monotonic_now();
  received_ += bytes;
  sent_ += bytes;
  count(2 * bytes);
  count_strangers(2 * bytes);
  Duration wait{0};
  for (auto* const way : {&up_, &down_})
    if (*way) wait = std::max(wait, (*way)->take(static_cast<double>(bytes), now));
  NS_RETURN_IF_ERROR(check_strangers_locked());
  return wait;
}

Duration TrafficMeter::behind() {
  const std::lock_guard lock(mutex_);
  return down_ ? down_->take(0, clock_.monotonic_now()) : Duration(0);
}

TrafficView TrafficMeter::view() {
  const std::lock_guard lock(mutex_);
  TrafficView view{sent_, received_, std::nullopt};
  if (cap_ != nullptr) {
    const std::uint64_t left = cap_->left(clock_.wall_now());
    if (left != std::numeric_limits<std::uint64_t>::max()) view.left = left;
  }
  return view;
}

}  // namespace neuroshard::net
