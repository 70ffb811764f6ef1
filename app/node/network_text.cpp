#include "app/node/network_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/node/progress.h"

namespace neuroshard::app {
namespace {

using Json = nlohmann::ordered_json;

Json reach_json(const node::NetworkView& view) {
  Json json{{"taking_part", view.taking_part},
            {"listens_at", view.listens_at},
            {"reach", view.reach},
            {"verified", !view.advertised.empty()},
            {"advertise", view.advertised},
            {"relay", view.relay},
            {"relay_trouble", view.relay_trouble},
            {"turn_server", view.turn_server},
            {"turn", view.turn},
            {"turn_trouble", view.turn_trouble},
            {"relaying", view.relaying},
            {"relayed_nodes", view.relayed_nodes},
            {"testing", view.testing},
            {"summary", view.summary},
            {"found", view.found},
            {"advice", view.advice}};
  if (view.tested_at) json["tested_ms"] = to_unix_ms(*view.tested_at);
  return json;
}

Json lists_json(const node::NetworkView& view) {
  Json json = reach_json(view);
  json["known_nodes"] = view.known_nodes;
  json["table_members"] = view.table_members;
  json["bytes_in"] = view.bytes_in;
  json["bytes_out"] = view.bytes_out;
  json["upload"] = view.upload;
  json["download"] = view.download;
  for (const char* list : {"sources", "peers", "bans", "refusals"}) json[list] = Json::array();
  for (const node::SourceEntry& source : view.sources)
    json["sources"].push_back({{"address", source.address},
                               {"kind", source.kind},
                               {"connected", source.connected},
                               {"state", source.state}});
  for (const node::PeerEntry& peer : view.peers) {
    Json entry{{"id", peer.id},
               {"address", peer.address},
               {"way", peer.way},
               {"connected", peer.connected},
               {"round_trip_s", nullptr},
               {"version", peer.version},
               {"memory_bytes", peer.memory_bytes},
               {"tokens_per_second", peer.tokens_per_second},
               {"upload", peer.upload},
               {"download", peer.download},
               {"bytes_in", peer.bytes_in},
               {"bytes_out", peer.bytes_out},
               {"problem", peer.problem}};
    if (peer.round_trip) entry["round_trip_s"] = *peer.round_trip;
    json["peers"].push_back(std::move(entry));
  }
  for (const node::BanEntry& ban : view.bans)
    json["bans"].push_back({{"id", ban.id}, {"until_ms", to_unix_ms(ban.until)}, {"reason", ban.reason}});
  for (const node::RefusalEntry& refusal : view.refusals)
    json["refusals"].push_back({{"reason", refusal.reason}, {"count", refusal.count}});
  return json;
}

void say_reach(const node::NetworkView& view, Output& out) {
  if (!view.taking_part)
    return out.line("This node has joined no network: it trains alone, and no port is open.");
  out.line(view.summary);
  for (const std::string& found : view.found) out.line("  " + found);
  if (!view.relay.empty()) out.line(fmt::format("Others reach it through the relay {}.", view.relay));
  if (!view.relay_trouble.empty())
    out.line(fmt::format("No relay stands in for it: {}.", view.relay_trouble));
  if (!view.turn.empty())
    out.line(fmt::format(
        "Nodes that it lets in dial it at {}, through your TURN server {}: relayed, by a machine of yours.",
        view.turn, view.turn_server));
  if (!view.turn_trouble.empty())
    out.line(fmt::format("Your TURN server {} can't be used now: {}.", view.turn_server, view.turn_trouble));
  if (view.relaying)
    out.line(
        fmt::format("It relays for nodes that nobody can dial; {} hold a place here.", view.relayed_nodes));
  if (!view.advice.empty()) out.line(view.advice);
}

// "12.0 MiB/s in, 1.1 MiB/s out"; empty: nothing was measured.
std::string line_text(std::uint64_t download, std::uint64_t upload) {
  std::string text;
  if (download != 0) text = format_bytes(download) + "/s in";
  if (upload != 0) text += (text.empty() ? "" : ", ") + format_bytes(upload) + "/s out";
  return text;
}

std::string state_of(const node::PeerEntry& peer) {
  if (peer.connected) return "connected";
  return peer.problem.empty() ? "not connected now" : peer.problem;
}

}  // namespace

void show_reachability(const node::NetworkView& view, CommandContext& context) {
  context.output.json_line(reach_json(view));
  say_reach(view, context.output);
}

void show_network(const node::NetworkView& view, CommandContext& context) {
  Output& out = context.output;
  out.json_line(lists_json(view));
  say_reach(view, out);
  if (!view.taking_part) return;
  if (const std::string line = line_text(view.download, view.upload); !line.empty())
    out.line(fmt::format("Its line has carried {}; the others are told so.", line));
  for (const node::SourceEntry& source : view.sources)
    out.line(fmt::format("{:<8} {:<24} {}", source.kind, source.address, source.state));
  for (const node::PeerEntry& peer : view.peers) {
    const std::string latency = peer.round_trip ? fmt::format("{:.0f} ms", *peer.round_trip * 1e3) : "-";
    const std::string line = line_text(peer.download, peer.upload);
    out.line(fmt::format("{}…  {:<8} {:>8}  {:<8} in {} B, out {} B  {}{}", peer.id.substr(0, 12), peer.way,
                         latency, peer.version, peer.bytes_in, peer.bytes_out, state_of(peer),
                         line.empty() ? line : "; its line: " + line));
  }
  for (const node::BanEntry& ban : view.bans)
    out.line(fmt::format("{}…  banned: {}", ban.id.substr(0, 12), ban.reason));
  for (const node::RefusalEntry& refusal : view.refusals)
    out.line(fmt::format("refused {} time(s): {}", refusal.count, refusal.reason));
  out.line(fmt::format("{} node(s) known by their records, {} in the hash table", view.known_nodes,
                       view.table_members));
}

}  // namespace neuroshard::app
