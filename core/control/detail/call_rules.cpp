#include "core/control/detail/call_rules.h"

#include <fmt/format.h>
#include <grpc/support/log.h>

#include <charconv>
#include <cstdlib>

namespace neuroshard::control::detail {
namespace {

std::string metadata(const grpc::ServerContextBase& context, const char* key) {
  const auto& all = context.client_metadata();
  const auto at = all.find(key);
  return at == all.end() ? std::string() : std::string(at->second.data(), at->second.size());
}

}  // namespace

std::string to_text(Version version) {
  return fmt::format("{}.{}", version.major, version.minor);
}

Error wrong_version(Version core, Version program) {
  return make_error(
      ErrorCode::Unsupported,
      fmt::format("the running core speaks version {} of the control service and this program "
                  "version {}: {}",
                  to_text(core), to_text(program),
                  core.major > program.major ? "upgrade this program"
                                             : "stop the core and start the installed, newer one"));
}

Expected<void> check_version(const grpc::ServerContextBase& context, Version own) {
  const std::string given = metadata(context, version_key);
  Version other;
  const auto [end, failed] = std::from_chars(given.data(), given.data() + given.size(), other.major);
  if (failed == std::errc() && end != given.data() + given.size() && *end == '.')
    std::from_chars(end + 1, given.data() + given.size(), other.minor);
  if (other.major == own.major) return {};
  return wrong_version(own, other);
}

void prepare_grpc() {
  static const bool once = [] {
    // The one cipher that is left needs an RSA certificate, and ours is Ed25519; those of TLS 1.3 are chosen
    // apart.
    setenv("GRPC_SSL_CIPHER_SUITES", "ECDHE-RSA-AES256-GCM-SHA384", 1);
    gpr_set_log_function([](gpr_log_func_args*) {});
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace neuroshard::control::detail
