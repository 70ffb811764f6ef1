#include "core/storage/file_env.h"

#include <fmt/format.h>

#include <utility>

namespace neuroshard::storage {
namespace {

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

using Write = std::function<Expected<void>(WritableFile& file)>;

Expected<void> write_and_sync(FileEnv& env, const std::string& path, const Write& write,
                              bool world_readable) {
  NS_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, env.open_write(path, world_readable));
  NS_RETURN_IF_ERROR(write(*file));
  NS_RETURN_IF_ERROR(file->sync());
  return file->close();
}

}  // namespace

Expected<Bytes> read_file(FileEnv& env, const std::string& path, std::uint64_t limit) {
  NS_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, env.open_read(path));
  const std::uint64_t size = file->size();
  if (size > limit) {
    return make_error(
        ErrorCode::Exhausted,
        fmt::format("{} has {} bytes; at most {} are allowed for such a file", path, size, limit));
  }
  Bytes bytes(static_cast<std::size_t>(size));
  NS_RETURN_IF_ERROR(file->read_at(0, bytes));
  return bytes;
}

Expected<void> write_file_atomic(FileEnv& env, const std::string& path, ByteSpan bytes, bool world_readable) {
  return replace_file(
      env, path, [bytes](WritableFile& file) { return file.append(bytes); }, world_readable);
}

Expected<void> replace_file(FileEnv& env, const std::string& path, const Write& write, bool world_readable) {
  const std::string temporary = path + ".tmp";
  Expected<void> written = write_and_sync(env, temporary, write, world_readable);
  if (written.ok()) written = env.rename(temporary, path);
  if (!written.ok()) {
    (void)env.remove_file(temporary);  // best effort: the first error is the one to tell
    return std::move(written).error();
  }
  return env.sync_directory(parent_of(path));
}

}  // namespace neuroshard::storage
