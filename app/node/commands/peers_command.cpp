// neuroshardd peers: the nodes that a tracker or a running node knows. neuroshardd dht get|put: a client of
// the hash table.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/node/commands/core_client.h"
#include "app/node/commands/guest_flags.h"
#include "app/node/output/network_text.h"

namespace neuroshard::app {
namespace {

struct AskFlags {
  GuestFlags guest;
  std::string path, text;
};

void show(const net::NodeRecord& record, CommandContext& context) {
  const std::string at =
      record.endpoints.empty() ? "behind a NAT" : platform::to_text(record.endpoints.front().endpoint);
  context.output.json_line(
      {{"id", to_hex(record.id())},
       {"address", record.endpoints.empty() ? "" : at},
       {"reach", record.endpoints.empty()                                ? "none"
                 : record.endpoints.front().reach == net::Reach::Relayed ? "relayed"
                 : record.endpoints.front().reach == net::Reach::Turn    ? "turn"
                                                                         : "direct"},
       {"memory_bytes", record.memory_bytes},
       {"tokens_per_second", record.tokens_per_second},
       {"upload", record.upload},
       {"download", record.download},
       {"slots", record.slots.size()},
       {"program", record.program},
       {"wallet", record.delegation ? crypto::wallet_id(record.delegation->wallet_key) : ""},
       {"expires_ms", to_unix_ms(record.expires)}});
  context.output.line(fmt::format("{}…  {:<22} {:>8.1f} GB  {}", to_hex(record.id()).substr(0, 12), at,
                                  static_cast<double>(record.memory_bytes) / 1e9, record.program));
}

// The running core of this data directory has all the information.
Expected<void> show_own(CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const auto client, CoreClient::find(context));
  if (!client)
    return make_error(ErrorCode::InvalidArgument,
                      "no core runs here: start one with `neuroshardd run`, or set another network with "
                      "--profile and one of "
                      "its nodes with --at");
  NS_ASSIGN_OR_RETURN(
      const node::NetworkView view,
      client->ask<node::NetworkView>([](node::Node& node, node::Reply<node::NetworkView> reply) {
        return node.query_network(std::move(reply));
      }));
  show_network(view, context);
  return {};
}

Expected<void> list_peers(const AskFlags& flags, CommandContext& context) {
  if (context.profile.empty() && flags.guest.at.empty()) return show_own(context);
  NS_RETURN_IF_ERROR(refuse_control_file(context, "peers with --at or --profile"));
  const runtime::GuestOptions guest = guest_options(flags.guest, {}, context);
  NS_ASSIGN_OR_RETURN(const runtime::GuestNetwork network, runtime::guest_network(guest, context.files));
  NS_ASSIGN_OR_RETURN(const auto host, runtime::start_guest(network, guest, context.services()));
  NS_ASSIGN_OR_RETURN(const runtime::Acquaintance known,
                      runtime::get_acquainted(*host, network, guest_notes(context)));
  context.output.note(fmt::format("{} {} ({}…), version {}",
                                  known.hello.offers(net::Feature::Tracker) ? "tracker" : "node",
                                  platform::to_text(known.contact.endpoint),
                                  to_hex(known.contact.id).substr(0, 12), known.hello.program));
  for (const net::NodeRecord& record : known.records) show(record, context);
  if (known.records.empty()) context.output.note("it knows no reachable nodes");
  return {};
}

Expected<void> with_table(const AskFlags& flags, CommandContext& context,
                          const std::function<Expected<void>(runtime::PeerHost&, dht::DhtNode&)>& use) {
  NS_RETURN_IF_ERROR(dht::check_path(flags.path));
  const runtime::GuestOptions guest = guest_options(flags.guest, {}, context);
  NS_ASSIGN_OR_RETURN(const runtime::GuestNetwork network, runtime::guest_network(guest, context.files));
  NS_ASSIGN_OR_RETURN(const auto host, runtime::start_guest(network, guest, context.services()));
  NS_ASSIGN_OR_RETURN(const runtime::Acquaintance known,
                      runtime::get_acquainted(*host, network, guest_notes(context)));
  runtime::GuestPaths paths(*host, network, guest, known);
  NS_ASSIGN_OR_RETURN(const auto table, runtime::GuestTable::open(*host, network, guest, known, paths));
  context.output.note(fmt::format("{} member(s) of the hash table known", table->known_members()));
  return use(*host, table->node());
}

Expected<void> get(const AskFlags& flags, CommandContext& context) {
  return with_table(flags, context, [&](runtime::PeerHost& host, dht::DhtNode& node) -> Expected<void> {
    const auto found = runtime::wait_for<Expected<dht::LookupResult>>(
        host, [&](auto done) { node.get(flags.path, std::move(done)); });
    if (!found.ok()) return found.error();
    for (const dht::Record& record : found->records) {
      const bool text = std::all_of(record.payload.begin(), record.payload.end(),
                                    [](std::uint8_t byte) { return byte >= 0x20 && byte < 0x7f; });
      const std::string value = text ? std::string(as_text(record.payload)) : to_hex(record.payload);
      context.output.json_line({{"publisher", to_hex(record.publisher)},
                                {"sequence", record.sequence},
                                {"expires_ms", to_unix_ms(record.expires)},
                                {text ? "text" : "hex", value}});
      context.output.line(fmt::format("{}…  {}", to_hex(record.publisher).substr(0, 12), value));
    }
    context.output.note(
        fmt::format("{} record(s), {} member(s) asked", found->records.size(), found->answered.size()));
    if (found->records.empty())
      return make_error(ErrorCode::NotFound, fmt::format("no record found at {}", flags.path));
    return {};
  });
}

Expected<void> put(const AskFlags& flags, CommandContext& context) {
  return with_table(flags, context, [&](runtime::PeerHost& host, dht::DhtNode& node) -> Expected<void> {
    const auto stored = runtime::wait_for<Expected<dht::Published>>(host, [&](auto done) {
      node.publish(flags.path, Bytes(flags.text.begin(), flags.text.end()), std::move(done));
    });
    if (!stored.ok()) return stored.error();
    context.output.json_line(
        {{"path", flags.path}, {"publisher", to_hex(host.key().public_key())}, {"stored", stored->stored}});
    context.output.line(fmt::format("Stored by {} member(s) for one hour.", stored->stored));
    return {};
  });
}

}  // namespace

void add_peers_command(CLI::App& root, CommandContext& context) {
  auto flags = std::make_shared<AskFlags>();
  CLI::App& command =
      add_command(root, "peers",
                  "Show the peers and the reachability of the running node, or the nodes that a tracker or "
                  "another node knows",
                  {"neuroshardd peers", "neuroshardd peers --profile village.json --at 192.0.2.1:8765"});
  add_guest_flags(command, flags->guest);
  set_body(
      command, context, [flags, &context] { return list_peers(*flags, context); }, WorksWith::AnyComputer);
}

void add_dht_command(CLI::App& root, CommandContext& context) {
  CLI::App& dht = add_command(root, "dht", "The network's hash table: read and write small signed records",
                              {"neuroshardd dht get /values/hello --profile village.json"});
  auto read = std::make_shared<AskFlags>();
  CLI::App& get_command =
      add_command(dht, "get", "Show the records of a path",
                  {"neuroshardd dht get /values/hello --profile village.json",
                   "neuroshardd dht get /nodes/ID --profile village.json --at 192.0.2.1:9000",
                   "neuroshardd dht get /layers/0 --profile village.json --at 192.0.2.1:9000"});
  get_command
      .add_option("path", read->path,
                  "/nodes/ID, /layers/L, /experts/L/E, /checkpoints/ID, /shards/I, /values/NAME")
      ->required();
  add_guest_flags(get_command, read->guest);
  set_body(get_command, context, [read, &context] { return get(*read, context); });

  auto write = std::make_shared<AskFlags>();
  CLI::App& put_command =
      add_command(dht, "put", "Publish a short text at a path, signed with a new key",
                  {"neuroshardd dht put /values/hello \"good morning\" --profile village.json"});
  put_command.add_option("path", write->path, "usually /values/NAME")->required();
  put_command.add_option("text", write->text, "text to publish")->required();
  add_guest_flags(put_command, write->guest);
  set_body(put_command, context, [write, &context] { return put(*write, context); });
}

}  // namespace neuroshard::app
