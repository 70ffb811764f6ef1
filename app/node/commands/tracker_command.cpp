// neuroshardd tracker: the tracker alone. It registers the nodes of one network, passes on their signed
// records, dials callers back and reports their observed address. It requires no data directory, and no node
// trusts it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/node/commands/key_file.h"
#include "core/config/network_profile.h"
#include "core/runtime/peer_host.h"

namespace neuroshard::app {
namespace {

constexpr Duration poll_period = std::chrono::milliseconds(500);
constexpr std::uint16_t default_port = 8765;

struct TrackerFlags {
  std::string address = "0.0.0.0";
  std::optional<std::uint16_t> port;
  std::string key;
  bool lan = false;
  bool no_relay = false;
};

// The tracker's key: from a file, which keeps its id, or new for this run.
Expected<crypto::KeyPair> tracker_key(const std::string& path, CommandContext& context) {
  if (path.empty()) return crypto::KeyPair::generate(context.entropy);
  NS_ASSIGN_OR_RETURN(KeyFromFile file, read_or_make_key(context, path));
  return std::move(file.key);
}

Expected<void> run_tracker(const TrackerFlags& flags, CommandContext& context) {
  if (context.profile.empty()) {
    return make_error(ErrorCode::InvalidArgument,
                      "a tracker requires --profile: the network that it serves (a built-in name or a file)");
  }
  NS_ASSIGN_OR_RETURN(const config::NetworkProfile profile,
                      config::load_network_profile(context.files, context.profile));
  NS_ASSIGN_OR_RETURN(const platform::IpAddress ip, platform::parse_ip(flags.address));
  NS_ASSIGN_OR_RETURN(crypto::KeyPair key, tracker_key(flags.key, context));
  const auto from_profile = static_cast<std::uint16_t>(profile.directory.tracker_port);
  runtime::PeerHostOptions options;
  options.listen =
      platform::Endpoint{ip, flags.port.value_or(from_profile != 0 ? from_profile : default_port)};
  options.swarm.network_id = config::network_id(profile.consensus);
  options.swarm.one_lan = flags.lan;
  options.swarm.tracker = true;
  options.relay = !flags.no_relay;
  NS_ASSIGN_OR_RETURN(const auto host,
                      runtime::PeerHost::start(std::move(key), context.services(), std::move(options)));
  context.output.json_line({{"ready", true},
                            {"address", platform::to_text(host->endpoint())},
                            {"port", host->endpoint().port},
                            {"network", profile.consensus.name},
                            {"network_id", to_hex(config::network_id(profile.consensus))},
                            {"id", to_hex(host->id())}});
  context.output.line(fmt::format("Tracker of the network {} on {}\n  id {}", profile.consensus.name,
                                  platform::to_text(host->endpoint()), to_hex(host->id())));
  std::size_t shown = 0;
  while (!context.stop_signal->wait_for(poll_period)) {
    swarm::TrackerStatistics sum;
    host->run([&] { sum = host->member().statistics(); });
    if (sum.nodes == shown) continue;
    shown = sum.nodes;
    context.output.json_line(
        {{"nodes", sum.nodes}, {"reachable", sum.reachable}, {"memory_bytes", sum.memory_bytes}});
    context.output.line(fmt::format("{} node(s), {} of them reachable", sum.nodes, sum.reachable));
  }
  context.output.line("Stopped.");
  return {};
}

}  // namespace

void add_tracker_command(CLI::App& root, CommandContext& context) {
  auto flags = std::make_shared<TrackerFlags>();
  CLI::App& command = add_command(
      root, "tracker", "Serve a network as its tracker: list its nodes and test their reachability",
      {"neuroshardd tracker --profile village.json",
       "neuroshardd tracker --profile devnet --address 127.0.0.1 --port 28765 --lan"});
  command.add_option("--address", flags->address, "address to listen on (default 0.0.0.0; :: for IPv6 too)")
      ->type_name("IP");
  command
      .add_option("--port", flags->port,
                  "port to listen on (default: the network's, else 8765; 0 = any free port)")
      ->type_name("PORT");
  command
      .add_option("--key", flags->key,
                  "file of the tracker's key, created if missing; without it, each run has a new id")
      ->type_name("FILE");
  command.add_flag("--lan", flags->lan,
                   "for a private network: allow private addresses and many nodes per address");
  command.add_flag("--no-relay", flags->no_relay, "do not relay connections for nodes that can't be dialled");
  set_body(command, context, [flags, &context] { return run_tracker(*flags, context); });
}

}  // namespace neuroshard::app
