// neuroshardd run: the long-lived owner of a data directory. Trains until it is stopped.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/node/commands/invite_command.h"
#include "app/node/commands/open_directory.h"
#include "app/node/commands/wallet/wallet_file.h"
#include "app/node/commands/wallet/wallet_secrets.h"
#include "app/node/next_start.h"
#include "app/node/output/snapshot_text.h"
#include "app/node/output/training_view.h"
#include "app/node/upgrade_watch.h"
#include "core/config/invite_link.h"
#include "core/config/model_part.h"
#include "core/platform/file/paths.h"
#include "core/platform/power/sleep_watch.h"
#include "core/platform/process/terminal.h"
#include "core/runtime/chain_trust.h"
#include "core/runtime/invited_peers.h"
#include "core/runtime/node_runtime.h"

namespace neuroshard::app {
namespace {

struct RunFlags {
  node::TrainingPlan plan;
  bool safe = false;
  bool existing_wallet = false;
  std::string sensor_root = "/";
  std::shared_ptr<SettingFlags> settings = std::make_shared<SettingFlags>();
  runtime::JoinOptions join;
  std::string invitation;
  bool yes = false;
};

void show_peers(const runtime::Ready::Peers& peers, CommandContext& context) {
  context.output.json_line({{"peers", true},
                            {"address", platform::to_text(peers.endpoint)},
                            {"port", peers.endpoint.port},
                            {"id", to_hex(peers.id)}});
  context.output.line(
      fmt::format("Peers reach this node at port {}; its id is {}", peers.endpoint.port, to_hex(peers.id)));
}

// The lines that the process which started this one waits for.
void show_ready(const runtime::Ready& ready, CommandContext& context) {
  const node::Snapshot& view = *ready.snapshot;
  context.output.json_line({{"ready", true},
                            {"safe_mode", view.safe_mode},
                            {"pid", view.program.pid},
                            {"version", view.program.version},
                            {"data_dir", view.program.data_directory},
                            {"network", view.program.network},
                            {"network_id", view.program.network_id},
                            {"node_id", view.identity.node_id},
                            {"wallet_id", view.identity.wallet_id}});
  context.output.line(fmt::format("neuroshardd is ready: network {}, data in {}, node {}…, wallet {}{}",
                                  view.program.network, view.program.data_directory,
                                  view.identity.node_id.substr(0, 12), view.identity.wallet_id,
                                  view.identity.wallet_protected ? "" : " (not protected)"));
  if (view.safe_mode) context.output.line("Safe mode: no training. Restart without --safe to train.");
  if (ready.peers) show_peers(*ready.peers, context);
  if (!ready.http.empty()) {
    context.output.json_line({{"http", ready.http}});
    context.output.line(
        fmt::format("Local HTTP at {}; its key is in the file of the setting http_key_file", ready.http));
  }
  if (!view.program.notice.empty()) context.output.note(view.program.notice);
}

void show_state(const node::StateChanged& changed, const node::Snapshot& view, CommandContext& context) {
  nlohmann::ordered_json line = {{"state", std::string(to_string(changed.state))}};
  if (changed.error) line["message"] = changed.error->describe();
  if (changed.state == node::RunState::Paused) {
    line["pause_reasons"] = pause_reasons_json(view);
    context.output.note(state_text(view));
  }
  context.output.json_line(line);
}

// A new wallet's words go to standard error. A program that starts this one may show them to nobody.
Expected<void> check_wallet(const CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const std::string directory, data_directory_path(context));
  NS_ASSIGN_OR_RETURN(const bool present, context.files.has_name(directory + "/wallet.keystore"));
  if (present) return {};
  return no_wallet(directory);
}

// The link that --join names.
Expected<std::string> read_invitation(const std::string& given, const CommandContext& context) {
  if (given != "-") return given;
  if (platform::is_terminal(platform::Stream::In)) context.output.once("Paste the link: ");
  // A line may end with "\r\n".
  auto line = platform::read_input_line(config::max_invite_link + 1, context.stop);
  if (!line.ok() && line.error().code == ErrorCode::InvalidArgument)
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("the first line of standard input is no invitation: it has more than {} "
                                  "characters; copy the link again, and nothing else",
                                  config::max_invite_link));
  if (line.ok() && !line->empty() && line->back() == '\r') line->pop_back();
  return line;
}

// Keeps an invitation for the next starts: its peers, and its anchors of the chain.
Expected<OpenedDirectory> open_invited(const RunFlags& flags, CommandContext& context) {
  if (flags.existing_wallet) NS_RETURN_IF_ERROR(check_wallet(context));
  config::InviteLink invited;
  if (!flags.invitation.empty()) {
    NS_ASSIGN_OR_RETURN(const std::string link, read_invitation(flags.invitation, context));
    NS_ASSIGN_OR_RETURN(invited, follow_invitation(link, flags.yes, context));
  }
  const OpenMode mode = flags.invitation.empty() ? OpenMode::Stay : OpenMode::Join;
  NS_ASSIGN_OR_RETURN(OpenedDirectory opened, open_data_directory(context, mode, *flags.settings));
  if (flags.invitation.empty()) return opened;
  const std::string& directory = opened.directory->path();
  NS_RETURN_IF_ERROR(runtime::keep_invitation(context.files, directory, invited));
  std::vector<std::string> peers;
  for (const config::InvitedPeer& peer : invited.peers) peers.push_back(config::to_text(peer));
  if (!peers.empty()) NS_RETURN_IF_ERROR(runtime::keep_invited_peers(context.files, directory, peers));
  return opened;
}

// A node that begins with no address of its network may need long to find peers, and is listed in public.
void explain_addresses(const RunFlags& flags, const OpenedDirectory& opened, CommandContext& context) {
  const config::DataDirectory& directory = *opened.directory;
  const std::string notice = config::addresses_notice(directory.profile());
  if (notice.empty() || flags.safe || flags.join.lan || !flags.join.sources.empty() ||
      !runtime::read_invited_peers(context.files, directory.path(), *opened.logger).empty())
    return;
  context.output.note(notice);
}

// A start that names one of the network's parts is enough; 0 lets the network choose again.
Expected<void> keep_part(config::DataDirectory& directory, storage::FileEnv& files) {
  if (directory.settings().origin(config::Setting::Part) != config::SettingOrigin::Flag) return {};
  const auto part = config::own_part(directory, files);
  if (!part.ok() || !*part) return {};
  NS_RETURN_IF_ERROR(directory.clear_setting(config::Setting::Part));
  return directory.keep_setting(config::Setting::Part);
}

runtime::RuntimeOptions runtime_options(const RunFlags& flags, const OpenedDirectory& opened,
                                        CommandContext& context) {
  runtime::RuntimeOptions options;
  options.safe_mode = flags.safe;
  options.sensor_root = flags.sensor_root;
  options.runtime_directory = platform::runtime_directory(platform::process_environment());
  options.system_bus = platform::system_bus_address(platform::process_environment());
  if (!opened.crash_notice.empty())
    options.alerts.push_back({"crashed", node::Severity::Warning, opened.crash_notice, {}});
  options.join = flags.join;
  if (passphrase_is_given({}))
    options.join.passphrase = [&context] {
      return get_passphrase(context, {}, "Passphrase of the wallet", false);
    };
  options.interpositions = context.interpositions;
  return options;
}

// Until it is stopped, or something comes next.
Expected<void> run(const RunFlags& flags, const platform::ProgramFile& program, CommandContext& context,
                   Ending* ending) {
  NS_ASSIGN_OR_RETURN(OpenedDirectory opened, open_invited(flags, context));
  ending->start.joined = !flags.invitation.empty();
  NS_RETURN_IF_ERROR(keep_part(*opened.directory, context.files));
  explain_addresses(flags, opened, context);
  runtime::RuntimeServices services = {context.files, context.entropy, context.clock, *opened.logger,
                                       program_version()};
  runtime::RuntimeOptions options = runtime_options(flags, opened, context);
  options.stopped = ending->stopped;
  NS_ASSIGN_OR_RETURN(const auto running,
                      runtime::NodeRuntime::start(std::move(opened.directory), services, std::move(options)));
  node::Node& node = running->node();
  TrainingView view(node, context.output, context.clock, /*step_lines=*/false);
  const UpgradeWatch watch(program, node);
  const auto ended = running->run(flags.plan, context.stop, [&](const runtime::Event& event) {
    if (const auto* ready = std::get_if<runtime::Ready>(&event)) return show_ready(*ready, context);
    const auto& reported = std::get<node::Event>(event);
    view.show(reported);
    if (std::holds_alternative<node::Prepared>(reported)) ending->start.prepared = true;
    if (const auto* changed = std::get_if<node::StateChanged>(&reported))
      show_state(*changed, *node.snapshot(), context);
  });
  view.clear();
  ending->next = watch.has_asked() ? "The program was replaced by another version, which goes on from here."
                                   : to_text(running->new_start());
  NS_RETURN_IF_ERROR(ended);
  context.output.line(
      fmt::format("Stopped after step {}; everything is saved.", node.snapshot()->training.step));
  return {};
}

// A node whose program was replaced goes on as the new one. One whose network has a model of another size goes on with that, and
// one that may take more memory plans it anew. All in the same process: a terminal, a service manager or the desktop app that
// started it has nothing to do.
Expected<void> run_on(const RunFlags& flags, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const platform::ProgramFile program, platform::ProgramFile::of_this_process());
  Ending ending;
  const auto ended = run(flags, program, context, &ending);
  // Only now, when nobody reaches the node any more: the final checkpoint takes a while, and a person may stop it meanwhile.
  if (!starts_anew(ending, context.stop)) return ended;
  if (!ended.ok()) context.output.error(ended.error());
  context.output.line(std::string(ending.next));
  return program.run_again(arguments_of_next_start(platform::own_arguments(), ending.start));
}

}  // namespace

void add_run_command(CLI::App& root, CommandContext& context) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App& command =
      add_command(root, "run", "Run the node until it is stopped (Ctrl-C or SIGTERM)",
                  {"neuroshardd run --text ~/books", "neuroshardd run --data-dir /srv/neuroshard"});
  command
      .add_option("--text", flags->plan.text_path,
                  "file or folder of training text, in addition to existing text")
      ->type_name("PATH");
  command.add_flag(
      "--safe", flags->safe,
      "safe mode: no training and no compute module; wallet, checkpoints, settings and logs work");
  command.add_flag("--existing-wallet", flags->existing_wallet,
                   "do not start without a wallet in the data directory, and create none");
  command
      .add_option("--sensor-root", flags->sensor_root,
                  "read battery, temperature and programs below this folder, to test rules (default /)")
      ->type_name("PATH");
  command
      .add_option("--peer,--tracker", flags->join.sources,
                  "bootstrap tracker or node, in addition to those of the profile; may be repeated")
      ->type_name("[ID@]HOST:PORT");
  command
      .add_option("--join", flags->invitation,
                  "join the network of this invitation, after you confirm it; "
                  "- reads the link from standard input")
      ->type_name("LINK");
  command.add_flag("--yes", flags->yes, "with --join: do not ask");
  command
      .add_option("--p2p-port", flags->join.port,
                  "listen for peers at this port (0 = any free port, kept for later starts)")
      ->type_name("PORT");
  command
      .add_option("--p2p-address", flags->join.address, "listen for peers at this address (default 0.0.0.0)")
      ->type_name("IP");
  command
      .add_option("--mainline-node", flags->join.mainline_nodes,
                  "node of the BitTorrent DHT, instead of the well-known ones; may be repeated")
      ->type_name("HOST:PORT");
  command.add_flag("--lan", flags->join.lan,
                   "for a private network: allow private addresses and many nodes per address");
  add_setting_flags(command, flags->settings);
  set_body(command, context, [flags, &context] { return run_on(*flags, context); });
}

}  // namespace neuroshard::app
