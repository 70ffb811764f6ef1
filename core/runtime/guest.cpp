#include "core/runtime/guest.h"

#include <algorithm>

#include "core/config/network_profile.h"
#include "core/swarm/messages.h"

namespace neuroshard::runtime {
namespace {

constexpr Duration call_patience = std::chrono::seconds(5);
constexpr std::size_t answer_bytes = 100u << 10;
constexpr std::size_t most_publishers = 64;  // of one path that are looked for
constexpr std::size_t most_contacts = 512;

using Channel = std::shared_ptr<net::PeerChannel>;

// The first source that answers; else the error of the last one.
Expected<Channel> connect_any(PeerHost& host, const GuestNetwork& network, const NoteFunction& note) {
  Expected<Channel> channel = make_error(ErrorCode::Unavailable, "there is no node to ask");
  for (const net::Dial& dial : network.sources) {
    channel = wait_for<Expected<Channel>>(
        host, [&](auto done) { host.transport().connect(dial, net::connect_deadline, std::move(done)); });
    if (channel.ok()) return channel;
    if (note) note(channel.error().describe());
  }
  return channel;
}

}  // namespace

Expected<GuestNetwork> guest_network(const GuestOptions& options, storage::FileEnv& files) {
  if (options.profile.empty())
    return make_error(ErrorCode::InvalidArgument,
                      "set the network with --profile (a built-in name or a file)");
  NS_ASSIGN_OR_RETURN(const config::NetworkProfile profile,
                      config::load_network_profile(files, options.profile));
  GuestNetwork network;
  network.id = config::network_id(profile.consensus);
  std::vector<std::string> texts = options.at;
  if (texts.empty()) {
    texts = profile.directory.trackers;
    texts.insert(texts.end(), profile.directory.bootstrap.begin(), profile.directory.bootstrap.end());
  }
  if (texts.empty())
    return make_error(ErrorCode::NotFound,
                      "this network's profile names no tracker and no node: set one with --at");
  NS_ASSIGN_OR_RETURN(network.sources, parse_dials(texts));
  return network;
}

Expected<std::unique_ptr<PeerHost>> start_guest(const GuestNetwork& network, const GuestOptions& options,
                                                const RuntimeServices& services) {
  PeerHostOptions host;
  host.member = false;
  host.swarm.network_id = network.id;
  host.swarm.one_lan = options.lan;
  return PeerHost::start(crypto::KeyPair::generate(services.entropy), services, std::move(host));
}

Expected<Acquaintance> get_acquainted(PeerHost& host, const GuestNetwork& network, const NoteFunction& note) {
  NS_ASSIGN_OR_RETURN(Channel channel, connect_any(host, network, note));
  Acquaintance known;
  known.contact = {channel->id(), channel->endpoint()};
  known.hello = channel->hello();
  const bool tracker = known.hello.offers(net::Feature::Tracker);
  const auto answer = wait_for<Expected<Bytes>>(host, [&](auto done) {
    channel->call(tracker ? net::Method::TrackerPeers : net::Method::Peers,
                  swarm::encode_count(swarm::max_records), net::call_deadline(call_patience, 1, answer_bytes),
                  std::move(done));
  });
  host.run([&] { channel.reset(); });
  if (!answer.ok()) return answer.error();
  NS_ASSIGN_OR_RETURN(const auto records, swarm::decode_records(*answer));
  for (const net::NodeRecord& record : records)
    if (record.id() != known.contact.id &&
        net::check_node_record(record, network.id, host.clock().wall_now()).ok())
      known.records.push_back(record);
  return known;
}

std::vector<net::Contact> contacts_of(const Acquaintance& known) {
  std::vector<net::Contact> contacts;
  if (!known.hello.offers(net::Feature::Tracker) || known.hello.offers(net::Feature::Dht))
    contacts.push_back(known.contact);
  for (const net::NodeRecord& record : known.records)
    for (const net::NodeEndpoint& at : record.endpoints)
      if (at.reach == net::Reach::Direct) contacts.push_back({record.id(), at.endpoint});
  return contacts;
}

GuestPaths::GuestPaths(PeerHost& host, const GuestNetwork& network, const GuestOptions& options,
                       const Acquaintance& known)
    : host_(host), one_lan_(options.lan), book_(network.id), contacts_(contacts_of(known)) {
  host_.run([&] {
    transport_ =
        std::make_unique<swarm::PathTransport>(host_.transport(), host_.tunnels(), book_, host_.clock());
    transport_->set_own({one_lan_, /*dialled=*/false, std::nullopt});
    pool_ = std::make_unique<net::PeerPool>(*transport_, host_.executor(), host_.clock());
    for (const net::NodeRecord& record : known.records) {
      const auto contact = learn(record);
      if (contact && std::none_of(contacts_.begin(), contacts_.end(),
                                  [&](const net::Contact& one) { return one.id == contact->id; }))
        contacts_.push_back(*contact);
    }
  });
}

GuestPaths::~GuestPaths() {
  host_.run([this] {
    pool_.reset();
    transport_.reset();
  });
}

std::optional<net::Contact> GuestPaths::learn(const net::NodeRecord& record) {
  if (!book_.put(record, host_.clock().wall_now()).ok()) return std::nullopt;
  for (const net::NodeEndpoint& at : record.endpoints)
    if (at.reach == net::Reach::Direct) return net::Contact{record.id(), at.endpoint};
  return transport_->contact_of(record, one_lan_);
}

std::size_t GuestPaths::relayed() const {
  std::size_t count = 0;
  for (const net::PeerView& peer : pool_->peers())
    if (peer.connected && transport_->path_to(peer.id, peer.endpoint).way != swarm::Way::Direct) ++count;
  return count;
}

Expected<std::unique_ptr<GuestTable>> GuestTable::open(PeerHost& host, const GuestNetwork& network,
                                                       const GuestOptions& options, const Acquaintance& known,
                                                       GuestPaths& paths) {
  std::unique_ptr<GuestTable> table(new GuestTable(host, paths));
  std::vector<net::Contact> members;
  for (const net::Contact& contact : contacts_of(known))
    if (contact.id != known.contact.id || known.hello.offers(net::Feature::Dht)) members.push_back(contact);
  if (members.empty())
    return make_error(ErrorCode::Unavailable, "no member of the hash table is known there");
  host.run([&] {
    dht::DhtConfig config;
    config.one_lan = options.lan;
    table->node_ = std::make_unique<dht::DhtNode>(
        network.id, config, dht::DhtServices{host.key(), paths.caller(), host.executor(), host.clock()},
        load_le<std::uint64_t>(host.id().data()));
  });
  table->known_ =
      wait_for<std::size_t>(host, [&](auto done) { table->node_->join(members, std::move(done)); });
  if (table->known_ == 0) return make_error(ErrorCode::Unavailable, "no member of the hash table answers");
  return table;
}

GuestTable::~GuestTable() {
  host_.run([this] {
    lifetime_.end();
    node_.reset();
  });
}

void GuestTable::find_publishers(const std::string& path,
                                 const std::function<void(std::vector<net::Contact>)>& found) {
  node_->get(path, [this, found, life = lifetime_.token()](const Expected<dht::LookupResult>& result) {
    if (!life.alive() || !result.ok()) return;
    std::size_t looked_for = 0;
    for (const dht::Record& record : result->records)
      if (looked_for++ < most_publishers) locate(crypto::node_id(record.publisher), found);
  });
}

void GuestTable::locate(const net::NodeId& id, const std::function<void(std::vector<net::Contact>)>& found) {
  const auto known = std::find_if(contacts_.begin(), contacts_.end(),
                                  [&](const net::Contact& contact) { return contact.id == id; });
  if (known != contacts_.end()) return found({*known});
  node_->get("/nodes/" + to_hex(id),
             [this, id, found, life = lifetime_.token()](const Expected<dht::LookupResult>& result) {
               if (!life.alive() || !result.ok()) return;
               for (const dht::Record& stored : result->records) {
                 const auto record = net::decode_node_record(stored.payload);
                 if (!record.ok() || record->id() != id || contacts_.size() >= most_contacts) continue;
                 const auto contact = paths_.learn(*record);
                 if (!contact) continue;
                 contacts_.push_back(*contact);
                 return found({*contact});
               }
             });
}

}  // namespace neuroshard::runtime
