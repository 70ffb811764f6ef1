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

bool is_usable(std::string_view key) {
  return key.size() >= least_key &&
         std::all_of(key.begin(), key.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

}  // namespace

Expected<std::string> make_http_key(const std::string& path, const RuntimeServices& services) {
  std::array<std::uint8_t, 32> secret{};
  services.entropy.fill(secret);
  const std::string key = "ns-" + to_hex(secret);
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
          "the first line of {} must be a key of at least {} printable characters without spaces; delete "
          "the file for a new key",
          path, least_key));
}

Expected<bool> has_own_http_key(const std::string& path, const RuntimeServices& services) {
  NS_ASSIGN_OR_RETURN(const bool present, services.files.has_name(path));
  if (!present) return false;
  NS_ASSIGN_OR_RETURN(const Bytes bytes, storage::read_file(services.files, path, longest_key_file));
  std::string_view text = as_text(bytes);
  for (const char end : {'\n', '\r'})
    if (text.ends_with(end)) text.remove_suffix(1);
  if (text.empty() || is_usable(text)) return true;
  return make_error(ErrorCode::Denied,
                    fmt::format("{} is no key of the local HTTP server, so it is left as it is; set "
                                "http_key_file to another file",
                                path));
}

}  // namespace neuroshard::runtime
