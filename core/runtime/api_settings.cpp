#include "core/runtime/api_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/bytes.h"

namespace neuroshard::runtime {
namespace {

constexpr std::uint64_t longest_key_file = 4096;
constexpr std::size_t least_key = 16;  // characters

Expected<std::string> make_key(const std::string& path, const RuntimeServices& services) {
  std::array<std::uint8_t, 32> secret{};
  services.entropy.fill(secret);
  const std::string key = "ns-" + to_hex(secret);
  NS_RETURN_IF_ERROR(storage::write_file_atomic(services.files, path, as_bytes(key + "\n")));  // 0600
  return key;
}

Expected<std::string> read_key(const std::string& path, const RuntimeServices& services) {
  if (!services.files.exists(path)) return make_key(path, services);
  NS_ASSIGN_OR_RETURN(const Bytes bytes, storage::read_file(services.files, path, longest_key_file));
  const auto end = std::find_if(bytes.begin(), bytes.end(), [](char c) { return c == '\n' || c == '\r'; });
  std::string key(bytes.begin(), end);
  const bool is_usable = key.size() >= least_key &&
                         std::all_of(key.begin(), key.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  if (is_usable) return key;
  return make_error(
      ErrorCode::InvalidArgument,
      fmt::format(
          "the first line of {} must be a key of at least {} printable characters without spaces; delete "
          "the file for a new key",
          path, least_key));
}

}  // namespace

Expected<std::unique_ptr<serve::ApiServer>> open_api_server(const config::DataDirectory& directory,
                                                            const RuntimeServices& services) {
  const config::Settings& settings = directory.settings();
  if (settings.word(config::Setting::Http) != "on") return std::unique_ptr<serve::ApiServer>();
  const std::string& name = settings.word(config::Setting::HttpKeyFile);
  if (name.empty()) return make_error(ErrorCode::InvalidArgument, "the setting http_key_file is empty");
  serve::ApiOptions options;
  options.port = static_cast<std::uint16_t>(settings.number(config::Setting::HttpPort));
  NS_ASSIGN_OR_RETURN(options.key,
                      read_key(name.front() == '/' ? name : directory.path() + '/' + name, services));
  return serve::ApiServer::listen(options, services.clock, services.logger);
}

}  // namespace neuroshard::runtime
