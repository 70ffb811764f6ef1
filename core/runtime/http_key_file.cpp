#include "core/runtime/http_key_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "core/base/bytes.h"

namespace neuroshard::runtime {
namespace {

constexpr std::uint64_t longest_key_file = 4096;
constexpr std::size_t least_key = 16;  // characters
constexpr std::string_view made_key_prefix = "ns-";

bool is_usable(std::string_view key) {
  return key.size() >= least_key &&
         std::all_of(key.begin(), key.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

// Any line of another program's file may look like a person's own key, but none like this.
bool is_made_here(std::string_view key) {
  return key.starts_with(made_key_prefix) && hash_from_hex(key.substr(made_key_prefix.size())).ok();
}

}  // namespace

Expected<std::string> make_http_key(const std::string& path, const RuntimeServices& services) {
  std::array<std::uint8_t, 32> secret{};
  services.entropy.fill(secret);
  const std::string key = std::string(made_key_prefix) + to_hex(secret);
  NS_RETURN_IF_ERROR(storage::write_file_atomic(services.files, path, as_bytes(key + "\n")));  // 0600
  return key;
}

Expected<std::string> read_or_make_http_key(const std::string& path, const RuntimeServices& services) {
  NS_ASSIGN_OR_RETURN(const bool present, services.files.has_name(path));
  if (!present) return make_http_key(path, services);
  NS_ASSIGN_OR_RETURN(const Bytes bytes, storage::read_file(services.files, path, longest_key_file));
  const auto end = std::find_if(bytes.begin(), bytes.end(), [](char c) { return c == '\n' || c == '\r'; });
  std::string key(bytes.begin(), end);
  if (is_usable(key)) return key;
  return make_error(
      ErrorCode::InvalidArgument,
      fmt::format(
          "the first line of {} must be a key of at least {} printable characters without spaces; write one "
          "there, or set http_key_file to another file",
          path, least_key));
}

Expected<bool> has_made_http_key(const std::string& path, const RuntimeServices& services) {
  NS_ASSIGN_OR_RETURN(const bool present, services.files.has_name(path));
  if (!present) return false;
  NS_ASSIGN_OR_RETURN(const Bytes bytes, storage::read_file(services.files, path, longest_key_file));
  std::string_view text = as_text(bytes);
  for (const char end : {'\n', '\r'})
    if (text.ends_with(end)) text.remove_suffix(1);
  if (text.empty() || is_made_here(text)) return true;
  return make_error(
      ErrorCode::Denied,
      fmt::format("{} holds something that no node has made as a key, so it is left as it is; set "
                  "http_key_file to another file, or change a key of your own in the file itself",
                  path));
}

}  // namespace neuroshard::runtime
