#include "core/net/traffic_cap.h"

#include <limits>

namespace neuroshard::net {
namespace {

std::chrono::year_month_day date(WallTime now) {
  return std::chrono::floor<std::chrono::days>(now);
}

std::int32_t month_of(WallTime now) {
  const auto day = date(now);
  return 12 * static_cast<int>(day.year()) + static_cast<std::int32_t>(static_cast<unsigned>(day.month())) -
         1;
}

}  // namespace

Expected<TrafficCap> TrafficCap::open(storage::FileEnv& files, std::string path, std::uint64_t limit,
                                      WallTime now) {
  NS_ASSIGN_OR_RETURN(storage::PeriodCount count,
                      storage::PeriodCount::open(files, path, "NSTC", "this month's traffic", month_of(now)));
  NS_ASSIGN_OR_RETURN(storage::PeriodCount strangers,
                      storage::PeriodCount::open(files, path + ".strangers", "NSTS",
                                                 "this month's traffic of strangers", month_of(now)));
  return TrafficCap(std::move(count), std::move(strangers), limit);
}

Expected<void> TrafficCap::count(std::uint64_t bytes, WallTime now) {
  return count_.add(bytes, month_of(now));
}

Expected<void> TrafficCap::count_strangers(std::uint64_t bytes, WallTime now) {
  return strangers_.add(bytes, month_of(now));
}

std::uint64_t TrafficCap::left_to_strangers(double share, WallTime now) {
  if (limit_ == 0) return std::numeric_limits<std::uint64_t>::max();
  const auto today = date(now);
  const std::chrono::year_month_day_last last{today.year() / today.month() / std::chrono::last};
  const double days = static_cast<unsigned>(today.day()), of = static_cast<unsigned>(last.day());
  const auto allowed = static_cast<std::uint64_t>(static_cast<double>(limit_) * share * days / of);
  const std::uint64_t used = strangers_.used(month_of(now));
  return allowed > used ? allowed - used : 0;
}

Expected<void> TrafficCap::save(WallTime now) {
  NS_RETURN_IF_ERROR(strangers_.save(month_of(now)));
  return count_.save(month_of(now));
}

std::uint64_t TrafficCap::used(WallTime now) {
  return count_.used(month_of(now));
}

std::uint64_t TrafficCap::left(WallTime now) {
  if (limit_ == 0) return std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t used = count_.used(month_of(now));
  return limit_ > used ? limit_ - used : 0;
}

WallTime TrafficCap::next_month(WallTime now) {
  const auto day = date(now);
  const std::chrono::year_month next = day.year() / day.month() + std::chrono::months(1);
  return WallTime(std::chrono::sys_days(next / std::chrono::day(1)));
}

}  // namespace neuroshard::net
