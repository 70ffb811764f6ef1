// neuroshardd run: the long-lived owner of a data directory. Trains until it is told to stop.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/node/event_queue.h"
#include "app/node/exchange_part.h"
#include "app/node/invite_command.h"
#include "app/node/invited_peers.h"
#include "app/node/join_network.h"
#include "app/node/open_directory.h"
#include "app/node/rounds_part.h"
#include "app/node/snapshot_text.h"
#include "app/node/training_view.h"
#include "core/control/service.h"
#include "core/engine/engine.h"
#include "core/engine/machine_sensors.h"
#include "core/network_module/network_module.h"
#include "core/platform/file/paths.h"
#include "core/platform/process/heap.h"

namespace neuroshard::app {
namespace {

constexpr Duration poll = std::chrono::milliseconds(50);
// What the other members get at most to take the word that this node goes; and to end the round when they
// have begun to, because they can't without it.
constexpr Duration farewell = std::chrono::seconds(2);
constexpr Duration last_round = std::chrono::seconds(10);

struct RunFlags {
  node::TrainingPlan plan;
  bool safe = false;
  std::string sensor_root = "/";
  std::shared_ptr<SettingFlags> settings = std::make_shared<SettingFlags>();
  JoinFlags join;
  std::string invitation;
  bool yes = false;
};

// One line that whoever started this process waits for.
void say_ready(const node::Snapshot& view, CommandContext& context) {
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
  if (view.safe_mode) context.output.line("Safe mode: nothing is trained. Start it without --safe to go on.");
}

// A node without the service still trains and stops by signal: a warning, not an end.
std::unique_ptr<control::Server> start_control(node::Node& node, Logger& logger, CommandContext& context) {
  auto server = [&]() -> Expected<std::unique_ptr<control::Server>> {
    NS_ASSIGN_OR_RETURN(const auto network, network_module::load_network_module());
    control::ServerOptions options;
    options.data_directory = node.snapshot()->program.data_directory;
    options.runtime_directory = platform::runtime_directory(platform::process_environment());
    options.build = program_version();
    options.format = config::data_directory_format;
    return network.start_server(node, {context.files, context.entropy, context.clock, logger},
                                std::move(options));
  }();
  if (server.ok()) return std::move(*server);
  logger.warning("control", "The control service is not available: " + server.error().describe());
  return nullptr;
}

void say_joined(const PeerHost& host, CommandContext& context) {
  context.output.json_line({{"peers", true},
                            {"address", platform::to_text(host.endpoint())},
                            {"port", host.endpoint().port},
                            {"id", to_hex(host.id())}});
  context.output.line(
      fmt::format("Peers reach this node at port {}; its id is {}", host.endpoint().port, to_hex(host.id())));
}

void say_state(const node::StateChanged& changed, const node::Snapshot& view, CommandContext& context) {
  nlohmann::ordered_json line = {{"state", std::string(to_string(changed.state))}};
  if (changed.error) line["message"] = changed.error->describe();
  if (changed.state == node::RunState::Paused) {
    line["pause_reasons"] = pause_reasons_json(view);
    context.output.note(state_text(view));
  }
  context.output.json_line(line);
}

// The end of a node's part in the rounds: it says so, and goes when the others can do without it, soon in any
// case.
class Farewell {
 public:
  Farewell(RoundsPart* rounds, const Clock& clock) : rounds_(rounds), clock_(clock) {}
  void begin() {
    if (rounds_ == nullptr || begun_) return;
    begun_ = clock_.monotonic_now();
    rounds_->leave();
  }
  // Nothing is waited for any more; true before begin(), too.
  bool over() const {
    if (!begun_ || rounds_->left()) return true;
    const Duration passed = clock_.monotonic_now() - *begun_;
    return passed >= last_round || (passed >= farewell && !rounds_->needed());
  }

 private:
  RoundsPart* rounds_;
  const Clock& clock_;
  std::optional<MonotonicTime> begun_;
};

// What the node trains is told to the others while it is there.
class Watch {
 public:
  Watch(RoundsPart* rounds, node::Node* node) : rounds_(rounds) {
    if (rounds_ != nullptr) rounds_->watch(node);
  }
  ~Watch() {
    if (rounds_ != nullptr) rounds_->watch(nullptr);
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  RoundsPart* rounds_;
};

// The peers of an invitation are kept: the next start begins with them, too.
Expected<OpenedDirectory> open_invited(const RunFlags& flags, CommandContext& context) {
  std::vector<std::string> invited;
  if (!flags.invitation.empty()) {
    NS_ASSIGN_OR_RETURN(invited, follow_invitation(flags.invitation, flags.yes, context));
  }
  NS_ASSIGN_OR_RETURN(OpenedDirectory opened,
                      open_data_directory(context, OpenMode::Create, *flags.settings));
  if (!invited.empty())
    NS_RETURN_IF_ERROR(keep_invited_peers(context.files, opened.directory->path(), invited));
  return opened;
}

Expected<void> run(const RunFlags& flags, CommandContext& context) {
  platform::keep_heap_small();  // before the threads of the network
  NS_ASSIGN_OR_RETURN(OpenedDirectory opened, open_invited(flags, context));
  engine::EngineOptions options;
  options.version = program_version();
  options.remember_contributing = true;
  options.safe_mode = flags.safe;
  options.sensors = engine::make_machine_sensors(context.files, opened.directory->path(), flags.sensor_root);
  if (!opened.crash_notice.empty())
    options.alerts.push_back({"crashed", node::Severity::Warning, opened.crash_notice, {}});
  std::unique_ptr<NetworkPart> peers;
  if (!flags.safe) {
    NS_ASSIGN_OR_RETURN(peers, NetworkPart::join(flags.join, *opened.directory, *opened.logger, context));
  }
  std::unique_ptr<ExchangePart> exchange;
  std::unique_ptr<RoundsPart> rounds;
  if (peers) {
    ExchangePart::Options files;
    files.checkpoints = opened.directory->checkpoints_path();
    files.one_lan = peers->reporting_as().one_lan;
    files.serve = opened.directory->settings().word(config::Setting::ServeFiles) == "on";
    files.other_content = context.other_content;
    exchange = std::make_unique<ExchangePart>(peers->host(), *opened.logger, context.files, std::move(files));
    options.held_checkpoints = exchange->holds();
    options.data_peers = exchange.get();
    options.network = &peers->report();
    rounds =
        RoundsPart::make(peers->host(), *opened.directory, *opened.logger, context, peers->reporting_as());
  }
  if (rounds) {
    options.rounds = rounds->trainer();
    options.rounds_view = rounds->view();
    options.rounds_report = rounds->status().report();
    options.rounds_alerts = rounds->status().alerts();
  }
  const auto node = engine::Engine::start(std::move(opened.directory),
                                          {context.files, context.clock, *opened.logger}, std::move(options));
  const Watch watch(rounds.get(), node.get());
  TrainingView view(*node, context.output, context.clock, /*step_lines=*/false);
  EventQueue events(*node);
  const auto control = start_control(*node, *opened.logger, context);
  say_ready(*node->snapshot(), context);
  if (peers) say_joined(peers->host(), context);
  if (const std::string notice = node->snapshot()->program.notice; !notice.empty())
    context.output.note(notice);
  NS_RETURN_IF_ERROR(node->start_training(flags.plan));
  bool stopping = false;
  std::optional<Error> failure;  // what training stands still for
  Farewell goodbye(rounds.get(), context.clock);
  while (true) {
    if (!stopping && context.stop.cancelled()) {
      goodbye.begin();
      stopping = goodbye.over();
      if (stopping)
        static_cast<void>(node->request_shutdown().ok());  // refused when "neuroshardd stop" came first
    }
    if (peers) {
      peers->keep_peers();
      peers->tell_capacity(*node->snapshot());
    }
    const auto event = events.next(poll);
    if (!event) continue;
    view.show(*event);
    if (const auto* changed = std::get_if<node::StateChanged>(&*event)) {
      say_state(*changed, *node->snapshot(), context);
      if (changed->state != node::RunState::Stopping) failure = changed->error;
    }
    const auto* ended = std::get_if<node::Ended>(&*event);
    if (ended == nullptr) continue;
    goodbye.begin();  // ended by "neuroshardd stop" or the app
    while (!goodbye.over()) static_cast<void>(events.next(poll));
    if (rounds) rounds->stop();
    if (exchange) exchange->stop();
    if (peers) peers->keep_peers_now();
    view.clear();
    if (ended->error) return *ended->error;
    // Stopping went well, but a supervisor should learn that the node was not doing its work.
    if (failure) return std::move(*failure).with_context("training had failed before the stop");
    context.output.line(
        fmt::format("Stopped after step {}; everything is saved.", node->snapshot()->training.step));
    return {};
  }
}

}  // namespace

void add_run_command(CLI::App& root, CommandContext& context) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App& command =
      add_command(root, "run", "Run the node until it is stopped (Ctrl-C or SIGTERM)",
                  {"neuroshardd run --text ~/books", "neuroshardd run --data-dir /srv/neuroshard"});
  command
      .add_option("--text", flags->plan.text_path,
                  "a file or folder of text to learn from, beside what is there")
      ->type_name("PATH");
  command.add_flag(
      "--safe", flags->safe,
      "safe mode: no training and no compute module; wallet, checkpoints, settings and logs work");
  command
      .add_option("--sensor-root", flags->sensor_root,
                  "read battery, temperature and programs below this folder, to try rules out (default /)")
      ->type_name("PATH");
  command
      .add_option("--peer,--tracker", flags->join.sources,
                  "a tracker or node to begin with, beside those of the network's profile; may be repeated")
      ->type_name("[ID@]HOST:PORT");
  command
      .add_option("--join", flags->invitation,
                  "join the network of an invitation, which is shown and asked about first")
      ->type_name("LINK");
  command.add_flag("--yes", flags->yes, "with --join: do not ask");
  command
      .add_option("--p2p-port", flags->join.port,
                  "listen for peers at this port (0 = any free one, which is kept)")
      ->type_name("PORT");
  command
      .add_option("--p2p-address", flags->join.address, "listen for peers at this address (default 0.0.0.0)")
      ->type_name("IP");
  command
      .add_option("--mainline-node", flags->join.mainline_nodes,
                  "a node of the BitTorrent DHT, in place of the well-known ones; may be repeated")
      ->type_name("HOST:PORT");
  command.add_flag("--lan", flags->join.lan,
                   "a network of one's own: private addresses, many nodes of one address");
  add_setting_flags(command, flags->settings);
  set_body(command, context, [flags, &context] { return run(*flags, context); });
}

}  // namespace neuroshard::app
