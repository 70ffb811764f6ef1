#include "core/history/series_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/check.h"

namespace neuroshard::history {
namespace {

constexpr std::int64_t live = 0;  // the branch of what happened
// Rows are trimmed after this many values of a series, so that trimming costs little per value.
constexpr std::uint32_t trim_every = 512;

bool valid_name(std::string_view name) {
  if (name.empty() || name.size() > max_name_bytes) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  });
}

Bucket merge(const Bucket& a, const Bucket& b) {
  Bucket sum = a;
  sum.count += b.count;
  sum.min = std::min(a.min, b.min);
  sum.max = std::max(a.max, b.max);
  sum.mean = (a.mean * static_cast<double>(a.count) + b.mean * static_cast<double>(b.count)) /
             static_cast<double>(sum.count);
  return sum;
}

// The finest level whose buckets cover [from, to] in at most `most`.
std::uint32_t level_for(std::int64_t from, std::int64_t to, std::uint32_t most) {
  std::uint32_t level = 0;
  while ((to >> level) - (from >> level) + 1 > std::int64_t{most}) ++level;
  return level;
}

}  // namespace

Expected<std::unique_ptr<SeriesStore>> SeriesStore::open(storage::Database& database) {
  std::unique_ptr<SeriesStore> store(new SeriesStore(database));
  NS_RETURN_IF_ERROR(store->load());
  return store;
}

SeriesStore::~SeriesStore() = default;

Expected<void> SeriesStore::load() {
  NS_ASSIGN_OR_RETURN(storage::Statement select,
                      database_.prepare("SELECT id, name, first, last FROM series LIMIT ?1"));
  select.bind(1, static_cast<std::int64_t>(max_series));
  while (true) {
    NS_ASSIGN_OR_RETURN(const bool row, select.step());
    if (!row) break;
    Series series;
    series.id = select.column_int(0);
    series.first = select.column_int(2);
    series.last = select.column_int(3);
    NS_RETURN_IF_ERROR(load_open(series));
    series_.emplace(std::string(select.column_text(1)), std::move(series));
  }
  return {};
}

Expected<void> SeriesStore::load_open(Series& series) {
  NS_ASSIGN_OR_RETURN(
      storage::Statement newest,
      database_.prepare("SELECT position, count, sum, min, max FROM buckets WHERE series = ?1 AND "
                        "branch = 0 AND level = ?2 ORDER BY position DESC LIMIT 1"));
  series.open.assign(levels, {});
  for (std::uint32_t level = 0; level < levels; ++level) {
    newest.bind(1, series.id);
    newest.bind(2, std::int64_t{level});
    NS_ASSIGN_OR_RETURN(const bool row, newest.step());
    if (row) {
      series.open[level] = {newest.column_int(0), newest.column_int(1), newest.column_double(2),
                            newest.column_double(3), newest.column_double(4)};
    }
    newest.reset();
  }
  return {};
}

Expected<SeriesStore::Series*> SeriesStore::find_or_create(std::string_view name, std::int64_t at) {
  const auto found = series_.find(name);
  if (found != series_.end()) return &found->second;
  if (!valid_name(name)) {
    return make_error(
        ErrorCode::InvalidArgument,
        "A series' name has 1 to 64 characters: lower-case letters, digits, dots and underscores.");
  }
  if (series_.size() >= max_series) {
    return make_error(ErrorCode::Exhausted,
                      fmt::format("There are {} series already; no more are kept.", max_series));
  }
  Series series;
  for (const auto& [other, existing] : series_) series.id = std::max(series.id, existing.id);
  ++series.id;
  series.first = at;
  series.last = -1;
  series.open.assign(levels, {});
  return &series_.emplace(std::string(name), std::move(series)).first->second;
}

Expected<void> SeriesStore::append(std::string_view name, std::int64_t at, double value) {
  if (at < 0 || at > max_position || !std::isfinite(value)) {
    return make_error(ErrorCode::InvalidArgument, "A series takes finite values at steps from 0 on.");
  }
  NS_ASSIGN_OR_RETURN(Series * series, find_or_create(name, at));
  if (at < series->last) {
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("The series \"{}\" is at step {} already; step {} comes too late.", name,
                                  series->last, at));
  }
  for (std::uint32_t level = 0; level < levels; ++level) {
    Cell& cell = series->open[level];
    const std::int64_t position = at >> level;
    if (cell.position != position) {
      if (cell.position >= 0) close(*series, level);
      cell = {position, 0, 0.0, value, value};
    }
    ++cell.count;
    cell.sum += value;
    cell.min = std::min(cell.min, value);
    cell.max = std::max(cell.max, value);
  }
  if (series->last < 0) series->first = at;
  series->last = at;
  series->dirty = true;
  ++series->since_trim;
  return {};
}

// The open bucket of a level is complete: it waits for the next flush.
void SeriesStore::close(const Series& series, std::uint32_t level) {
  if (!series.dirty) return;  // nothing was added since it was last written
  pending_.push_back({series.id, level, series.open[level]});
  if (pending_.size() <= max_pending) return;
  const std::size_t excess = max_pending / 4;
  pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(excess));
  dropped_ += excess;
}

Expected<void> SeriesStore::write_all() {
  NS_ASSIGN_OR_RETURN(
      storage::Statement header,
      database_.prepare("INSERT OR REPLACE INTO series (id, name, first, last) VALUES (?1, ?2, ?3, ?4)"));
  NS_ASSIGN_OR_RETURN(
      storage::Statement bucket,
      database_.prepare("INSERT OR REPLACE INTO buckets (series, branch, level, position, count, sum, "
                        "min, max) VALUES (?1, 0, ?2, ?3, ?4, ?5, ?6, ?7)"));
  const auto write = [&bucket](std::int64_t series, std::uint32_t level, const Cell& cell) {
    bucket.bind(1, series);
    bucket.bind(2, std::int64_t{level});
    bucket.bind(3, cell.position);
    bucket.bind(4, cell.count);
    bucket.bind(5, cell.sum);
    bucket.bind(6, cell.min);
    bucket.bind(7, cell.max);
    return bucket.run();
  };
  for (const Pending& pending : pending_)
    NS_RETURN_IF_ERROR(write(pending.series, pending.level, pending.cell));
  for (const auto& [name, series] : series_) {
    if (!series.dirty) continue;
    header.bind(1, series.id);
    header.bind(2, name);
    header.bind(3, series.first);
    header.bind(4, series.last);
    NS_RETURN_IF_ERROR(header.run());
    for (std::uint32_t level = 0; level < levels; ++level) {
      NS_RETURN_IF_ERROR(write(series.id, level, series.open[level]));
    }
    if (series.since_trim >= trim_every) NS_RETURN_IF_ERROR(trim(series));
  }
  return {};
}

Expected<void> SeriesStore::trim(const Series& series) {
  NS_ASSIGN_OR_RETURN(
      storage::Statement statement,
      database_.prepare("DELETE FROM buckets WHERE series = ?1 AND branch = 0 AND level = ?2 AND position <= "
                        "(SELECT position FROM buckets WHERE series = ?1 AND branch = 0 AND level = ?2 "
                        "ORDER BY position DESC LIMIT 1 OFFSET ?3)"));
  for (std::uint32_t level = 0; level < levels; ++level) {
    statement.bind(1, series.id);
    statement.bind(2, std::int64_t{level});
    statement.bind(3, std::int64_t{buckets_per_level});
    NS_RETURN_IF_ERROR(statement.run());
  }
  return {};
}

Expected<void> SeriesStore::flush() {
  const bool dirty =
      std::any_of(series_.begin(), series_.end(), [](const auto& entry) { return entry.second.dirty; });
  if (!dirty && pending_.empty()) return {};
  NS_ASSIGN_OR_RETURN(storage::Transaction transaction, storage::Transaction::begin(database_));
  NS_RETURN_IF_ERROR(write_all());
  NS_RETURN_IF_ERROR(transaction.commit());
  pending_.clear();
  for (auto& [name, series] : series_) {
    series.dirty = false;
    if (series.since_trim >= trim_every) series.since_trim = 0;
  }
  return {};
}

// The finest stored level, not finer than `level`, that still reaches back to `from`.
Expected<std::uint32_t> SeriesStore::usable_level(const Series& series, std::uint32_t level,
                                                  std::int64_t from, std::int64_t branch) {
  NS_ASSIGN_OR_RETURN(
      storage::Statement oldest,
      database_.prepare("SELECT MIN(position) FROM buckets WHERE series = ?1 AND branch = ?2 AND "
                        "level = ?3"));
  level = std::min(level, levels - 1);
  for (; level + 1 < levels; ++level) {
    oldest.bind(1, series.id);
    oldest.bind(2, branch);
    oldest.bind(3, std::int64_t{level});
    NS_ASSIGN_OR_RETURN(const bool row, oldest.step());
    const bool reaches = row && !oldest.column_is_null(0) && oldest.column_int(0) <= (from >> level);
    oldest.reset();
    if (reaches) break;
  }
  return level;
}

Expected<std::vector<Bucket>> SeriesStore::query(std::string_view name, std::int64_t from, std::int64_t to,
                                                 std::uint32_t max_buckets, std::int64_t branch) {
  std::vector<Bucket> result;
  const auto found = series_.find(name);
  if (found == series_.end()) return result;
  // A disk that takes no writes still answers: the chart then ends at what was stored.
  static_cast<void>(flush());
  const Series& series = found->second;
  if (branch == live) {
    from = std::max(from, series.first);
    to = std::min(to, series.last);
  }
  from = std::clamp<std::int64_t>(from, 0, max_position);
  to = std::clamp<std::int64_t>(to, -1, max_position);
  if (from > to) return result;

  const std::uint32_t wanted = level_for(from, to, std::clamp(max_buckets, 1u, max_query_buckets));
  std::uint32_t stored = std::min(wanted, levels - 1);
  if (branch == live) {
    NS_ASSIGN_OR_RETURN(stored, usable_level(series, wanted, from, branch));
  }
  const std::uint32_t shown = std::max(wanted, stored);
  NS_ASSIGN_OR_RETURN(
      storage::Statement select,
      database_.prepare("SELECT position, count, sum, min, max FROM buckets WHERE series = ?1 AND "
                        "branch = ?2 AND level = ?3 AND position BETWEEN ?4 AND ?5 ORDER BY position"));
  select.bind(1, series.id);
  select.bind(2, branch);
  select.bind(3, std::int64_t{stored});
  select.bind(4, from >> stored);
  select.bind(5, to >> stored);
  while (true) {
    NS_ASSIGN_OR_RETURN(const bool row, select.step());
    if (!row) break;
    const std::int64_t count = std::max<std::int64_t>(1, select.column_int(1));
    Bucket bucket;
    bucket.width = std::int64_t{1} << shown;
    bucket.first = (select.column_int(0) << stored) >> shown << shown;
    bucket.count = static_cast<std::uint64_t>(count);
    bucket.mean = select.column_double(2) / static_cast<double>(count);
    bucket.min = select.column_double(3);
    bucket.max = select.column_double(4);
    if (!result.empty() && result.back().first == bucket.first) {
      result.back() = merge(result.back(), bucket);
    } else {
      result.push_back(bucket);
    }
  }
  return result;
}

std::vector<std::string> SeriesStore::names() const {
  std::vector<std::string> result;
  for (const auto& [name, series] : series_) result.push_back(name);
  return result;
}

}  // namespace neuroshard::history
