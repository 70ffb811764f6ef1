#include "core/control/control_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/crypto/hash.h"
#include "core/platform/file/private_directory.h"

namespace neuroshard::control {
namespace {

constexpr std::size_t name_digits = 24;
constexpr std::size_t max_field = 8192;

Error corrupt(const char* what) {
  return make_error(ErrorCode::Corrupt, fmt::format("this is not a control file of neuroshardd: {}", what));
}

// One path, however it is written: links resolved as far as it exists.
std::string canonical(const std::string& path) {
  std::error_code failed;
  const std::filesystem::path absolute = std::filesystem::absolute(path, failed);
  if (failed) return path;
  std::filesystem::path resolved = std::filesystem::weakly_canonical(absolute, failed);
  if (failed) resolved = absolute.lexically_normal();
  std::string text = resolved.string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

}  // namespace

std::string control_file_path(const std::string& runtime_directory, const std::string& data_directory) {
  const std::string digest = to_hex(ByteSpan(crypto::sha256(as_bytes(canonical(data_directory)))));
  return fmt::format("{}/control-{}.json", runtime_directory, digest.substr(0, name_digits));
}

std::string format_control_file(const ControlFile& file) {
  nlohmann::ordered_json object = {{"pid", file.process.pid},
                                   {"process_start", file.process.start},
                                   {"started", to_unix_ms(file.started)},
                                   {"address", file.address},
                                   {"certificate", file.certificate},
                                   {"cookie", file.cookie},
                                   {"data_directory", file.data_directory}};
  if (!file.client_key.empty()) {
    object["client_certificate"] = file.client_certificate;
    object["client_key"] = file.client_key;
  }
  if (!file.remote_address.empty()) {
    object["remote_address"] = file.remote_address;
    object["remote_certificate"] = file.remote_certificate;
  }
  return object.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

Expected<ControlFile> parse_control_file(const std::string& text) {
  const auto object = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return corrupt("not a JSON object");
  const auto field = [&object](const char* name) {
    const auto at = object.find(name);
    const bool fits =
        at != object.end() && at->is_string() && at->get_ref<const std::string&>().size() <= max_field;
    return fits ? at->get<std::string>() : std::string();
  };
  ControlFile file;
  const auto pid = object.find("pid");
  const auto start = object.find("process_start");
  if (pid == object.end() || !pid->is_number_unsigned() || start == object.end() ||
      !start->is_number_unsigned() || pid->get<std::uint64_t>() > INT32_MAX) {
    return corrupt("it names no process");
  }
  file.process = {pid->get<std::int64_t>(), start->get<std::uint64_t>()};
  if (const auto started = object.find("started"); started != object.end() && started->is_number_integer())
    file.started = WallTime(std::chrono::milliseconds(started->get<std::int64_t>()));
  file.address = field("address");
  file.certificate = field("certificate");
  file.cookie = field("cookie");
  file.data_directory = field("data_directory");
  file.client_certificate = field("client_certificate");
  file.client_key = field("client_key");
  file.remote_address = field("remote_address");
  file.remote_certificate = field("remote_certificate");
  if (file.address.empty() || file.certificate.empty() || file.cookie.empty())
    return corrupt("address, certificate or cookie is missing");
  if (file.client_certificate.empty() != file.client_key.empty())
    return corrupt("client_certificate or client_key is missing");
  return file;
}

Expected<ControlFile> read_control_file(const std::string& path) {
  NS_ASSIGN_OR_RETURN(const std::string text, platform::read_private_file(path, max_control_file_bytes));
  auto file = parse_control_file(text);
  if (!file.ok()) return std::move(file).error().with_context(path);
  const bool invitation = file->process.pid == 0;
  if (invitation && file->client_key.empty())
    return make_error(
        ErrorCode::Unsupported,
        fmt::format("{} is an invitation of an older version: ask the owner of the node for a new "
                    "one (neuroshardd control invite)",
                    path));
  return file;
}

Expected<ControlFile> find_core(const std::string& runtime_directory, const std::string& data_directory) {
  const std::string path = control_file_path(runtime_directory, data_directory);
  NS_ASSIGN_OR_RETURN(ControlFile file, read_control_file(path));
  if (!platform::may_live(file.process)) {
    return make_error(
        ErrorCode::Unavailable,
        fmt::format("process {} ended without a clean stop and left {} behind", file.process.pid, path));
  }
  return file;
}

}  // namespace neuroshard::control
