// The file system, injected, so that tests can fail any write, fill the disk or tear a file in two.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/expected.h"

namespace neuroshard::storage {

// An open file for sequential writing. Destroying it without close() closes it and drops errors.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  virtual Expected<void> append(ByteSpan bytes) = 0;
  // Data and metadata are on the disk when this returns.
  virtual Expected<void> sync() = 0;
  virtual Expected<void> close() = 0;
};

// Threads: any; concurrent reads are fine.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  virtual std::uint64_t size() const = 0;
  // Reads exactly target.size() bytes at offset; Corrupt("… ends early") when the file is shorter.
  virtual Expected<void> read_at(std::uint64_t offset, MutableByteSpan target) = 0;
  // These bytes will be read soon: the system may fetch them meanwhile. Only a wish, may exceed the file.
  virtual void expect_read(std::uint64_t offset, std::uint64_t bytes) const {
    static_cast<void>(offset);
    static_cast<void>(bytes);
  }
};

// The buffer of a file of open_write_large(), beside the bytes appended to it.
inline constexpr std::size_t large_file_buffer = std::size_t{1} << 20;

// Facts about a large file that are known before it is written.
struct LargeFile {
  std::uint64_t bytes = 0;  // that will be appended; taking the room at once is faster than bit by bit
  // True: the bytes go through the page cache and are there for a reader. False: past it where the system
  // can, which leaves the processors to training.
  bool read_soon = false;
  bool world_readable = false;
};

// A file beside the one that it is to replace, under a name that did not exist before.
struct TemporaryFile {
  std::string path;
  std::unique_ptr<WritableFile> file;  // while it is open, remove_leftovers() leaves the file alone
};

// remove_leftovers() in the folder itself, or in all folders below it too. Links are not followed.
enum class LeftoverScope : std::uint8_t { Folder, Tree };

struct DirectoryEntry {
  std::string name;
  bool is_directory = false;
  std::uint64_t size = 0;
  bool is_link = false;  // the other two are those of its target
};

// Paths are UTF-8. Errors carry the path and say what to do: NotFound, Denied (read-only or not ours),
// Exhausted (disk full), Io. The last part of a path that is opened for writing may not be a symbolic link
// (Denied): another user could have planted it.  Threads: any.
class FileEnv {
 public:
  virtual ~FileEnv() = default;
  virtual Expected<std::unique_ptr<ReadableFile>> open_read(const std::string& path) = 0;
  // Truncates; mode 0600 (0644 when world_readable).
  virtual Expected<std::unique_ptr<WritableFile>> open_write(const std::string& path,
                                                             bool world_readable = false) = 0;
  // As open_write(), with the same content and the same durability, for a file whose size is known. Exhausted
  // already here when there is no room for it. Append in pieces of about a megabyte.
  virtual Expected<std::unique_ptr<WritableFile>> open_write_large(const std::string& path,
                                                                   const LargeFile& file) {
    return open_write(path, file.world_readable);
  }
  virtual Expected<std::unique_ptr<WritableFile>> open_append(const std::string& path) = 0;
  // A new file "`target`.tmp-" and 16 hexadecimal digits, drawn at random on a machine's disk. It is never a
  // file or a link that stands there already. A simulated disk has one user and takes one fixed name.
  virtual Expected<TemporaryFile> open_temporary(const std::string& target, const LargeFile& file);
  // Removes what a killed program left of open_temporary(): regular files of this user with such a name, which
  // no process has open. Returns their number. Best effort.
  virtual std::size_t remove_leftovers(const std::string& folder, LeftoverScope scope) {
    static_cast<void>(folder);
    static_cast<void>(scope);
    return 0;
  }
  // An existing regular file, to be overwritten from its beginning; it keeps its length. Follows no link, and
  // refuses a file that has another name too (Denied).
  virtual Expected<std::unique_ptr<WritableFile>> open_existing(const std::string& path) {
    return make_error(ErrorCode::Unsupported, "this disk can't overwrite " + path + " in place");
  }
  virtual Expected<void> rename(const std::string& from, const std::string& to) = 0;  // replaces `to`, atomic
  virtual Expected<void> remove_file(const std::string& path) = 0;                    // NotFound is an error
  virtual Expected<void> remove_tree(const std::string& path) = 0;                    // missing is success
  virtual Expected<void> create_directories(const std::string& path) = 0;             // new ones 0700
  // A new folder, 0700, and those above it where they are missing. AlreadyExists: something has this name, even
  // if it came a moment ago.
  virtual Expected<void> create_new_directory(const std::string& path);
  virtual Expected<void> sync_directory(const std::string& path) = 0;
  virtual Expected<std::vector<DirectoryEntry>> list(const std::string& path) = 0;  // sorted by name
  virtual bool exists(const std::string& path) = 0;
  // Whether something has this name, even a link to nothing. An error: nobody knows, for example because the disk
  // does not answer. For a file that is made anew where it is missing, and must not be lost.
  virtual Expected<bool> has_name(const std::string& path) = 0;
  virtual Expected<std::uint64_t> free_bytes(
      const std::string& path) = 0;  // for this user, at an existing path
};

// The machine's file system.
std::unique_ptr<FileEnv> make_posix_file_env();

// The folder that a path is in, "." for a name alone.
std::string parent_of(const std::string& path);
// Reads a whole file; Exhausted when it is larger than `limit`, before anything is allocated.
Expected<Bytes> read_file(FileEnv& env, const std::string& path, std::uint64_t limit);
// open_temporary(), fsync, rename, fsync of the directory: readers see the old or the new content, never a
// part.
Expected<void> write_file_atomic(FileEnv& env, const std::string& path, ByteSpan bytes,
                                 bool world_readable = false);
// The same, with what `write` appends.
Expected<void> replace_file(FileEnv& env, const std::string& path,
                            const std::function<Expected<void>(WritableFile& file)>& write,
                            bool world_readable = false);
// write_file_atomic(), then zeros over the former content, for a file that held a secret. Nothing is
// overwritten before the new content is on the disk. The inner result says whether the zeros are on it: an
// SSD or a copy-on-write file system may keep the former blocks all the same.
Expected<Expected<void>> replace_secret_file(FileEnv& env, const std::string& path, ByteSpan bytes);

}  // namespace neuroshard::storage
