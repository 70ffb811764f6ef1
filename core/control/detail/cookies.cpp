#include "core/control/detail/cookies.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <openssl/crypto.h>

#include "core/control/detail/call_rules.h"

namespace neuroshard::control::detail {
namespace {

constexpr Duration look_anew = std::chrono::seconds(1);

}  // namespace

Cookies::Cookies(std::string local, std::string data_directory, const Clock& clock)
    : local_(std::move(local)), data_directory_(std::move(data_directory)), clock_(clock) {}

Expected<std::string> Cookies::check(const grpc::ServerContextBase& context, Scope needed) const {
  const auto& all = context.client_metadata();
  const auto at = all.find(cookie_key);
  if (at == all.end())
    return make_error(ErrorCode::Denied, "this call has no cookie: read it from control.json");
  const std::string given(at->second.data(), at->second.size());
  if (given.size() == local_.size() && CRYPTO_memcmp(given.data(), local_.data(), local_.size()) == 0)
    return std::string();
  return check_invited(given, needed);
}

Expected<std::string> Cookies::check_invited(const std::string& cookie, Scope needed) const {
  std::lock_guard lock(mutex_);
  const MonotonicTime now = clock_.monotonic_now();
  if (!looked_ || now - *looked_ >= look_anew) {
    auto access = load_remote_access(data_directory_);
    // A file that can't be read or verified contains no invitation.
    access_ = access.ok() ? std::move(*access) : std::nullopt;
    looked_ = now;
  }
  const Invitation* const found = access_ ? find_invitation(*access_, cookie) : nullptr;
  if (found == nullptr) {
    return make_error(ErrorCode::Denied,
                      "the cookie is wrong: read control.json again, or ask for a new invitation");
  }
  if (found->expired(clock_.wall_now())) {
    return make_error(ErrorCode::Denied,
                      fmt::format("this invitation expired on {:%F}: ask the owner of the node for a new one "
                                  "(neuroshardd control invite)",
                                  std::chrono::floor<std::chrono::seconds>(found->expires)));
  }
  if (found->scope < needed) {
    return make_error(
        ErrorCode::Denied,
        "this invitation permits to look, not to change anything: ask the owner of the node for "
        "another one (neuroshardd control invite --scope steer)");
  }
  return found->id;
}

}  // namespace neuroshard::control::detail
