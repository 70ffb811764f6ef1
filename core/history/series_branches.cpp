// Branches: the series after the restore of an earlier checkpoint.
#include <algorithm>

#include "core/history/series_store.h"

namespace neuroshard::history {
namespace {

// Copies every bucket of a series that reaches beyond `at` to another branch.
Expected<void> copy_tail(storage::Database& database, std::int64_t series, std::int64_t at,
                         std::int64_t branch) {
  NS_ASSIGN_OR_RETURN(
      storage::Statement copy,
      database.prepare("INSERT INTO buckets (series, branch, level, position, count, sum, min, max) "
                       "SELECT series, ?4, level, position, count, sum, min, max FROM buckets "
                       "WHERE series = ?1 AND branch = 0 AND level = ?2 AND position >= ?3"));
  for (std::uint32_t level = 0; level < levels; ++level) {
    copy.bind(1, series);
    copy.bind(2, std::int64_t{level});
    copy.bind(3, (at + 1) >> level);
    copy.bind(4, branch);
    NS_RETURN_IF_ERROR(copy.run());
  }
  return {};
}

Expected<std::int64_t> new_branch(storage::Database& database, std::int64_t at, std::int64_t time_ms) {
  NS_ASSIGN_OR_RETURN(storage::Statement insert,
                      database.prepare("INSERT INTO branches (after, time_ms) VALUES (?1, ?2)"));
  insert.bind(1, at);
  insert.bind(2, time_ms);
  NS_RETURN_IF_ERROR(insert.run());
  const std::int64_t id = database.last_insert_id();
  for (const char* const sql :
       {"DELETE FROM buckets WHERE branch > 0 AND branch <= ?1", "DELETE FROM branches WHERE id <= ?1"}) {
    NS_ASSIGN_OR_RETURN(storage::Statement trim, database.prepare(sql));
    trim.bind(1, id - std::int64_t{max_branches});
    NS_RETURN_IF_ERROR(trim.run());
  }
  return id;
}

}  // namespace

// Deletes what lies after `at` and rebuilds, level by level upwards, the bucket that `at` splits from the one
// below.
Expected<void> SeriesStore::cut(Series& series, std::int64_t at, std::int64_t branch) {
  if (branch > 0) NS_RETURN_IF_ERROR(copy_tail(database_, series.id, at, branch));
  NS_ASSIGN_OR_RETURN(
      storage::Statement remove,
      database_.prepare("DELETE FROM buckets WHERE series = ?1 AND branch = 0 AND level = ?2 AND "
                        "position >= ?3"));
  NS_ASSIGN_OR_RETURN(
      storage::Statement rebuild,
      database_.prepare("INSERT INTO buckets (series, branch, level, position, count, sum, min, max) "
                        "SELECT ?1, 0, ?2, ?3, SUM(count), SUM(sum), MIN(min), MAX(max) FROM buckets "
                        "WHERE series = ?1 AND branch = 0 AND level = ?2 - 1 AND "
                        "position BETWEEN ?3 * 2 AND ?3 * 2 + 1 HAVING COUNT(*) > 0"));
  for (std::uint32_t level = 0; level < levels; ++level) {
    const std::int64_t split = (at + 1) >> level;  // the first bucket with anything after `at`
    remove.bind(1, series.id);
    remove.bind(2, std::int64_t{level});
    remove.bind(3, split);
    NS_RETURN_IF_ERROR(remove.run());
    if (level == 0 || (split << level) == at + 1) continue;  // nothing at or before `at` is in it
    rebuild.bind(1, series.id);
    rebuild.bind(2, std::int64_t{level});
    rebuild.bind(3, split);
    NS_RETURN_IF_ERROR(rebuild.run());
  }
  NS_ASSIGN_OR_RETURN(storage::Statement header,
                      database_.prepare("UPDATE series SET last = ?2 WHERE id = ?1"));
  header.bind(1, series.id);
  header.bind(2, at < series.first ? std::int64_t{-1} : std::min(series.last, at));
  return header.run();
}

Expected<void> SeriesStore::truncate_after(std::int64_t at, const WallTime* keep_as_branch) {
  at = std::clamp<std::int64_t>(at, -1, max_position);
  NS_RETURN_IF_ERROR(flush());
  const bool nothing =
      std::none_of(series_.begin(), series_.end(), [at](const auto& s) { return s.second.last > at; });
  if (nothing) return {};
  {
    NS_ASSIGN_OR_RETURN(storage::Transaction transaction, storage::Transaction::begin(database_));
    std::int64_t branch = 0;
    if (keep_as_branch != nullptr) {
      NS_ASSIGN_OR_RETURN(branch, new_branch(database_, at, to_unix_ms(*keep_as_branch)));
    }
    for (auto& [name, series] : series_) {
      if (series.last > at) NS_RETURN_IF_ERROR(cut(series, at, branch));
    }
    NS_RETURN_IF_ERROR(transaction.commit());
  }
  series_.clear();
  return load();
}

Expected<std::vector<Branch>> SeriesStore::branches() {
  std::vector<Branch> result;
  NS_ASSIGN_OR_RETURN(storage::Statement select,
                      database_.prepare("SELECT id, after, time_ms FROM branches ORDER BY id DESC LIMIT ?1"));
  select.bind(1, std::int64_t{max_branches});
  while (true) {
    NS_ASSIGN_OR_RETURN(const bool row, select.step());
    if (!row) break;
    result.push_back({select.column_int(0), select.column_int(1), select.column_int(2)});
  }
  return result;
}

}  // namespace neuroshard::history
