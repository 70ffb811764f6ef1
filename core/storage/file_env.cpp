#include "core/storage/file_env.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace neuroshard::storage {
namespace {

using Write = std::function<Expected<void>(WritableFile& file)>;

constexpr std::uint64_t max_secret_bytes = 1u << 20;  // of a file that is overwritten

Expected<void> write_and_rename(FileEnv& env, const TemporaryFile& temporary, const std::string& path,
                                const Write& write) {
  NS_RETURN_IF_ERROR(write(*temporary.file));
  NS_RETURN_IF_ERROR(temporary.file->sync());
  NS_RETURN_IF_ERROR(temporary.file->close());
  return env.rename(temporary.path, path);
}

Expected<void> overwrite(WritableFile& file, std::uint64_t bytes) {
  NS_RETURN_IF_ERROR(file.append(Bytes(static_cast<std::size_t>(bytes))));
  NS_RETURN_IF_ERROR(file.sync());
  return file.close();
}

}  // namespace

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

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
  LargeFile kind;
  kind.read_soon = true;
  kind.world_readable = world_readable;
  NS_ASSIGN_OR_RETURN(const TemporaryFile temporary, env.open_temporary(path, kind));
  if (Expected<void> written = write_and_rename(env, temporary, path, write); !written.ok()) {
    (void)env.remove_file(temporary.path);  // best effort: the first error is the one to tell
    return std::move(written).error();
  }
  return env.sync_directory(parent_of(path));
}

Expected<Expected<void>> replace_secret_file(FileEnv& env, const std::string& path, ByteSpan bytes) {
  // Opened before the name passes to the new file.
  std::uint64_t size = 0;
  Expected<std::unique_ptr<WritableFile>> former = env.open_existing(path);
  if (former.ok()) {
    NS_ASSIGN_OR_RETURN(const auto readable, env.open_read(path));
    size = std::min(readable->size(), max_secret_bytes);
  }
  NS_RETURN_IF_ERROR(write_file_atomic(env, path, bytes));
  if (!former.ok()) return Expected<void>(std::move(former).error());
  return overwrite(**former, size);
}

Expected<void> FileEnv::create_new_directory(const std::string& path) {
  if (exists(path))
    return make_error(ErrorCode::AlreadyExists, path + " already exists; choose a new folder");
  return create_directories(path);
}

Expected<TemporaryFile> FileEnv::open_temporary(const std::string& target, const LargeFile& file) {
  TemporaryFile temporary{target + ".tmp-0000000000000000", nullptr};
  NS_ASSIGN_OR_RETURN(temporary.file, file.bytes == 0 ? open_write(temporary.path, file.world_readable)
                                                      : open_write_large(temporary.path, file));
  return temporary;
}

}  // namespace neuroshard::storage
