// Control of a core from another machine: off until its owner makes an invitation. The core then also listens
// at an address of the owner's choice, with a permanent key, and accepts the cookie of every invitation that
// is not revoked. An invitation is a control file (control_file.h) with that address, key and cookie. The
// owner carries it to the other machine; it permits everything that the app can do.
//
// The core's part is in the data directory, mode 0600: the key, and a hash of each cookie.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/control/control_file.h"
#include "core/crypto/entropy.h"
#include "core/platform/socket/ip_address.h"
#include "core/storage/file_env.h"

namespace neuroshard::control {

struct Invitation {
  std::string id;    // 8 hex characters, for revoking it
  std::string name;  // for whom; may be empty
  WallTime made{};
  std::string cookie_hash;  // SHA-256, hex
};

struct RemoteAccess {
  platform::Endpoint listen;
  std::string certificate, key;  // PEM
  std::vector<Invitation> invitations;
};

inline constexpr std::size_t max_remote_access_bytes = 64u << 10;
inline constexpr std::size_t max_invitations = 32;
inline constexpr std::size_t max_invitation_name = 64;  // bytes

std::string remote_access_path(const std::string& data_directory);
std::string format_remote_access(const RemoteAccess& access);
// Strict, any bytes are safe.  Errors: Corrupt.
Expected<RemoteAccess> parse_remote_access(const std::string& text);

// Nothing: it is off.  Errors: Denied if another user owns the file or others can read it; Corrupt.
Expected<std::optional<RemoteAccess>> load_remote_access(const std::string& data_directory);
Expected<void> save_remote_access(storage::FileEnv& files, const std::string& data_directory,
                                  const RemoteAccess& access);

// A new key, valid from a day before `now`, and no invitations.
Expected<RemoteAccess> make_remote_access(const platform::Endpoint& listen, WallTime now);

// Adds an invitation and returns the file that carries it. address: under which the other machine reaches
// this one, "name:port" or "ip:port".  Exhausted: max_invitations. InvalidArgument: the name.
Expected<ControlFile> invite(RemoteAccess& access, const std::string& name, const std::string& address,
                             const std::string& data_directory, crypto::Entropy& entropy, WallTime now);

// The invitation of a cookie; null: none.
const Invitation* find_invitation(const RemoteAccess& access, const std::string& cookie);

}  // namespace neuroshard::control
