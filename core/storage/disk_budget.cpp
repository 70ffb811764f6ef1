#include "core/storage/disk_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace neuroshard::storage {
namespace {

constexpr std::uint64_t kibi = 1u << 10, mebi = 1u << 20,
                        no_limit = std::numeric_limits<std::uint64_t>::max();
constexpr int deepest = 8;

std::string text_of(std::uint64_t bytes) {
  return bytes < 10 * mebi ? fmt::format("{} KiB", bytes / kibi) : fmt::format("{} MiB", bytes / mebi);
}

// Rounded up.
std::string least_text(std::uint64_t bytes) {
  const std::uint64_t unit = bytes < 10 * mebi ? kibi : mebi;
  return text_of((bytes + unit - 1) / unit * unit);
}

std::uint64_t less(std::uint64_t from, std::uint64_t bytes) {
  return from - std::min(from, bytes);
}

// excluded: a full path. Links are followed at depth 0 only.
std::uint64_t bytes_below(FileEnv& files, const std::string& path, const std::string& excluded, int depth) {
  const auto entries = files.list(path);
  if (!entries.ok() || depth > deepest) return 0;
  std::uint64_t bytes = 0;
  for (const DirectoryEntry& entry : *entries) {
    if (entry.is_link && depth > 0) continue;
    const std::string below = path + "/" + entry.name;
    if (!entry.is_directory)
      bytes += entry.size;
    else if (below != excluded)
      bytes += bytes_below(files, below, excluded, depth + 1);
  }
  return bytes;
}

Error no_room(std::string why) {
  return make_error(ErrorCode::Exhausted, std::move(why));
}

// Neither another day nor free space helps.
Error limit_too_small(const char* setting, std::uint64_t limit, std::uint64_t wanted) {
  return no_room(fmt::format("{} is {}, and a round needs at least {}: raise it", setting, text_of(limit),
                             least_text(wanted)));
}

}  // namespace

std::uint64_t tree_bytes(FileEnv& files, const std::string& path) {
  return bytes_below(files, path, {}, 0);
}

DiskBudget::DiskBudget(FileEnv& files, const Clock& clock, Logger& logger, DiskBudgetOptions options,
                       const DiskLimits& limits, PeriodCount count)
    : files_(files),
      clock_(clock),
      logger_(logger),
      options_(std::move(options)),
      limits_(limits),
      day_(std::move(count)),
      free_(no_limit) {}

Expected<std::shared_ptr<DiskBudget>> DiskBudget::open(FileEnv& files, const Clock& clock, Logger& logger,
                                                       DiskBudgetOptions options, const DiskLimits& limits) {
  const std::string path = options.folder + "/writes.day";
  NS_ASSIGN_OR_RETURN(PeriodCount count,
                      PeriodCount::open(files, path, "NSWD", "this day's writes", utc_day(clock.wall_now())));
  return std::shared_ptr<DiskBudget>(
      new DiskBudget(files, clock, logger, std::move(options), limits, std::move(count)));
}

void DiskBudget::set_limits(const DiskLimits& limits) {
  const std::lock_guard lock(mutex_);
  limits_ = limits;
}

Expected<void> DiskBudget::check(std::uint64_t bytes) const {
  const std::lock_guard lock(mutex_);
  if (!measured_) return {};
  const std::uint64_t wanted = bytes + reserved_, budget = limits_.written_a_day;
  if (budget != 0 && budget < wanted) return limit_too_small("daily_write_budget", budget, wanted);
  if (limits_.space != 0 && limits_.space < wanted)
    return limit_too_small("disk_limit", limits_.space, wanted);
  const std::uint64_t left = less(less(budget, day_.used(utc_day(clock_.wall_now()))), unwritten_);
  if (budget != 0 && left < wanted)
    return no_room(
        fmt::format("today's write budget of {} has no room for another {}: the node goes on after midnight "
                    "(UTC), or when daily_write_budget is larger",
                    text_of(budget), text_of(wanted)));
  if (limits_.space != 0 && less(limits_.space, named_ + held_ + kept_) < wanted)
    return no_room(
        fmt::format("the disk limit of {} has no room for another {}: raise disk_limit, or delete pinned "
                    "checkpoints or text",
                    text_of(limits_.space), text_of(wanted)));
  return has_free(wanted);
}

Expected<void> DiskBudget::check_free(std::uint64_t bytes) const {
  const std::lock_guard lock(mutex_);
  return measured_ ? has_free(bytes) : Expected<void>();
}

Expected<void> DiskBudget::has_free(std::uint64_t bytes) const {
  if (free_ == no_limit || free_ >= options_.least_free + bytes) return {};
  return no_room(
      fmt::format("the disk of {} has no room for another {} beside the {} that stay free: free some space",
                  options_.folder, text_of(bytes), text_of(options_.least_free)));
}

void DiskBudget::reserve(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  reserved_ = bytes;
}

void DiskBudget::count_for_day(std::uint64_t bytes) {
  const auto kept = day_.add(bytes, utc_day(clock_.wall_now()));
  if (!kept.ok() && !failed_)
    logger_.warning("disk", "the count of this day's writes is not on the disk: " + kept.error().describe());
  failed_ = !kept.ok();
}

void DiskBudget::wrote(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  reserved_ = less(reserved_, bytes);
  named_ += bytes;
  if (free_ != no_limit) free_ = less(free_, bytes);
  count_for_day(bytes);
}

void DiskBudget::hold(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  held_ += bytes;
  unwritten_ += bytes;
  if (free_ != no_limit) free_ = less(free_, bytes);
}

void DiskBudget::wrote_held(std::uint64_t bytes, std::uint64_t first) {
  const std::lock_guard lock(mutex_);
  unwritten_ = less(unwritten_, first);
  count_for_day(bytes);
}

void DiskBudget::give_back(std::uint64_t bytes, std::uint64_t unwritten) {
  const std::lock_guard lock(mutex_);
  held_ = less(held_, bytes);
  unwritten_ = less(unwritten_, unwritten);
  if (free_ != no_limit) free_ += bytes;
}

std::uint64_t DiskBudget::written_today() const {
  const std::lock_guard lock(mutex_);
  return day_.used(utc_day(clock_.wall_now()));
}

std::uint64_t DiskBudget::space_used() const {
  const std::lock_guard lock(mutex_);
  return named_ + held_;
}

void DiskBudget::count(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  count_for_day(bytes);
}

void DiskBudget::written_at_least(std::int32_t day, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t used = day_.used(utc_day(clock_.wall_now()));
  if (day == day_.period() && bytes > used) static_cast<void>(day_.add(bytes - used, day).ok());
}

void DiskBudget::measure() {
  const std::string excluded =
      options_.excluded.empty() ? std::string() : options_.folder + "/" + options_.excluded;
  const std::uint64_t named = bytes_below(files_, options_.folder, excluded, 0);
  const std::uint64_t kept = options_.kept_of_excluded ? options_.kept_of_excluded() : 0;
  const auto free = files_.free_bytes(options_.folder);
  const std::lock_guard lock(mutex_);
  measured_ = true;
  named_ = named;
  kept_ = kept;
  free_ = free.ok() ? *free : no_limit;
}

void DiskBudget::save() {
  const std::lock_guard lock(mutex_);
  if (const auto saved = day_.save(utc_day(clock_.wall_now())); !saved.ok())
    logger_.warning("disk", "the count of this day's writes is not saved: " + saved.error().describe());
}

}  // namespace neuroshard::storage
