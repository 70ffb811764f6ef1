#include "core/storage/zip_writer.h"

#include <fmt/format.h>
#include <zip.h>

#include <memory>
#include <set>

namespace neuroshard::storage {
namespace {

struct ArchiveCloser {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct SourceFreer {
  void operator()(zip_source_t* source) const { zip_source_free(source); }
};

Error failed() {
  return make_error(ErrorCode::Exhausted, "the zip archive could not be created: not enough memory");
}

Expected<void> check_names(const std::vector<ZipEntry>& entries) {
  if (entries.size() > max_zip_entries) {
    return make_error(ErrorCode::InvalidArgument, fmt::format("a zip archive of {} entries; at most {}",
                                                              entries.size(), max_zip_entries));
  }
  std::set<std::string> names;
  for (const ZipEntry& entry : entries) {
    if (entry.name.empty() || entry.name.front() == '/' || !names.insert(entry.name).second)
      return make_error(ErrorCode::InvalidArgument,
                        fmt::format("'{}' is not a valid name of an entry", entry.name));
  }
  return {};
}

Expected<void> add(zip_t* archive, const ZipEntry& entry, std::time_t time) {
  zip_source_t* source = zip_source_buffer(archive, entry.content.data(), entry.content.size(), 0);
  if (source == nullptr) return failed();
  const zip_int64_t index = zip_file_add(archive, entry.name.c_str(), source, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    zip_source_free(source);
    return failed();
  }
  if (zip_file_set_mtime(archive, static_cast<zip_uint64_t>(index), time, 0) != 0) return failed();
  return {};
}

Expected<Bytes> content_of(zip_source_t* source) {
  zip_stat_t stat;
  if (zip_source_stat(source, &stat) != 0 || zip_source_open(source) != 0) return failed();
  Bytes bytes(static_cast<std::size_t>(stat.size));
  const zip_int64_t got = zip_source_read(source, bytes.data(), bytes.size());
  zip_source_close(source);
  if (got < 0 || static_cast<std::size_t>(got) != bytes.size()) return failed();
  return bytes;
}

}  // namespace

Expected<Bytes> make_zip(const std::vector<ZipEntry>& entries, WallTime time) {
  NS_RETURN_IF_ERROR(check_names(entries));
  const std::unique_ptr<zip_source_t, SourceFreer> source(zip_source_buffer_create(nullptr, 0, 0, nullptr));
  if (!source) return failed();
  std::unique_ptr<zip_t, ArchiveCloser> archive(
      zip_open_from_source(source.get(), ZIP_CREATE | ZIP_TRUNCATE, nullptr));
  if (!archive) return failed();
  zip_source_keep(source.get());  // the archive owns one reference, this function the other
  const std::time_t seconds =
      std::chrono::system_clock::to_time_t(std::chrono::floor<std::chrono::seconds>(time));
  for (const ZipEntry& entry : entries) NS_RETURN_IF_ERROR(add(archive.get(), entry, seconds));
  if (zip_close(archive.get()) != 0) return failed();
  static_cast<void>(archive.release());  // closed
  return content_of(source.get());
}

}  // namespace neuroshard::storage
