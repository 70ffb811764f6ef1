// neuroshardd reachability: tests whether other nodes can dial this computer, and advises if not.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/node/commands/core_client.h"
#include "app/node/output/network_text.h"
#include "core/nat/nat_pmp_mapper.h"
#include "core/nat/reachability_test.h"
#include "core/nat/upnp_mapper.h"
#include "core/platform/socket/default_gateway.h"

namespace neuroshard::app {
namespace {

constexpr std::size_t max_stun_servers = 4;
constexpr std::uint16_t default_port = 9000;
constexpr Duration look_period = std::chrono::milliseconds(250);
constexpr int looks = 60;

struct ReachabilityFlags {
  std::optional<std::uint16_t> port;
  std::vector<std::string> stun;
  std::string gateway;
  bool no_upnp = false, no_nat_pmp = false;
};

nlohmann::ordered_json to_json(const nat::MappingFinding& finding) {
  nlohmann::ordered_json json{{"mapping", nat::to_text(finding.mapping)}};
  if (finding.outside) json["outside"] = to_text(*finding.outside);
  for (const Error& failure : finding.failures) json["failures"].push_back(failure.message);
  return json;
}

nlohmann::ordered_json to_json(const nat::ReachabilityReport& report) {
  const nat::ReachabilityVerdict& verdict = report.verdict;
  nlohmann::ordered_json json{{"reach", nat::to_text(verdict.reach)},
                              {"verified", verdict.advertise.has_value()},
                              {"port_seems_open", verdict.unverified},
                              {"second_router", verdict.second_router},
                              {"other_way", verdict.other_way},
                              {"port", report.findings.port},
                              {"summary", verdict.summary},
                              {"found", verdict.found},
                              {"advice", verdict.advice}};
  if (!verdict.through.empty()) json["through"] = verdict.through;
  if (verdict.advertise) json["advertise"] = to_text(*verdict.advertise);
  if (report.findings.local) json["local"] = to_text(*report.findings.local);
  if (report.findings.gateway) json["gateway"] = to_text(*report.findings.gateway);
  if (report.findings.stun_asked) {
    json["udp"] = to_json(report.findings.udp);
    json["tcp"] = to_json(report.findings.tcp);
  }
  return json;
}

// Only the running core can ask other nodes to dial its port.
Expected<bool> test_own(CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const auto client, CoreClient::find(context));
  if (!client) return false;
  const auto look = [&] {
    return client->ask<node::NetworkView>([](node::Node& node, node::Reply<node::NetworkView> reply) {
      return node.query_network(std::move(reply));
    });
  };
  NS_ASSIGN_OR_RETURN(node::NetworkView view, look());
  if (!view.taking_part && !context.control_file.empty())
    return make_error(ErrorCode::Unavailable, "that node takes part in no network, so nobody tests its port");
  if (!view.taking_part) return false;
  context.output.note("asking the running node …");
  NS_RETURN_IF_ERROR(client->node().test_reachability());
  const auto before = view.tested_at;
  for (int i = 0; i < looks && (view.testing || !view.tested_at || view.tested_at == before); ++i) {
    if (context.stop_signal->wait_for(look_period)) break;
    NS_ASSIGN_OR_RETURN(view, look());
  }
  show_reachability(view, context);
  return true;
}

Expected<void> run_test(const ReachabilityFlags& flags, CommandContext& context) {
  if (!flags.port && flags.stun.empty()) {
    NS_ASSIGN_OR_RETURN(const bool answered, test_own(context));
    if (answered) return {};
  }
  NS_RETURN_IF_ERROR(refuse_control_file(context, "reachability with --port or --stun"));
  nat::ReachabilityOptions options;
  options.port = flags.port.value_or(default_port);
  options.keep_mapping = false;  // nothing listens after this command
  if (flags.stun.size() > max_stun_servers)
    return make_error(ErrorCode::InvalidArgument, fmt::format("at most {} --stun servers", max_stun_servers));
  for (const std::string& text : flags.stun) {
    auto endpoint = platform::parse_endpoint(text);
    if (!endpoint.ok()) return std::move(endpoint).error().with_context("--stun");
    options.stun_servers.push_back(*endpoint);
  }
  if (!flags.gateway.empty()) {
    auto gateway = platform::parse_ip(flags.gateway);
    if (!gateway.ok()) return std::move(gateway).error().with_context("--gateway");
    options.gateway = *gateway;
  } else if (const auto gateway = platform::default_gateway(); gateway.ok()) {
    options.gateway = *gateway;
  }
  std::unique_ptr<nat::PortMapper> upnp, nat_pmp;
  if (!flags.no_upnp) {
    upnp = nat::make_upnp_mapper();
    options.mappers.push_back(upnp.get());
  }
  if (!flags.no_nat_pmp && options.gateway) {
    nat_pmp = std::make_unique<nat::NatPmpMapper>(platform::Endpoint{*options.gateway, nat::nat_pmp::port});
    options.mappers.push_back(nat_pmp.get());
  }
  const nat::Io io{context.clock, context.entropy, context.stop};
  NS_ASSIGN_OR_RETURN(const nat::ReachabilityReport report,
                      nat::test_reachability(io, options, [&context](std::string_view words) {
                        context.output.note(std::string(words) + " …");
                      }));
  context.output.json_line(to_json(report));
  context.output.line(report.verdict.summary);
  for (const std::string& found : report.verdict.found) context.output.line("  " + found);
  if (!report.verdict.advice.empty()) context.output.line(report.verdict.advice);
  return {};
}

}  // namespace

void add_reachability_command(CLI::App& root, CommandContext& context) {
  auto flags = std::make_shared<ReachabilityFlags>();
  CLI::App& command = add_command(
      root, "reachability",
      "Test whether other nodes can dial this computer, and show what to do if not.\nAsks the router to open "
      "the port by UPnP and NAT-PMP and removes the mapping at the end. Without --port and --stun, a running "
      "node makes the test instead: it asks other nodes to dial it. Otherwise nobody dials the port, and an "
      "open one is reported as not verified. Contacts no server except those of --stun.",
      {"neuroshardd reachability",
       "neuroshardd reachability --stun 192.0.2.1:3478 --stun 192.0.2.9:3478 --json"});
  command.add_option("--port", flags->port, "TCP port (default: 9000, or that of the running node)")
      ->check(CLI::Range(1, 65535));
  command.add_option("--stun", flags->stun,
                     "STUN server, ADDRESS:PORT; two with different addresses detect the kind of NAT");
  command.add_option("--gateway", flags->gateway,
                     "address of the router (default: that of the default route)");
  command.add_flag("--no-upnp", flags->no_upnp, "do not search for a UPnP router");
  command.add_flag("--no-nat-pmp", flags->no_nat_pmp, "do not use NAT-PMP");
  set_body(
      command, context, [flags, &context] { return run_test(*flags, context); }, WorksWith::AnyComputer);
}

}  // namespace neuroshard::app
