#include "core/control/remote_access.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/control/detail/tls_identity.h"
#include "core/crypto/hash.h"
#include "core/platform/file/directory_lock.h"
#include "core/platform/file/private_directory.h"

namespace neuroshard::control {
namespace {

constexpr std::size_t id_bytes = 4;
constexpr std::size_t cookie_bytes = 32;
constexpr std::size_t max_field = 8192;
constexpr Duration lock_patience = std::chrono::seconds(10);
constexpr std::int64_t max_unix_ms = 253'402'300'799'000;  // the year 9999

Error corrupt(const std::string& what) {
  return make_error(ErrorCode::Corrupt, "this is not a record of invitations: " + what);
}

std::string hash_of(const std::string& cookie) {
  return to_hex(ByteSpan(crypto::sha256(as_bytes(cookie))));
}

std::string random_hex(crypto::Entropy& entropy, std::size_t bytes) {
  std::array<std::uint8_t, cookie_bytes> drawn{};
  entropy.fill({drawn.data(), bytes});
  return to_hex({drawn.data(), bytes});
}

std::string field(const nlohmann::json& object, const char* name) {
  const auto at = object.find(name);
  const bool fits =
      at != object.end() && at->is_string() && at->get_ref<const std::string&>().size() <= max_field;
  return fits ? at->get<std::string>() : std::string();
}

std::optional<WallTime> time_field(const nlohmann::json& object, const char* name) {
  const auto at = object.find(name);
  if (at == object.end() || !at->is_number_integer()) return std::nullopt;
  const auto ms = std::clamp(at->get<std::int64_t>(), std::int64_t{0}, max_unix_ms);
  return WallTime(std::chrono::milliseconds(ms));
}

Expected<Invitation> parse_invitation(const nlohmann::json& object) {
  if (!object.is_object()) return corrupt("an invitation is not an object");
  const auto made = time_field(object, "made"), expires = time_field(object, "expires");
  const auto scope = parse_scope(field(object, "scope"));
  if (!made || !expires || !scope.ok()) return corrupt("an invitation lacks its times or its scope");
  const Invitation invitation{
      field(object, "id"), field(object, "name"), *made, field(object, "cookie_sha256"), *expires, *scope};
  if (invitation.id.size() != 2 * id_bytes || invitation.cookie_hash.size() != 64 ||
      invitation.name.size() > max_invitation_name) {
    return corrupt("an invitation lacks its id or its hash");
  }
  return invitation;
}

}  // namespace

std::string_view to_string(Scope scope) {
  return scope == Scope::Look ? "look" : "steer";
}

Expected<Scope> parse_scope(std::string_view text) {
  for (const Scope scope : {Scope::Look, Scope::Steer})
    if (text == to_string(scope)) return scope;
  return make_error(ErrorCode::InvalidArgument,
                    fmt::format("the scope '{}' is unknown: it is look (see the node and its logs) or steer "
                                "(do everything)",
                                text.substr(0, 32)));
}

std::string remote_access_path(const std::string& data_directory) {
  return data_directory + "/remote-control.json";
}

std::string format_remote_access(const RemoteAccess& access) {
  nlohmann::ordered_json invitations = nlohmann::ordered_json::array();
  for (const Invitation& invitation : access.invitations) {
    invitations.push_back({{"id", invitation.id},
                           {"name", invitation.name},
                           {"made", to_unix_ms(invitation.made)},
                           {"expires", to_unix_ms(invitation.expires)},
                           {"scope", std::string(to_string(invitation.scope))},
                           {"cookie_sha256", invitation.cookie_hash}});
  }
  const nlohmann::ordered_json object = {{"listen", platform::to_text(access.listen)},
                                         {"certificate", access.certificate},
                                         {"key", access.key},
                                         {"client_certificate", access.client_certificate},
                                         {"client_key", access.client_key},
                                         {"invitations", std::move(invitations)}};
  return object.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

Expected<RemoteAccess> parse_remote_access(const std::string& text) {
  const auto object = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return corrupt("not a JSON object");
  RemoteAccess access;
  auto listen = platform::parse_endpoint(field(object, "listen"));
  if (!listen.ok()) return corrupt("listen: " + listen.error().message);
  access.listen = *listen;
  access.certificate = field(object, "certificate");
  access.key = field(object, "key");
  access.client_certificate = field(object, "client_certificate");
  access.client_key = field(object, "client_key");
  const auto invitations = object.find("invitations");
  if (access.certificate.empty() || access.key.empty() || invitations == object.end() ||
      !invitations->is_array() || invitations->size() > max_invitations) {
    return corrupt("certificate, key or invitations are missing");
  }
  if (access.client_certificate.empty() || access.client_key.empty())
    return corrupt(
        "an older version wrote it, so the key of the invited programs is missing; delete the file, and make "
        "new invitations");
  for (const nlohmann::json& entry : *invitations) {
    NS_ASSIGN_OR_RETURN(Invitation invitation, parse_invitation(entry));
    access.invitations.push_back(std::move(invitation));
  }
  return access;
}

Expected<std::optional<RemoteAccess>> load_remote_access(const std::string& data_directory) {
  const std::string path = remote_access_path(data_directory);
  auto text = platform::read_private_file(path, max_remote_access_bytes);
  if (!text.ok() && text.error().code == ErrorCode::NotFound) return std::optional<RemoteAccess>();
  if (!text.ok()) return std::move(text).error();
  auto access = parse_remote_access(*text);
  if (!access.ok()) return std::move(access).error().with_context(path);
  return std::optional<RemoteAccess>(std::move(*access));
}

Expected<void> save_remote_access(storage::FileEnv& files, const std::string& data_directory,
                                  const RemoteAccess& access) {
  return storage::write_file_atomic(files, remote_access_path(data_directory),
                                    as_bytes(format_remote_access(access)));
}

Expected<void> change_remote_access(storage::FileEnv& files, const std::string& data_directory,
                                    const Clock& clock, const AccessChange& change) {
  const auto lock =
      platform::DirectoryLock::acquire(data_directory, clock, lock_patience, "remote-control.lock");
  if (!lock.ok() && lock.error().code == ErrorCode::Busy)
    return make_error(ErrorCode::Busy,
                      "another command is changing the invitations of this node; try again in a moment");
  if (!lock.ok()) return lock.error();
  NS_ASSIGN_OR_RETURN(auto access, load_remote_access(data_directory));
  const bool had = access.has_value();
  NS_RETURN_IF_ERROR(change(access));
  if (access && !access->invitations.empty()) return save_remote_access(files, data_directory, *access);
  if (!had) return {};
  return files.remove_file(remote_access_path(data_directory));
}

bool listens_for(const ControlFile& core, const RemoteAccess& access) {
  return core.remote_address == platform::to_text(access.listen) &&
         core.remote_certificate == access.certificate;
}

Expected<RemoteAccess> make_remote_access(const platform::Endpoint& listen) {
  NS_ASSIGN_OR_RETURN(detail::TlsIdentity own, detail::make_tls_identity());
  NS_ASSIGN_OR_RETURN(detail::TlsIdentity client, detail::make_tls_identity());
  return RemoteAccess{listen,
                      std::move(own.certificate),
                      std::move(own.key),
                      std::move(client.certificate),
                      std::move(client.key),
                      {}};
}

Expected<ControlFile> invite(RemoteAccess& access, const InvitationTerms& terms,
                             const std::string& data_directory, crypto::Entropy& entropy, WallTime now) {
  if (terms.name.size() > max_invitation_name)
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("the name is longer than {} bytes", max_invitation_name));
  if (terms.life < std::chrono::days(1) || terms.life > max_invitation_life)
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("an invitation lasts 1 to {} days", max_invitation_life.count()));
  auto& all = access.invitations;
  all.erase(
      std::remove_if(all.begin(), all.end(), [now](const Invitation& entry) { return entry.expired(now); }),
      all.end());
  if (access.invitations.size() >= max_invitations)
    return make_error(
        ErrorCode::Exhausted,
        fmt::format("there are already {} invitations; revoke one first: neuroshardd control revoke ID",
                    max_invitations));
  ControlFile file;
  file.started = now;
  file.address = terms.address;
  file.certificate = access.certificate;
  file.client_certificate = access.client_certificate;
  file.client_key = access.client_key;
  file.cookie = random_hex(entropy, cookie_bytes);
  file.data_directory = data_directory;
  all.push_back(
      {random_hex(entropy, id_bytes), terms.name, now, hash_of(file.cookie), now + terms.life, terms.scope});
  return file;
}

const Invitation* find_invitation(const RemoteAccess& access, const std::string& cookie) {
  // Hashes of a secret of 256 bits: the time of their comparison reveals nothing useful.
  const std::string hash = hash_of(cookie);
  const auto at = std::find_if(access.invitations.begin(), access.invitations.end(),
                               [&](const Invitation& entry) { return entry.cookie_hash == hash; });
  return at == access.invitations.end() ? nullptr : &*at;
}

}  // namespace neuroshard::control
