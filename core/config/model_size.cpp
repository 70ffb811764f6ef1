#include "core/config/model_size.h"

#include <fmt/format.h>

#include <charconv>

namespace neuroshard::config {
namespace {

constexpr std::uint64_t most_size_digits = 8;

std::string size_path(const std::string& directory) {
  return directory + "/size";
}

// Nothing: the bytes are no number and a line feed.
std::optional<std::uint64_t> parse_size(std::string_view text) {
  std::uint64_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc() ||
      std::string_view(end, static_cast<std::size_t>(text.data() + text.size() - end)) != "\n")
    return std::nullopt;
  return size;
}

}  // namespace

Expected<std::uint64_t> read_size(const std::string& path, storage::FileEnv& files,
                                  const ConsensusPart& consensus) {
  const std::string file = size_path(path);
  NS_ASSIGN_OR_RETURN(const bool present, files.has_name(file));
  if (!present) return std::uint64_t{0};
  auto bytes = storage::read_file(files, file, most_size_digits);
  if (!bytes.ok() && bytes.error().code != ErrorCode::Exhausted) return std::move(bytes).error();
  const auto size = bytes.ok() ? parse_size(as_text(*bytes)) : std::nullopt;
  if (size && *size <= consensus.sizes.size()) return *size;
  return make_error(
      ErrorCode::Corrupt,
      fmt::format("{} holds no size of this network's model, a number from 0 to {}; restore the file from a "
                  "backup, or remove it, and the node begins with the network's first size",
                  file, consensus.sizes.size()));
}

Expected<void> keep_size(const std::string& path, storage::FileEnv& files, const ConsensusPart& consensus,
                         std::uint64_t size) {
  const std::size_t last = consensus.sizes.size();
  if (size > last)
    return make_error(
        ErrorCode::InvalidArgument,
        fmt::format("the model of this network has no size {}; the last one is {}", size, last));
  return storage::write_file_atomic(files, size_path(path), as_bytes(fmt::format("{}\n", size)));
}

}  // namespace neuroshard::config
