// A zip archive of a few texts, made in memory: what people can open everywhere.
#pragma once

#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/clock.h"
#include "core/base/expected.h"

namespace neuroshard::storage {

inline constexpr std::size_t max_zip_entries = 1000;

struct ZipEntry {
  std::string name;  // relative, "/" between folders, UTF-8
  std::string content;
};
// Deflated; `time` is that of all entries. Equal inputs give equal archives.
// Errors: InvalidArgument (too many entries, a name twice, empty or absolute), Exhausted (memory).
Expected<Bytes> make_zip(const std::vector<ZipEntry>& entries, WallTime time);

}  // namespace neuroshard::storage
