#include "tests/sim/dht_world.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/check.h"
#include "tests/sim/hostile_member.h"

namespace neuroshard::testing {
namespace {

std::string item_path(std::size_t item) {
  return fmt::format("/values/item-{}", item);
}

Bytes item_payload(std::size_t item, int version) {
  const std::string text = fmt::format("item {} version {}", item, version);
  return Bytes(text.begin(), text.end());
}

}  // namespace

struct Population::Member {
  crypto::KeyPair key;
  net::Contact contact;
  sim::Host host = 0;
  std::unique_ptr<sim::HostExecutor> executor;
  std::unique_ptr<dht::DhtNode> node;  // honest
  std::unique_ptr<HostileMember> hostile;
  MonotonicTime joined{};
  bool gone = false;
};

namespace {

constexpr std::uint32_t address_groups = 1u << 21;

// One node per /24, in public space.
platform::Endpoint endpoint_in(int first, std::uint32_t group) {
  const auto byte = [&](int shift) { return static_cast<std::uint8_t>(group >> shift); };
  return {platform::IpAddress::v4(static_cast<std::uint8_t>(first + byte(16)), byte(8), byte(0), 7), 9000};
}

}  // namespace

Population::Population(PopulationOptions options)
    : options_(options), rng_(options.seed), network_(world_, options.network, options.seed ^ 0x5eed) {
  options_.config.member_port = 9000;
}

Population::~Population() = default;

crypto::KeyPair Population::new_key() {
  Hash256 seed;
  for (std::uint8_t& byte : seed) byte = static_cast<std::uint8_t>(rng_.below(256));
  return crypto::KeyPair::from_seed(seed);
}

platform::Endpoint Population::new_endpoint() {
  NS_CHECK(next_address_ < address_groups);
  return endpoint_in(32, next_address_++);
}

// As many as anybody likes: they come again.
platform::Endpoint Population::nobody() {
  return endpoint_in(64, next_nobody_++ % address_groups);
}

std::size_t Population::add(bool hostile, const crypto::KeyPair* key, platform::Endpoint endpoint) {
  auto member =
      std::make_unique<Member>(Member{key != nullptr ? crypto::KeyPair::from_seed(key->seed()) : new_key(),
                                      {},
                                      0,
                                      nullptr,
                                      nullptr,
                                      nullptr});
  Member& m = *member;
  m.contact = {crypto::node_id(m.key.public_key()), endpoint};
  m.joined = world_.now();
  m.host = network_.add(m.contact.id, endpoint, sim::Nat::None, nullptr);
  m.executor = std::make_unique<sim::HostExecutor>(world_);
  if (hostile) {
    m.hostile = std::make_unique<HostileMember>(HostileMember::Surroundings{
        options_.hostility, network_id_, accomplices_, rng_, [this] { return nobody(); }});
    accomplices_.push_back(m.contact);
    network_.set_handler(
        m.host, [&m](const net::Caller& from, net::Method method, ByteSpan bytes,
                     const net::Respond& respond) { m.hostile->handle(from, method, bytes, respond); });
  } else {
    start(m);
  }
  members_.push_back(std::move(member));
  return members_.size() - 1;
}

void Population::start(Member& m) {
  m.node = std::make_unique<dht::DhtNode>(
      network_id_, options_.config,
      dht::DhtServices{m.key, network_.caller(m.host), *m.executor, world_.clock()}, rng_.next());
  network_.set_handler(
      m.host, [&m](const net::Caller& from, net::Method method, ByteSpan bytes, const net::Respond& respond) {
        m.node->handle(from, method, bytes, respond);
      });
}

void Population::retire(std::size_t index) {
  Member& m = *members_[index];
  network_.set_online(m.host, false);
  network_.set_handler(m.host, nullptr);
  m.node.reset();
  m.executor->stop();
  m.gone = true;
}

std::vector<net::Contact> Population::some_contacts(std::size_t count) {
  std::vector<net::Contact> contacts;
  if (members_.empty()) return contacts;
  for (std::size_t tries = 0; contacts.size() < count && tries < 20 * count; ++tries) {
    const Member& m = *members_[rng_.below(members_.size())];
    if (!m.gone) contacts.push_back(m.contact);
  }
  return contacts;
}

void Population::join_all(Duration span) {
  const Duration gap = span / static_cast<std::int64_t>(options_.members);
  for (std::size_t i = 0; i < options_.members; ++i) {
    std::vector<net::Contact> known = some_contacts(3);
    const bool hostile = i >= 20 && rng_.uniform() < options_.hostile;
    const std::size_t index = add(hostile, nullptr, new_endpoint());
    if (!hostile) members_[index]->node->join(std::move(known), [](std::size_t) {});
    world_.run_for(gap);
  }
  for (const auto& member : members_)
    if (member->node != nullptr) member->node->join(some_contacts(options_.told), [](std::size_t) {});
  world_.run_for(std::chrono::minutes(1));
  for (const auto& member : members_)
    if (member->hostile != nullptr) make_known(*member, member->contact.id);
}

void Population::make_known(const Member& member, const net::NodeId& target) {
  dht::Request request;
  request.port = 9000;
  request.target = target;
  for (const net::Contact& contact : some_contacts(40))
    network_.caller(member.host)
        .call(contact, net::Method::DhtFindNode, dht::encode_request(net::Method::DhtFindNode, request),
              std::chrono::seconds(2), [](Expected<Bytes>) {});
}

std::size_t Population::random_honest() {
  for (;;) {
    const std::size_t i = rng_.below(members_.size());
    if (members_[i]->node != nullptr) return i;
  }
}

dht::DhtNode& Population::honest(std::size_t i) {
  while (members_[i % members_.size()]->node == nullptr) ++i;
  return *members_[i % members_.size()]->node;
}

std::size_t Population::publish(std::size_t items, int version) {
  std::size_t stored = 0, done = 0;
  publishers_.resize(std::max(publishers_.size(), items), members_.size());
  for (std::size_t item = 0; item < items; ++item) {
    if (publishers_[item] >= members_.size()) publishers_[item] = random_honest();
    members_[publishers_[item]]->node->publish(item_path(item), item_payload(item, version),
                                               [&](Expected<dht::Published> result) {
                                                 ++done;
                                                 stored += result.ok() ? 1 : 0;
                                               });
    world_.run_for(std::chrono::milliseconds(50));
  }
  world_.run_until([&] { return done == items; }, world_.now() + std::chrono::minutes(30));
  world_.run_for(std::chrono::minutes(2));  // what nobody took is tried again
  return stored;
}

void Population::churn(double share, Duration span) {
  const auto count = static_cast<std::size_t>(share * double(options_.members));
  const Duration gap = span / static_cast<std::int64_t>(std::max<std::size_t>(count, 1));
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t leaving = random_honest();
    while (std::find(publishers_.begin(), publishers_.end(), leaving) != publishers_.end())
      leaving = random_honest();
    retire(leaving);
    newcomer();
    world_.run_for(gap);
  }
}

dht::DhtNode& Population::newcomer() {
  std::vector<net::Contact> known = some_contacts(3);
  const std::size_t index = add(false, nullptr, new_endpoint());
  members_[index]->node->join(std::move(known), [](std::size_t) {});
  return *members_[index]->node;
}

LookupReport Population::lookup(std::size_t lookups, std::size_t items, int version) {
  LookupReport report;
  std::vector<double> messages;
  std::size_t done = 0;
  for (std::size_t i = 0; i < lookups; ++i) {
    const std::size_t item = rng_.below(items);
    const Bytes expected = item_payload(item, version);
    const MonotonicTime begin = world_.now();
    const Member* const asker = members_[random_honest()].get();
    asker->node->get(item_path(item), [&, expected, item, asker, begin](Expected<dht::LookupResult> result) {
      ++done;
      NS_CHECK(result.ok());
      const bool any = !result->records.empty();
      const bool right = std::any_of(result->records.begin(), result->records.end(),
                                     [&](const dht::Record& record) { return record.payload == expected; });
      ++(right ? report.right : any ? report.wrong : report.missing);
      if (!right)
        report.failed.push_back({item, asker->node->table().size(), to_seconds(begin - asker->joined) / 60,
                                 result->paths, result->messages});
      messages.push_back(double(result->messages));
      report.lost += double(result->failures);
      report.paths += double(result->paths);
      report.holders += double(result->holders);
      report.hops += double(result->hops);
      report.most_hops = std::max(report.most_hops, result->hops);
      report.seconds += to_seconds(world_.now() - begin);
    });
    world_.run_for(std::chrono::milliseconds(20));
  }
  world_.run_until([&] { return done == lookups; }, world_.now() + std::chrono::minutes(30));
  report.lookups = lookups;
  const double n = std::max<double>(1, double(done));
  for (const double m : messages) report.messages += m / n;
  for (double* const sum : {&report.hops, &report.lost, &report.paths, &report.holders}) *sum /= n;
  report.seconds /= n;
  std::sort(messages.begin(), messages.end());
  if (!messages.empty()) report.messages_95 = messages[messages.size() * 95 / 100];
  return report;
}

double Population::live_answers(std::size_t count) {
  std::size_t named = 0, live = 0;
  for (std::size_t i = 0; i < count; ++i) {
    net::NodeId target;
    for (std::uint8_t& byte : target) byte = static_cast<std::uint8_t>(rng_.below(256));
    for (const net::Contact& contact : members_[random_honest()]->node->table().closest(target, 20)) {
      ++named;
      const auto member = std::find_if(members_.begin(), members_.end(),
                                       [&](const auto& m) { return m->contact.id == contact.id; });
      live += !(*member)->gone;
    }
  }
  return named == 0 ? 0 : double(live) / double(named);
}

void Population::surround(std::size_t item, std::size_t count, std::size_t groups, std::size_t tries) {
  const net::NodeId key = dht::key_of(network_id_, item_path(item));
  const std::uint32_t first_group = next_address_;
  next_address_ += static_cast<std::uint32_t>(groups);
  for (std::size_t i = 0; i < count; ++i) {
    crypto::KeyPair best = new_key();
    for (std::size_t t = 1; t < tries; ++t) {
      crypto::KeyPair next = new_key();
      if (net::closer(key, crypto::node_id(next.public_key()), crypto::node_id(best.public_key())))
        best = std::move(next);
    }
    const std::uint32_t group = first_group + static_cast<std::uint32_t>(i % groups);
    const auto byte = [&](int shift) { return static_cast<std::uint8_t>(group >> shift); };
    const platform::Endpoint endpoint{
        platform::IpAddress::v4(static_cast<std::uint8_t>(32 + byte(16)), byte(8), byte(0),
                                static_cast<std::uint8_t>(1 + i / groups)),
        9000};
    make_known(*members_[add(true, &best, endpoint)], key);
  }
}

void Population::use_single_path() {
  dht::LookupOptions& lookup = options_.config.lookup;
  lookup.paths = lookup.least_paths = lookup.max_paths = 1;
  lookup.quorum = 1;
  lookup.confirm = 0;
  lookup.width = 20;
  lookup.path_calls = 30;
}

void Population::split(double share) {
  for (const auto& member : members_)
    if (rng_.uniform() < share) network_.set_part(member->host, 1);
}

void Population::heal() {
  for (const auto& member : members_) network_.set_part(member->host, 0);
}

double Population::hostile_share() {
  std::unordered_set<net::NodeId, net::NodeIdHash> hostile;
  for (const net::Contact& contact : accomplices_) hostile.insert(contact.id);
  double named = 0, bad = 0;
  for (const auto& member : members_) {
    if (member->node == nullptr) continue;
    for (const net::Contact& contact : member->node->table().closest(member->contact.id, 1000)) {
      named += 1;
      bad += double(hostile.count(contact.id));
    }
  }
  return named == 0 ? 0 : bad / named;
}

std::size_t Population::copies(std::size_t item, int version, std::size_t near) {
  const net::NodeId key = dht::key_of(network_id_, item_path(item));
  std::vector<Member*> honest;
  for (const auto& member : members_)
    if (member->node != nullptr) honest.push_back(member.get());
  std::sort(honest.begin(), honest.end(),
            [&](const Member* a, const Member* b) { return net::closer(key, a->contact.id, b->contact.id); });
  honest.resize(std::min(near, honest.size()));
  const Bytes expected = item_payload(item, version);
  return static_cast<std::size_t>(std::count_if(honest.begin(), honest.end(), [&](const Member* member) {
    const auto found = member->node->store().find(key, world_.clock().wall_now());
    return std::any_of(found.begin(), found.end(),
                       [&](const dht::Record* record) { return record->payload == expected; });
  }));
}

std::size_t Population::hostile_near(std::size_t item, std::size_t near) {
  const net::NodeId key = dht::key_of(network_id_, item_path(item));
  std::vector<const Member*> nearest;
  for (const auto& member : members_)
    if (!member->gone) nearest.push_back(member.get());
  std::sort(nearest.begin(), nearest.end(),
            [&](const Member* a, const Member* b) { return net::closer(key, a->contact.id, b->contact.id); });
  nearest.resize(std::min(near, nearest.size()));
  return static_cast<std::size_t>(std::count_if(
      nearest.begin(), nearest.end(), [](const Member* member) { return member->hostile != nullptr; }));
}

std::size_t Population::table_mean() const {
  std::size_t sum = 0, count = 0;
  for (const auto& member : members_) {
    if (member->node == nullptr) continue;
    sum += member->node->table().size();
    ++count;
  }
  return count == 0 ? 0 : sum / count;
}

}  // namespace neuroshard::testing
