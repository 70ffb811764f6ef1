// neuroshardd control: invitations for programs on other machines to control this node.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <vector>

#include "app/node/commands/open_directory.h"
#include "core/control/remote_access.h"
#include "core/platform/file/paths.h"

namespace neuroshard::app {
namespace {

struct InviteFlags {
  std::string listen, address, name, out;
  std::string scope{control::to_string(control::Scope::Look)};
  int days = static_cast<int>(control::default_invitation_life.count());
};

Expected<std::string> existing_directory(CommandContext& context) {
  NS_ASSIGN_OR_RETURN(std::string path, data_directory_path(context));
  if (context.files.exists(path + "/FORMAT")) return path;
  return make_error(
      ErrorCode::NotFound,
      fmt::format("there is no node in {} yet; start one: neuroshardd run --data-dir {}", path, path));
}

// Compares --listen with the existing address.
Expected<control::RemoteAccess> access_for(const InviteFlags& flags,
                                           std::optional<control::RemoteAccess> access) {
  if (flags.listen.empty()) {
    if (access) return std::move(*access);
    return make_error(ErrorCode::InvalidArgument,
                      "the first invitation requires --listen, e.g. --listen 0.0.0.0:8443");
  }
  auto listen = platform::parse_endpoint(flags.listen);
  if (!listen.ok()) return std::move(listen).error().with_context("--listen");
  if (!access) return control::make_remote_access(*listen);
  access->listen = *listen;
  return std::move(*access);
}

bool unspecified(const platform::IpAddress& ip) {
  return ip == platform::IpAddress{} || ip == platform::IpAddress::v4(0, 0, 0, 0);
}

// The address that the other machine dials.
Expected<std::string> address_for(const InviteFlags& flags, const platform::Endpoint& listen) {
  if (!flags.address.empty()) {
    const std::size_t colon = flags.address.rfind(':');
    if (colon != std::string::npos && colon > 0 && colon + 1 < flags.address.size()) return flags.address;
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("--address '{}' must be NAME:PORT or IP:PORT", flags.address));
  }
  if (!unspecified(listen.ip)) return platform::to_text(listen);
  return make_error(ErrorCode::InvalidArgument,
                    fmt::format("the node listens on all its addresses: set the one that the other machine "
                                "dials, e.g. --address myhost.lan:{}",
                                listen.port));
}

// An invitation that was made, as the command shows it.
struct NewInvitation {
  control::Invitation invitation;
  control::RemoteAccess access;
  std::string address, out;
  bool running = false;    // a node of this user runs on the directory
  bool hidden = false;     // a process has the directory, but its control file is not found
  bool listening = false;  // and accepts the invitation as it is
};

// Adds an invitation to the record, and writes its file.
Expected<NewInvitation> add_invitation(const InviteFlags& flags, const std::string& directory,
                                       CommandContext& context) {
  NewInvitation made;
  made.out = flags.out.empty() ? "neuroshard-invitation.json" : flags.out;
  NS_ASSIGN_OR_RETURN(const control::Scope scope, control::parse_scope(flags.scope));
  if (context.files.exists(made.out))
    return make_error(ErrorCode::AlreadyExists,
                      fmt::format("{} already exists; choose another --out", made.out));
  const auto add = [&](std::optional<control::RemoteAccess>& access) -> Expected<void> {
    NS_ASSIGN_OR_RETURN(access, access_for(flags, std::move(access)));
    NS_ASSIGN_OR_RETURN(made.address, address_for(flags, access->listen));
    NS_ASSIGN_OR_RETURN(
        const control::ControlFile file,
        control::invite(*access, {flags.name, made.address, scope, std::chrono::days(flags.days)}, directory,
                        context.entropy, context.clock.wall_now()));
    made.access = *access;
    return storage::write_file_atomic(context.files, made.out, as_bytes(control::format_control_file(file)));
  };
  NS_RETURN_IF_ERROR(control::change_remote_access(context.files, directory, context.clock, add));
  made.invitation = made.access.invitations.back();
  const auto core =
      control::find_core(platform::runtime_directory(platform::process_environment()), directory);
  made.running = core.ok();
  made.hidden = !core.ok() && directory_in_use(directory, context.clock).has_value();
  made.listening = core.ok() && control::listens_for(*core, made.access);
  return made;
}

// When the node accepts the invitation.
std::string from_when(const NewInvitation& made) {
  const std::string listen = platform::to_text(made.access.listen);
  if (made.listening) return fmt::format("The running node listens at {} and accepts it at once.", listen);
  if (made.hidden)
    return fmt::format(
        "A node runs on this directory, but its control file is not found here: was it started with another "
        "XDG_RUNTIME_DIR? If it listens at {} already, it accepts the invitation at once, else from its next "
        "start.",
        listen);
  if (!made.running)
    return fmt::format("No running node was found. The node listens at {} from its next start.", listen);
  return fmt::format(
      "The running node does not listen at {} with the key of this invitation. Start it again: "
      "neuroshardd stop, then neuroshardd run",
      listen);
}

Expected<void> invite(const InviteFlags& flags, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const std::string directory, existing_directory(context));
  NS_ASSIGN_OR_RETURN(const NewInvitation made, add_invitation(flags, directory, context));
  const control::Invitation& entry = made.invitation;
  context.output.json_line(
      {{"id", entry.id},
       {"file", made.out},
       {"scope", std::string(control::to_string(entry.scope))},
       {"expires", to_unix_ms(entry.expires)},
       {"listen", platform::to_text(made.access.listen)},
       {"address", made.address},
       {"restart", made.hidden ? nlohmann::ordered_json() : nlohmann::ordered_json(!made.listening)}});
  context.output.line(fmt::format(
      "Wrote invitation {} to {}. For {} days, anyone with this file can {}: copy it to the other "
      "machine over a safe channel, then delete it here.",
      entry.id, made.out, flags.days,
      entry.scope == control::Scope::Look ? "see this node, its settings and its logs"
                                          : "control this node, read its logs and name files of this "
                                            "computer"));
  context.output.line(fmt::format(
      "On the other machine: neuroshardd status --control-file {}, or \"Connect to another computer\" in "
      "the app. To revoke it: neuroshardd control revoke {}",
      made.out, entry.id));
  context.output.line(from_when(made));
  return {};
}

Expected<void> list(CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const std::string directory, existing_directory(context));
  NS_ASSIGN_OR_RETURN(const auto access, control::load_remote_access(directory));
  nlohmann::ordered_json invitations = nlohmann::ordered_json::array();
  if (access) {
    for (const control::Invitation& entry : access->invitations)
      invitations.push_back({{"id", entry.id},
                             {"name", entry.name},
                             {"made", to_unix_ms(entry.made)},
                             {"expires", to_unix_ms(entry.expires)},
                             {"scope", std::string(control::to_string(entry.scope))}});
  }
  context.output.json_line(
      {{"listen", access ? platform::to_text(access->listen) : std::string()}, {"invitations", invitations}});
  if (!access || access->invitations.empty()) {
    context.output.line("There are no invitations: only this computer can control this node.");
    return {};
  }
  context.output.line(fmt::format("Listens for remote control at {}:", platform::to_text(access->listen)));
  for (const control::Invitation& entry : access->invitations)
    context.output.line(fmt::format("  {}  {:5}  {} {:%F %R} UTC  {}", entry.id,
                                    control::to_string(entry.scope),
                                    entry.expired(context.clock.wall_now()) ? "expired" : "expires",
                                    std::chrono::floor<std::chrono::seconds>(entry.expires), entry.name));
  return {};
}

Expected<void> revoke(const std::string& id, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const std::string directory, existing_directory(context));
  std::size_t revoked = 0, left = 0;
  // With the last invitation, the key goes too, so that no revoked invitation ever works again.
  const auto take_back = [&](std::optional<control::RemoteAccess>& access) -> Expected<void> {
    if (access) {
      revoked = std::erase_if(access->invitations, [&](const control::Invitation& entry) {
        return id == "all" || entry.id == id;
      });
      left = access->invitations.size();
    }
    if (revoked > 0) return {};
    return make_error(ErrorCode::NotFound,
                      fmt::format("invitation '{}' not found; see: neuroshardd control list", id));
  };
  NS_RETURN_IF_ERROR(control::change_remote_access(context.files, directory, context.clock, take_back));
  context.output.json_line({{"revoked", revoked}, {"left", left}});
  context.output.line(fmt::format("Revoked {}, {} left.", revoked, left));
  return {};
}

}  // namespace

void add_control_command(CLI::App& root, CommandContext& context) {
  CLI::App& control =
      add_command(root, "control", "Manage control of this node from other machines",
                  {"neuroshardd control invite --listen 0.0.0.0:8443 --address myhost.lan:8443",
                   "neuroshardd control invite --scope steer --days 7", "neuroshardd control list",
                   "neuroshardd control revoke 1f2e3d4c"});
  auto flags = std::make_shared<InviteFlags>();
  CLI::App& make = add_command(control, "invite", "Write a file that lets another machine control this node");
  make.add_option("--listen", flags->listen, "address to listen on for remote control, IP:PORT")
      ->type_name("IP:PORT");
  make.add_option("--address", flags->address,
                  "address that the other machine dials, NAME:PORT (default: --listen)")
      ->type_name("NAME:PORT");
  make.add_option("--name", flags->name, "label of the invitation, shown by \"control list\"");
  make.add_option("--scope", flags->scope,
                  "what it permits: look (see the node, its settings and its logs) or steer (everything) "
                  "(default: look)")
      ->type_name("SCOPE");
  make.add_option("--days", flags->days, "days until it expires, 1 to 365 (default: 30)")->type_name("DAYS");
  make.add_option("--out", flags->out, "file to write (default: ./neuroshard-invitation.json)")
      ->type_name("FILE");
  set_body(make, context, [flags, &context] { return invite(*flags, context); });
  CLI::App& show = add_command(control, "list", "List the invitations, with scope and expiry");
  set_body(show, context, [&context] { return list(context); });
  auto id = std::make_shared<std::string>();
  CLI::App& take_back = add_command(control, "revoke", "Revoke an invitation at once");
  take_back.add_option("id", *id, "id from \"control list\", or all")->required();
  set_body(take_back, context, [id, &context] { return revoke(*id, context); });
}

}  // namespace neuroshard::app
