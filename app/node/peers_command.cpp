// neuroshardd peers: whom a tracker or a running node knows. neuroshardd dht get|put: the hash table, as a
// client of it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <future>
#include <nlohmann/json.hpp>

#include "app/node/core_client.h"
#include "app/node/network_text.h"
#include "app/node/peer_host.h"
#include "core/engine/network_profile.h"
#include "core/swarm/messages.h"

namespace neuroshard::app {
namespace {

constexpr Duration call_patience = std::chrono::seconds(5);
constexpr std::size_t answer_bytes = 100u << 10;

struct AskFlags {
  std::vector<std::string> at;
  bool lan = false;
  std::string path, text;
};

void add_ask_flags(CLI::App& command, AskFlags& flags) {
  command
      .add_option("--at", flags.at,
                  "a tracker or node to ask; may be repeated (default: those of the network's profile)")
      ->type_name("[ID@]HOST:PORT");
  command.add_flag("--lan", flags.lan, "a network of one's own: private addresses count");
}

struct Network {
  Hash256 id{};
  std::vector<net::Dial> sources;
};

Expected<Network> network_of(const AskFlags& flags, CommandContext& context) {
  if (context.profile.empty())
    return make_error(ErrorCode::InvalidArgument,
                      "name the network with --profile (a built-in name or a file)");
  NS_ASSIGN_OR_RETURN(const engine::NetworkProfile profile,
                      engine::load_network_profile(context.files, context.profile));
  Network network;
  network.id = engine::network_id(profile.consensus);
  std::vector<std::string> texts = flags.at;
  if (texts.empty()) {
    texts = profile.directory.trackers;
    texts.insert(texts.end(), profile.directory.bootstrap.begin(), profile.directory.bootstrap.end());
  }
  if (texts.empty())
    return make_error(ErrorCode::NotFound,
                      "this network's profile names no tracker and no node: name one with --at");
  NS_ASSIGN_OR_RETURN(network.sources, parse_dials(texts));
  return network;
}

// A guest: a key of its own for this one question.
Expected<std::unique_ptr<PeerHost>> guest(const Network& network, const AskFlags& flags,
                                          CommandContext& context) {
  PeerHostOptions options;
  options.member = false;
  options.swarm.network_id = network.id;
  options.swarm.program = program_version();
  options.swarm.one_lan = flags.lan;
  return PeerHost::start(crypto::KeyPair::generate(context.entropy), context.clock, context.entropy,
                         context.logger, std::move(options));
}

// Starts something on the host's executor and waits for what it calls back with. Every call has a deadline of
// its own.
template <class T>
T wait_for(PeerHost& host, const std::function<void(std::function<void(T)>)>& start) {
  auto promise = std::make_shared<std::promise<T>>();
  auto future = promise->get_future();
  host.run([&] { start([promise](T value) { promise->set_value(std::move(value)); }); });
  return future.get();
}

using Channel = std::shared_ptr<net::PeerChannel>;

Expected<Channel> connect(PeerHost& host, const net::Dial& to) {
  return wait_for<Expected<Channel>>(
      host, [&](auto done) { host.transport().connect(to, net::connect_deadline, std::move(done)); });
}

// The first that answers; else the last one's error.
Expected<Channel> connect_any(PeerHost& host, const Network& network, CommandContext& context) {
  Expected<Channel> channel = make_error(ErrorCode::Unavailable, "nobody to ask");
  for (const net::Dial& dial : network.sources) {
    channel = connect(host, dial);
    if (channel.ok()) return channel;
    context.output.note(channel.error().describe());
  }
  return channel;
}

void show(const net::NodeRecord& record, CommandContext& context) {
  const std::string at =
      record.endpoints.empty() ? "behind a NAT" : platform::to_text(record.endpoints.front().endpoint);
  context.output.json_line(
      {{"id", to_hex(record.id())},
       {"address", record.endpoints.empty() ? "" : at},
       {"reach", record.endpoints.empty()                                ? "none"
                 : record.endpoints.front().reach == net::Reach::Relayed ? "relayed"
                                                                         : "direct"},
       {"memory_bytes", record.memory_bytes},
       {"tokens_per_second", record.tokens_per_second},
       {"slots", record.slots.size()},
       {"program", record.program},
       {"wallet", record.delegation ? crypto::wallet_id(record.delegation->wallet_key) : ""},
       {"expires_ms", to_unix_ms(record.expires)}});
  context.output.line(fmt::format("{}…  {:<22} {:>8.1f} GB  {}", to_hex(record.id()).substr(0, 12), at,
                                  static_cast<double>(record.memory_bytes) / 1e9, record.program));
}

// The running core of this data directory says it all.
Expected<void> show_own(CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const auto client, CoreClient::find(context));
  if (!client)
    return make_error(
        ErrorCode::InvalidArgument,
        "no core runs here to be asked: start one with `neuroshardd run`, or name another network "
        "with --profile and a node of it with --at");
  NS_ASSIGN_OR_RETURN(
      const node::NetworkView view,
      client->ask<node::NetworkView>([](node::Node& node, node::Reply<node::NetworkView> reply) {
        return node.query_network(std::move(reply));
      }));
  show_network(view, context);
  return {};
}

Expected<void> list_peers(const AskFlags& flags, CommandContext& context) {
  if (context.profile.empty() && flags.at.empty()) return show_own(context);
  NS_ASSIGN_OR_RETURN(const Network network, network_of(flags, context));
  NS_ASSIGN_OR_RETURN(const auto host, guest(network, flags, context));
  NS_ASSIGN_OR_RETURN(Channel channel, connect_any(*host, network, context));
  const bool tracker = channel->hello().offers(net::Feature::Tracker);
  const auto answer = wait_for<Expected<Bytes>>(*host, [&](auto done) {
    channel->call(tracker ? net::Method::TrackerPeers : net::Method::Peers,
                  swarm::encode_count(swarm::max_records), net::call_deadline(call_patience, 1, answer_bytes),
                  std::move(done));
  });
  context.output.note(fmt::format("{} {} ({}…), version {}", tracker ? "tracker" : "node",
                                  platform::to_text(channel->endpoint()), to_hex(channel->id()).substr(0, 12),
                                  channel->hello().program));
  const net::NodeId answering = channel->id();
  host->run([&] { channel.reset(); });
  if (!answer.ok()) return answer.error();
  NS_ASSIGN_OR_RETURN(const auto records, swarm::decode_records(*answer));
  std::size_t shown = 0;
  for (const net::NodeRecord& record : records) {
    if (record.id() == answering) continue;  // whom it knows, beside itself
    if (!net::check_node_record(record, network.id, context.clock.wall_now()).ok()) continue;
    ++shown;
    show(record, context);
  }
  if (shown == 0) context.output.note("it knows nobody who is reachable");
  return {};
}

// A client of the table for one command.
struct TableClient {
  std::unique_ptr<net::PeerPool> pool;
  std::unique_ptr<dht::DhtNode> node;
};

// The members to begin with: the nodes asked, and those that a tracker among them names.
Expected<std::vector<net::Contact>> first_members(PeerHost& host, const Network& network,
                                                  CommandContext& context) {
  std::vector<net::Contact> contacts;
  NS_ASSIGN_OR_RETURN(Channel channel, connect_any(host, network, context));
  const bool tracker = channel->hello().offers(net::Feature::Tracker);
  if (channel->hello().offers(net::Feature::Dht)) contacts.push_back({channel->id(), channel->endpoint()});
  const auto answer = wait_for<Expected<Bytes>>(host, [&](auto done) {
    channel->call(tracker ? net::Method::TrackerPeers : net::Method::Peers,
                  swarm::encode_count(swarm::max_records), net::call_deadline(call_patience, 1, answer_bytes),
                  std::move(done));
  });
  host.run([&] { channel.reset(); });
  if (answer.ok()) {
    NS_ASSIGN_OR_RETURN(const auto records, swarm::decode_records(*answer));
    for (const net::NodeRecord& record : records) {
      if (!net::check_node_record(record, network.id, context.clock.wall_now()).ok()) continue;
      for (const net::NodeEndpoint& at : record.endpoints)
        if (at.reach == net::Reach::Direct) contacts.push_back({record.id(), at.endpoint});
    }
  }
  if (contacts.empty())
    return make_error(ErrorCode::Unavailable, "no member of the hash table is known there");
  return contacts;
}

Expected<void> with_table(const AskFlags& flags, CommandContext& context,
                          const std::function<Expected<void>(PeerHost&, dht::DhtNode&)>& use) {
  NS_RETURN_IF_ERROR(dht::check_path(flags.path));
  NS_ASSIGN_OR_RETURN(const Network network, network_of(flags, context));
  NS_ASSIGN_OR_RETURN(const auto host, guest(network, flags, context));
  NS_ASSIGN_OR_RETURN(const auto contacts, first_members(*host, network, context));
  TableClient client;
  host->run([&] {
    client.pool = std::make_unique<net::PeerPool>(host->transport(), host->executor(), host->clock());
    dht::DhtConfig config;
    config.one_lan = flags.lan;
    client.node = std::make_unique<dht::DhtNode>(
        network.id, config, dht::DhtServices{host->key(), *client.pool, host->executor(), host->clock()},
        load_le<std::uint64_t>(host->id().data()));
  });
  const auto known =
      wait_for<std::size_t>(*host, [&](auto done) { client.node->join(contacts, std::move(done)); });
  context.output.note(fmt::format("{} member(s) of the hash table known", known));
  Expected<void> result = known == 0
                              ? make_error(ErrorCode::Unavailable, "no member of the hash table answers")
                              : use(*host, *client.node);
  host->run([&] {
    client.node.reset();
    client.pool.reset();
  });
  return result;
}

Expected<void> get(const AskFlags& flags, CommandContext& context) {
  return with_table(flags, context, [&](PeerHost& host, dht::DhtNode& node) -> Expected<void> {
    const auto found = wait_for<Expected<dht::LookupResult>>(
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
      return make_error(ErrorCode::NotFound, fmt::format("nobody has published {}", flags.path));
    return {};
  });
}

Expected<void> put(const AskFlags& flags, CommandContext& context) {
  return with_table(flags, context, [&](PeerHost& host, dht::DhtNode& node) -> Expected<void> {
    const auto stored = wait_for<Expected<dht::Published>>(host, [&](auto done) {
      node.publish(flags.path, Bytes(flags.text.begin(), flags.text.end()), std::move(done));
    });
    if (!stored.ok()) return stored.error();
    context.output.json_line(
        {{"path", flags.path}, {"publisher", to_hex(host.key().public_key())}, {"stored", stored->stored}});
    context.output.line(fmt::format("Stored by {} member(s), for an hour.", stored->stored));
    return {};
  });
}

}  // namespace

void add_peers_command(CLI::App& root, CommandContext& context) {
  auto flags = std::make_shared<AskFlags>();
  CLI::App& command =
      add_command(root, "peers",
                  "Whom the running node talks with and how it is reached; or ask a tracker or another node "
                  "whom it knows",
                  {"neuroshardd peers", "neuroshardd peers --profile village.json --at 192.0.2.1:8765"});
  add_ask_flags(command, *flags);
  set_body(command, context, [flags, &context] { return list_peers(*flags, context); });
}

void add_dht_command(CLI::App& root, CommandContext& context) {
  CLI::App& dht = add_command(root, "dht", "The network's hash table: read and write small signed records",
                              {"neuroshardd dht get /values/hello --profile village.json"});
  auto read = std::make_shared<AskFlags>();
  CLI::App& get_command =
      add_command(dht, "get", "Show the records of a path",
                  {"neuroshardd dht get /values/hello --profile village.json",
                   "neuroshardd dht get /nodes/ID --profile village.json --at 192.0.2.1:9000"});
  get_command
      .add_option("path", read->path,
                  "/nodes/ID, /layers/L, /experts/L/E, /checkpoints/ID, /shards/I, /values/NAME")
      ->required();
  add_ask_flags(get_command, *read);
  set_body(get_command, context, [read, &context] { return get(*read, context); });

  auto write = std::make_shared<AskFlags>();
  CLI::App& put_command =
      add_command(dht, "put", "Publish a small text under a path, signed by a key made for it",
                  {"neuroshardd dht put /values/hello \"good morning\" --profile village.json"});
  put_command.add_option("path", write->path, "usually /values/NAME")->required();
  put_command.add_option("text", write->text, "what to publish")->required();
  add_ask_flags(put_command, *write);
  set_body(put_command, context, [write, &context] { return put(*write, context); });
}

}  // namespace neuroshard::app
