#include "core/storage/period_count.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "core/base/bytes.h"
#include "core/base/check.h"

namespace neuroshard::storage {
namespace {

//   offset  size  content, little-endian
//   0       4     magic
//   4       4     period
//   8       8     bytes
//   16      4     period that the clock went back from; only while there is one
//   20      8     its bytes
constexpr std::size_t magic_bytes = 4, file_bytes = 16, file_bytes_with_later = 28;
constexpr std::uint64_t piece = 16u << 20;

std::uint64_t sum(std::uint64_t used, std::uint64_t bytes) {
  return used + std::min(bytes, std::numeric_limits<std::uint64_t>::max() - piece - used);
}

}  // namespace

std::int32_t utc_day(WallTime wall) {
  return static_cast<std::int32_t>(std::chrono::floor<std::chrono::days>(wall.time_since_epoch()).count());
}

Expected<PeriodCount> PeriodCount::open(storage::FileEnv& files, std::string path, std::string magic,
                                        const std::string& what, std::int32_t now) {
  NS_CHECK(magic.size() == magic_bytes);
  PeriodCount count(files, std::move(path), std::move(magic));
  count.period_ = now;
  if (!files.exists(count.path_)) return count;
  NS_ASSIGN_OR_RETURN(const Bytes bytes, read_file(files, count.path_, file_bytes_with_later));
  const bool has_later = bytes.size() == file_bytes_with_later;
  if ((bytes.size() != file_bytes && !has_later) ||
      as_text(ByteSpan(bytes).first(magic_bytes)) != count.magic_) {
    return make_error(
        ErrorCode::Corrupt,
        fmt::format("{} is not a count of {}; remove it and the count starts at zero", count.path_, what));
  }
  count.period_ = load_le<std::int32_t>(bytes.data() + 4);
  count.used_ = count.written_ = load_le<std::uint64_t>(bytes.data() + 8);
  if (has_later)
    count.later_ = Later{load_le<std::int32_t>(bytes.data() + 16), load_le<std::uint64_t>(bytes.data() + 20)};
  const bool was_wrong = std::int64_t{count.period_} - now > most_periods_ahead;
  count.roll(now);
  // Else the next start would count it again, for its own period.
  if (was_wrong) static_cast<void>(count.write(count.used_));
  return count;
}

// A clock that was far behind jumps forward once it is right. One that goes on to the next period was right before.
void PeriodCount::find_later(std::int32_t now) {
  const std::int64_t forward = std::int64_t{now} - period_;
  if (!later_ || forward < 1) return;
  const bool is_near = std::int64_t{later_->period} - now <= most_periods_ahead;
  if (forward > 1 && is_near) {
    period_ = later_->period;
    used_ = later_->used;
    written_ = tried_ = 0;
  }
  if (forward == 1 || is_near) later_.reset();
}

void PeriodCount::roll(std::int32_t now) {
  find_later(now);
  const std::int64_t ahead = std::int64_t{period_} - now;
  if (ahead >= 0 && ahead <= most_periods_ahead) return;
  if (ahead < 0) {
    used_ = written_ = tried_ = 0;
    kept_ = {};
  } else if (!later_) {
    later_ = Later{period_, used_};
  }
  period_ = now;
}

Expected<void> PeriodCount::write(std::uint64_t value) {
  Bytes bytes(magic_.begin(), magic_.end());
  append_le(bytes, period_);
  append_le(bytes, value);
  if (later_) {
    append_le(bytes, later_->period);
    append_le(bytes, sum(later_->used, value - used_));  // written ahead as well
  }
  kept_ = write_file_atomic(*files_, path_, bytes);
  if (kept_.ok()) written_ = value;
  tried_ = kept_.ok() ? 0 : value;
  return kept_;
}

Expected<void> PeriodCount::add(std::uint64_t bytes, std::int32_t now) {
  roll(now);
  used_ = sum(used_, bytes);
  if (later_) later_->used = sum(later_->used, bytes);
  if (used_ <= std::max(written_, tried_)) return kept_;
  return write(used_ + piece);
}

Expected<void> PeriodCount::save(std::int32_t now) {
  roll(now);
  return write(used_);
}

std::uint64_t PeriodCount::used(std::int32_t now) {
  roll(now);
  return used_;
}

}  // namespace neuroshard::storage
