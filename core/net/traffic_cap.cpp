#include "core/net/traffic_cap.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace neuroshard::net {
namespace {

//   offset  size  content, little-endian
//   0       4     "NSTC"
//   4       4     month: 12 · year + month − 1
//   8       8     bytes
//   16      8     of them, bytes of strangers; a file without them counts none
constexpr std::string_view magic = "NSTC";
constexpr std::size_t file_bytes = 24, file_bytes_without_strangers = 16;
constexpr std::uint64_t piece = 16u << 20;

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
  TrafficCap cap(files, std::move(path), limit);
  cap.month_ = month_of(now);
  if (!files.exists(cap.path_)) return cap;
  NS_ASSIGN_OR_RETURN(const Bytes bytes, storage::read_file(files, cap.path_, file_bytes));
  if ((bytes.size() != file_bytes && bytes.size() != file_bytes_without_strangers) ||
      as_text(ByteSpan(bytes).first(magic.size())) != magic) {
    return make_error(ErrorCode::Corrupt, fmt::format("{} is not a count of this month's traffic; remove it "
                                                      "and the count starts at zero",
                                                      cap.path_));
  }
  cap.month_ = load_le<std::int32_t>(bytes.data() + 4);
  cap.used_ = cap.written_ = load_le<std::uint64_t>(bytes.data() + 8);
  if (bytes.size() == file_bytes)
    cap.strangers_ = load_le<std::uint64_t>(bytes.data() + file_bytes_without_strangers);
  cap.roll(now);
  return cap;
}

void TrafficCap::roll(WallTime now) {
  const std::int32_t month = month_of(now);
  if (month <= month_) return;
  month_ = month;
  used_ = written_ = strangers_ = 0;
}

Expected<void> TrafficCap::write(std::uint64_t value, std::uint64_t of_strangers) {
  Bytes bytes(magic.begin(), magic.end());
  append_le(bytes, month_);
  append_le(bytes, value);
  append_le(bytes, of_strangers);
  NS_RETURN_IF_ERROR(storage::write_file_atomic(*files_, path_, bytes));
  written_ = value;
  return {};
}

Expected<void> TrafficCap::count(std::uint64_t bytes, WallTime now) {
  roll(now);
  used_ += std::min(bytes, std::numeric_limits<std::uint64_t>::max() - piece - used_);
  if (used_ <= written_) return {};
  return write(used_ + piece, strangers_);
}

void TrafficCap::count_strangers(std::uint64_t bytes, WallTime now) {
  roll(now);
  strangers_ += std::min(bytes, std::numeric_limits<std::uint64_t>::max() - piece - strangers_);
}

std::uint64_t TrafficCap::left_to_strangers(double share, WallTime now) {
  roll(now);
  if (limit_ == 0) return std::numeric_limits<std::uint64_t>::max();
  const auto today = date(now);
  const std::chrono::year_month_day_last last{today.year() / today.month() / std::chrono::last};
  const double days = static_cast<unsigned>(today.day()), of = static_cast<unsigned>(last.day());
  const auto allowed = static_cast<std::uint64_t>(static_cast<double>(limit_) * share * days / of);
  return allowed > strangers_ ? allowed - strangers_ : 0;
}

Expected<void> TrafficCap::save(WallTime now) {
  roll(now);
  return write(used_, strangers_);
}

std::uint64_t TrafficCap::used(WallTime now) {
  roll(now);
  return used_;
}

std::uint64_t TrafficCap::left(WallTime now) {
  roll(now);
  if (limit_ == 0) return std::numeric_limits<std::uint64_t>::max();
  return limit_ > used_ ? limit_ - used_ : 0;
}

WallTime TrafficCap::next_month(WallTime now) {
  const auto day = date(now);
  const std::chrono::year_month next = day.year() / day.month() + std::chrono::months(1);
  return WallTime(std::chrono::sys_days(next / std::chrono::day(1)));
}

}  // namespace neuroshard::net
