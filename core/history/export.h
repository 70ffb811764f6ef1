// The series of a history as files for other programs. Every value appears once, in the finest bucket that is still kept.
//
//   csv          a table: series,step,steps,values,least,most,mean
//   jsonl        the same, one object a line
//   tensorboard  a folder with one event file: the mean of each bucket at its first step. The history has no time for a
//                step, so all events have the time of the export.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/history/series_store.h"
#include "core/storage/file_env.h"

namespace neuroshard::history {

enum class ExportFormat : std::uint8_t { Csv, Jsonl, TensorBoard };

// InvalidArgument names the formats.
Expected<ExportFormat> parse_export_format(std::string_view name);
std::vector<std::string> export_format_names();
// "history.csv", "history.jsonl", "history-tensorboard".
std::string export_file_name(ExportFormat format);

struct SeriesSource {
  std::vector<std::string> names;
  // As SeriesStore::query() on branch 0.
  std::function<Expected<std::vector<Bucket>>(const std::string& name, std::int64_t from, std::int64_t to)>
      query;
};

// All buckets of one series, ascending, without overlap; the newest are the finest.
Expected<std::vector<Bucket>> all_buckets(const SeriesSource& source, const std::string& name);

struct ExportCount {
  std::uint64_t series = 0, rows = 0, bytes = 0;
};
// Writes a new file or folder at `path`; a failed export leaves nothing. Memory: the rows of all series, for TensorBoard; else
// one series. Errors: AlreadyExists, NotFound (there is nothing recorded yet), Cancelled (looked at before each series),
// Denied, Exhausted, Io.
Expected<ExportCount> export_history(storage::FileEnv& env, const SeriesSource& source, ExportFormat format,
                                     const std::string& path, WallTime now, const CancelToken& cancel = {});

}  // namespace neuroshard::history
