#include "core/history/export.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/history/event_file.h"

namespace neuroshard::history {
namespace {

constexpr struct {
  ExportFormat format;
  std::string_view name, file;
} formats[] = {{ExportFormat::Csv, "csv", "history.csv"},
               {ExportFormat::Jsonl, "jsonl", "history.jsonl"},
               {ExportFormat::TensorBoard, "tensorboard", "history-tensorboard"}};

constexpr std::size_t piece_bytes = std::size_t{1} << 20;  // written at a time

std::int64_t end_of(const Bucket& bucket) {
  return bucket.first + bucket.width;
}

std::string csv_row(const std::string& name, const Bucket& b) {
  return fmt::format("{},{},{},{},{},{},{}\n", name, b.first, b.width, b.count, b.min, b.max, b.mean);
}

// Names are [a-z0-9_.] and values finite, so nothing needs to be escaped.
std::string json_row(const std::string& name, const Bucket& b) {
  return fmt::format(R"({{"series":"{}","step":{},"steps":{},"values":{},"least":{},"most":{},"mean":{}}})"
                     "\n",
                     name, b.first, b.width, b.count, b.min, b.max, b.mean);
}

Expected<void> next_series(const CancelToken& cancel) {
  if (!cancel.cancelled()) return {};
  return make_error(ErrorCode::Cancelled, "The export of the history was stopped.");
}

class TableWriter {
 public:
  TableWriter(storage::WritableFile& file, ExportCount& count) : file_(file), count_(count) {}
  Expected<void> add(std::string_view text) {
    waiting_ += text;
    return waiting_.size() < piece_bytes ? Expected<void>() : flush();
  }
  Expected<void> flush() {
    count_.bytes += waiting_.size();
    NS_RETURN_IF_ERROR(file_.append(as_bytes(waiting_)));
    waiting_.clear();
    return {};
  }

 private:
  storage::WritableFile& file_;
  ExportCount& count_;
  std::string waiting_;
};

Expected<void> write_table(storage::FileEnv& env, const SeriesSource& source, ExportFormat format,
                           const std::string& path, const CancelToken& cancel, ExportCount* count) {
  const auto row = format == ExportFormat::Csv ? csv_row : json_row;
  return storage::replace_file(env, path, [&](storage::WritableFile& file) -> Expected<void> {
    TableWriter out(file, *count);
    if (format == ExportFormat::Csv)
      NS_RETURN_IF_ERROR(out.add("series,step,steps,values,least,most,mean\n"));
    for (const std::string& name : source.names) {
      NS_RETURN_IF_ERROR(next_series(cancel));
      NS_ASSIGN_OR_RETURN(const std::vector<Bucket> buckets, all_buckets(source, name));
      for (const Bucket& bucket : buckets) NS_RETURN_IF_ERROR(out.add(row(name, bucket)));
      count->rows += buckets.size();
    }
    return out.flush();
  });
}

struct Point {
  std::int64_t step = 0;
  std::size_t series = 0;  // in names
  double value = 0;
};

Expected<Bytes> event_file(const SeriesSource& source, double now, const CancelToken& cancel,
                           ExportCount* count) {
  std::vector<Point> points;
  for (std::size_t i = 0; i < source.names.size(); ++i) {
    NS_RETURN_IF_ERROR(next_series(cancel));
    NS_ASSIGN_OR_RETURN(const std::vector<Bucket> buckets, all_buckets(source, source.names[i]));
    for (const Bucket& bucket : buckets) points.push_back({bucket.first, i, bucket.mean});
  }
  // A reader takes a step that goes back for a restarted run and drops what it has read.
  std::stable_sort(points.begin(), points.end(),
                   [](const Point& a, const Point& b) { return a.step < b.step; });
  Bytes file;
  append_file_version(now, &file);
  std::vector<Scalar> scalars;
  for (std::size_t i = 0; i < points.size(); ++i) {
    scalars.push_back({source.names[points[i].series], static_cast<float>(points[i].value)});
    if (i + 1 < points.size() && points[i + 1].step == points[i].step) continue;
    append_scalars(now, points[i].step, scalars, &file);
    scalars.clear();
  }
  count->rows = points.size();
  count->bytes = file.size();
  return file;
}

Expected<void> write_events(storage::FileEnv& env, const SeriesSource& source, const std::string& path,
                            WallTime now, const CancelToken& cancel, ExportCount* count) {
  const double seconds = std::chrono::duration<double>(now.time_since_epoch()).count();
  NS_ASSIGN_OR_RETURN(const Bytes file, event_file(source, seconds, cancel, count));
  NS_RETURN_IF_ERROR(env.create_new_directory(path));
  const std::string name = fmt::format("{}/events.out.tfevents.{:010}.neuroshard", path,
                                       static_cast<std::uint64_t>(std::max(0.0, seconds)));
  Expected<void> written = storage::write_file_atomic(env, name, file, true);
  if (!written.ok()) (void)env.remove_tree(path);
  return written;
}

}  // namespace

Expected<ExportFormat> parse_export_format(std::string_view name) {
  for (const auto& entry : formats)
    if (entry.name == name) return entry.format;
  return make_error(ErrorCode::InvalidArgument,
                    fmt::format("the history is exported as {}, not as \"{}\"",
                                fmt::join(export_format_names(), ", "), name.substr(0, 40)));
}

std::vector<std::string> export_format_names() {
  std::vector<std::string> names;
  for (const auto& entry : formats) names.emplace_back(entry.name);
  return names;
}

std::string export_file_name(ExportFormat format) {
  for (const auto& entry : formats)
    if (entry.format == format) return std::string(entry.file);
  return {};
}

Expected<std::vector<Bucket>> all_buckets(const SeriesSource& source, const std::string& name) {
  NS_ASSIGN_OR_RETURN(const std::vector<Bucket> outline, source.query(name, 0, max_position));
  std::vector<Bucket> all;  // descending
  if (outline.empty()) return all;
  const std::int64_t first = outline.front().first;
  std::int64_t end = end_of(outline.back());
  while (end > first) {
    const std::int64_t from = std::max<std::int64_t>(first, end - std::int64_t{max_query_buckets});
    NS_ASSIGN_OR_RETURN(const std::vector<Bucket> part, source.query(name, from, end - 1));
    end = from;
    for (auto bucket = part.rbegin(); bucket != part.rend(); ++bucket) {
      // A wider bucket at the border has the values of the finer ones in it.
      while (!all.empty() && all.back().first < end_of(*bucket)) all.pop_back();
      all.push_back(*bucket);
      end = std::min(end, bucket->first);
    }
  }
  std::reverse(all.begin(), all.end());
  return all;
}

Expected<ExportCount> export_history(storage::FileEnv& env, const SeriesSource& source, ExportFormat format,
                                     const std::string& path, WallTime now, const CancelToken& cancel) {
  if (env.exists(path))
    return make_error(ErrorCode::AlreadyExists, path + " already exists; choose another name");
  if (source.names.empty())
    return make_error(ErrorCode::NotFound,
                      "the history is empty: nothing was trained in this data directory yet");
  ExportCount count;
  count.series = source.names.size();
  if (format == ExportFormat::TensorBoard)
    NS_RETURN_IF_ERROR(write_events(env, source, path, now, cancel, &count));
  else
    NS_RETURN_IF_ERROR(write_table(env, source, format, path, cancel, &count));
  return count;
}

}  // namespace neuroshard::history
