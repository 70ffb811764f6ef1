// Quantities on the command line, as people write them.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/expected.h"

namespace neuroshard::app {

// "4096", "8e9", "512MiB", "1.5GB": a positive number of bytes, at most 1e18. InvalidArgument names the flag.
Expected<double> parse_bytes(const std::string& flag, const std::string& text);

// "4e11", "400G", "1.2T": a positive number of operations (or anything), at most 1e24.
Expected<double> parse_operations(const std::string& flag, const std::string& text);

// "1.5 GB": of memory that members offer.
std::string gigabytes(std::uint64_t bytes);

// "1907 MiB"; a dash for 0, which is not known.
std::string mebibytes(std::uint64_t bytes);

}  // namespace neuroshard::app
