// Control of a core from another machine: off until its owner makes an invitation. The core then also listens
// at an address of the owner's choice, with a permanent key, and accepts the cookie of every invitation that
// is neither revoked nor expired. An invitation is a control file (control_file.h) with that address, the core's
// certificate, a cookie, and a key that all invitations share: TLS ends before HTTP/2 begins for a program that
// does not have it, so strangers can't send anything to gRPC. The owner carries the file to the other machine;
// its scope says what it permits there.
//
// The core's part is in the data directory, mode 0600: both keys, and a hash of each cookie.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/control/control_file.h"
#include "core/crypto/entropy.h"
#include "core/platform/socket/ip_address.h"
#include "core/storage/file_env.h"

namespace neuroshard::control {

// Ordered: a larger one permits what a smaller one does.
enum class Scope : std::uint8_t {
  Look,   // snapshot, events and questions that change nothing
  Steer,  // everything that the app can do
};
std::string_view to_string(Scope scope);  // "look", "steer"
// InvalidArgument names both.
Expected<Scope> parse_scope(std::string_view text);

inline constexpr std::chrono::days default_invitation_life{30};
inline constexpr std::chrono::days max_invitation_life{365};

struct Invitation {
  std::string id;    // 8 hex characters, for revoking it
  std::string name;  // for whom; may be empty
  WallTime made{};
  std::string cookie_hash;  // SHA-256, hex
  WallTime expires{};
  Scope scope = Scope::Steer;

  bool expired(WallTime now) const { return now >= expires; }
};

// Chosen by the owner for each invitation.
struct InvitationTerms {
  std::string name;
  std::string address;  // under which the other machine reaches this one, "name:port" or "ip:port"
  Scope scope = Scope::Look;
  std::chrono::days life = default_invitation_life;
};

struct RemoteAccess {
  platform::Endpoint listen;
  std::string certificate, key;                // PEM, the core's
  std::string client_certificate, client_key;  // PEM, of all invited programs
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

// Reads the record, has `change` change it, and saves it; without invitations the file goes, and with it the
// keys. Several programs may do this at the same time: each waits until the one before has saved, up to 10 s by
// `clock`. An error of `change` is returned, and the file stays.  Errors: as of load and save; Busy.
using AccessChange = std::function<Expected<void>(std::optional<RemoteAccess>& access)>;
Expected<void> change_remote_access(storage::FileEnv& files, const std::string& data_directory,
                                    const Clock& clock, const AccessChange& change);

// Whether a running core, by its control.json, listens where the record says and with its key. It then accepts
// further invitations at once; else from its next start.
bool listens_for(const ControlFile& core, const RemoteAccess& access);

// New keys and no invitations.
Expected<RemoteAccess> make_remote_access(const platform::Endpoint& listen);

// Adds an invitation and returns the file that carries it; drops those that have expired.  Exhausted:
// max_invitations. InvalidArgument: the name or the life.
Expected<ControlFile> invite(RemoteAccess& access, const InvitationTerms& terms,
                             const std::string& data_directory, crypto::Entropy& entropy, WallTime now);

// The invitation of a cookie, expired or not; null: none.
const Invitation* find_invitation(const RemoteAccess& access, const std::string& cookie);

}  // namespace neuroshard::control
