#include "core/runtime/turn_settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/crypto/keys.h"

namespace neuroshard::runtime {
namespace {

constexpr std::uint64_t longest_file = 4096;

Expected<std::string> read_password(storage::FileEnv& files, const std::string& path) {
  if (!files.exists(path))
    return make_error(
        ErrorCode::NotFound,
        fmt::format("its password is missing: write it into the first line of {}, and restart this node",
                    path));
  NS_ASSIGN_OR_RETURN(Bytes bytes, storage::read_file(files, path, longest_file));
  const auto end = std::find_if(bytes.begin(), bytes.end(), [](char c) { return c == '\n' || c == '\r'; });
  std::string password(bytes.begin(), end);
  crypto::wipe({bytes.data(), bytes.size()});
  if (password.empty())
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("the first line of {} is empty; it must be the password", path));
  // Other characters would need a normal form on both sides first (RFC 8265).
  if (std::any_of(password.begin(), password.end(), [](char c) { return c < 0x20 || c > 0x7e; }))
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("the password in {} must consist of printable ASCII characters", path));
  return password;
}

}  // namespace

TurnSettings read_turn_settings(const config::DataDirectory& directory, storage::FileEnv& files) {
  const config::Settings& settings = directory.settings();
  TurnSettings turn;
  turn.server = settings.word(config::Setting::TurnServer);
  if (turn.server.empty()) return turn;
  const std::string& user = settings.word(config::Setting::TurnUser);
  const std::string& name = settings.word(config::Setting::TurnPasswordFile);
  if (user.empty() || name.empty()) {
    turn.trouble = fmt::format("the setting {} is empty", user.empty() ? "turn_user" : "turn_password_file");
    return turn;
  }
  auto password = read_password(files, name.front() == '/' ? name : directory.path() + '/' + name);
  if (password.ok())
    turn.account = nat::TurnAccount{user, std::move(*password)};
  else
    turn.trouble = password.error().message;
  return turn;
}

}  // namespace neuroshard::runtime
