#include "core/serve/request_guard.h"

#include <algorithm>
#include <cctype>

#include "core/base/bytes.h"
#include "core/crypto/hmac.h"

namespace neuroshard::serve {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

bool takes(std::string_view& text, std::string_view beginning) {
  if (text.substr(0, beginning.size()) != beginning) return false;
  text.remove_prefix(beginning.size());
  return true;
}

}  // namespace

bool is_own_host(std::string_view host, std::uint16_t port) {
  const std::string given = lower(host);
  for (const char* name : {"127.0.0.1", "localhost", "[::1]"}) {
    std::string_view rest = given;
    if (!takes(rest, name)) continue;
    return rest == ":" + std::to_string(port) || (rest.empty() && port == 80);
  }
  return false;
}

bool is_own_origin(std::string_view origin, std::uint16_t port) {
  if (origin.empty()) return true;
  const std::string given = lower(origin);
  std::string_view rest = given;
  return takes(rest, "http://") && is_own_host(rest, port);
}

bool has_key(std::string_view authorization, std::string_view key) {
  constexpr std::string_view scheme = "bearer ";
  if (key.empty() || lower(authorization.substr(0, scheme.size())) != scheme) return false;
  return crypto::equal_in_constant_time(as_bytes(authorization.substr(scheme.size())), as_bytes(key));
}

}  // namespace neuroshard::serve
