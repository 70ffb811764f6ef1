#include "core/dht/dht_node.h"

#include <algorithm>

#include "core/base/check.h"

namespace neuroshard::dht {

DhtNode::DhtNode(const Hash256& network_id, DhtConfig config, DhtServices services, std::uint64_t seed)
    : network_id_(network_id),
      config_(config),
      services_(services),
      id_(crypto::node_id(services.key.public_key())),
      rng_(seed),
      table_(id_, config.table, config.one_lan),
      store_(id_, config.store) {
  // Spread over the interval, so that nodes that start together do not work at the same moments.
  const Duration first =
      config_.upkeep / 2 + Duration(rng_.below(static_cast<std::uint64_t>(config_.upkeep.count())));
  timer_ = services_.executor.post_after(first, [this] { upkeep(); });
}

DhtNode::~DhtNode() {
  lifetime_.end();
  for (auto& [number, lookup] : lookups_) lookup->stop();
}

void DhtNode::ask(const net::Contact& contact, net::Method method, Bytes request, net::CallDone done) {
  services_.caller.call(
      contact, method, std::move(request), config_.call_deadline,
      [this, life = lifetime_.token(), contact, done = std::move(done)](Expected<Bytes> answer) {
        if (!life.alive()) return;
        note(contact, answer);
        done(std::move(answer));
      });
}

void DhtNode::note(const net::Contact& contact, const Expected<Bytes>& answer) {
  // A refusal is an answer: the member is alive.
  const bool denied = !answer.ok() && answer.error().code == ErrorCode::Denied;
  const bool lives = answer.ok() || denied || answer.error().code == ErrorCode::Exhausted;
  const net::CallPath path = services_.caller.path_to(contact);
  if (lives && path == net::CallPath::There) return answered(contact);
  // Denied without a connection: another node is at the address, or this node may not dial it.
  if (!lives || (denied && path == net::CallPath::None)) return failed(contact);
  table_.passed_over(contact, services_.clock.monotonic_now());
}

void DhtNode::ping(const net::Contact& contact) {
  Request request;
  request.port = config_.member_port;
  ask(contact, net::Method::DhtPing, encode_request(net::Method::DhtPing, request), [](Expected<Bytes>) {});
}

void DhtNode::answered(const net::Contact& contact) {
  table_.answered(contact, services_.clock.monotonic_now());
  for (Anchor& anchor : anchors_)
    if (anchor.contact.id == contact.id) anchor.failures = 0;
}

void DhtNode::failed(const net::Contact& contact) {
  table_.failed(contact);
  std::erase_if(anchors_, [&](Anchor& one) {
    return one.contact == contact && ++one.failures >= config_.table.failures_until_removed;
  });
}

// A few of each part of the network. When all places are taken the old contacts stay: new ones can't push
// them out.
void DhtNode::keep_anchor(const net::Contact& contact) {
  constexpr std::size_t most = 32;
  std::erase_if(anchors_, [&](const Anchor& one) { return one.contact.id == contact.id; });
  const std::uint64_t group = platform::prefix_group(contact.endpoint.ip);
  const auto near = std::count_if(anchors_.begin(), anchors_.end(), [&](const Anchor& one) {
    return platform::prefix_group(one.contact.endpoint.ip) == group;
  });
  const bool many = !config_.one_lan && static_cast<std::size_t>(near) >= config_.table.per_group_bucket;
  if (!many && anchors_.size() < most) anchors_.push_back({contact, 0});
}

void DhtNode::keep_given(const net::Contact& contact) {
  constexpr std::size_t most = 64;
  std::erase_if(given_, [&](const net::Contact& one) { return one.id == contact.id; });
  if (given_.size() >= most) given_.erase(given_.begin());
  given_.push_back(contact);
}

std::vector<net::Contact> DhtNode::first_contacts() const {
  std::vector<net::Contact> contacts = given_;
  for (const net::Contact& contact : last_contacts_)
    if (std::find(given_.begin(), given_.end(), contact) == given_.end()) contacts.push_back(contact);
  return contacts;
}

void DhtNode::walk(const net::NodeId& target, net::Method method, LookupOptions options,
                   const std::string& path, std::function<void(Expected<LookupResult>)> done) {
  if (lookups_.size() >= config_.max_lookups) {
    return done(make_error(ErrorCode::Exhausted, "too many lookups are in progress; try again in a moment"));
  }
  const std::uint64_t number = next_lookup_++;
  Request request;
  request.port = config_.member_port;
  request.target = target;
  Lookup::Services services;
  services.ask = [this, method, bytes = encode_request(method, request)](const net::Contact& contact,
                                                                         net::CallDone answer) {
    ask(contact, method, bytes, std::move(answer));
  };
  services.valid = [this, path](const Record& record) {
    return record.path == path && check_record(record, network_id_, services_.clock.wall_now()).ok();
  };
  services.done = [this, life = lifetime_.token(), number, done = std::move(done)](LookupResult result) {
    if (!life.alive()) return;
    lookups_.erase(number);
    done(std::move(result));
  };
  options.radius = double(config_.replicas) / table_.estimated_members();
  constexpr std::size_t seeds_per_path = 7;
  std::vector<net::Contact> anchors;
  for (const Anchor& anchor : anchors_) anchors.push_back(anchor.contact);
  std::vector<net::Contact> first = table_.closest(target, seeds_per_path * options.max_paths);
  // Hardly any contact answers: the first contacts of this node are worth a try.
  if (first.size() < options.paths) {
    const std::vector<net::Contact> more = first_contacts();
    first.insert(first.end(), more.begin(), more.end());
  }
  const auto lookup =
      std::make_shared<Lookup>(id_, target, method, config_.one_lan, options, std::move(first),
                               std::move(anchors), random_id(-1), std::move(services));
  lookups_[number] = lookup;
  lookup->start();
}

void DhtNode::get(const std::string& path, std::function<void(Expected<LookupResult>)> done) {
  if (const auto sound = check_path(path); !sound.ok()) return done(sound.error());
  get_once(path,
           [this, life = lifetime_.token(), path, done = std::move(done)](Expected<LookupResult> first) {
             // Nothing was found, but some members did not answer. The table knows more than before, so try
             // once more.
             if (!life.alive() || !first.ok() || !first->records.empty() || first->failures == 0)
               return done(std::move(first));
             get_once(path, [done, former = std::move(*first)](Expected<LookupResult> second) {
               if (!second.ok()) return done(former);
               second->messages += former.messages;
               second->failures += former.failures;
               done(std::move(second));
             });
           });
}

void DhtNode::get_once(const std::string& path, std::function<void(Expected<LookupResult>)> done) {
  const net::NodeId key = key_of(network_id_, path);
  walk(key, net::Method::DhtFindValue, config_.lookup, path,
       [this, key, done = std::move(done)](Expected<LookupResult> result) {
         if (result.ok()) {  // the own store counts, too
           for (const Record* own : store_.find(key, services_.clock.wall_now())) {
             const auto same = std::find_if(result->records.begin(), result->records.end(),
                                            [&](const Record& r) { return r.publisher == own->publisher; });
             if (same == result->records.end())
               result->records.push_back(*own);
             else if (same->sequence < own->sequence)
               *same = *own;
           }
         }
         done(std::move(result));
       });
}

void DhtNode::find(const net::NodeId& target, std::function<void(Expected<LookupResult>)> done, bool wide) {
  LookupOptions options = config_.lookup;
  options.max_paths = options.least_paths = wide ? options.max_paths : options.paths;
  walk(target, net::Method::DhtFindNode, options, {}, std::move(done));
}

void DhtNode::join(std::vector<net::Contact> contacts, std::function<void(std::size_t)> done) {
  struct Joining {
    std::size_t waiting;
    std::function<void(std::size_t)> done;
  };
  if (contacts.empty()) return done(table_.size());
  last_contacts_ = contacts;
  auto joining = std::make_shared<Joining>(Joining{contacts.size(), std::move(done)});
  Request request;
  request.port = config_.member_port;
  for (const net::Contact& contact : contacts) {
    ask(contact, net::Method::DhtPing, encode_request(net::Method::DhtPing, request),
        [this, joining, contact](Expected<Bytes> answer) {
          if (answer.ok() && contact.id != id_ && services_.caller.path_to(contact) == net::CallPath::There)
            keep_anchor(contact);
          if (--joining->waiting != 0) return;
          find(id_, [this, joining](Expected<LookupResult>) { joining->done(table_.size()); });
        });
  }
}

// A record that is being sent to the members nearest to its key.
struct DhtNode::Storing {
  Bytes request;
  std::vector<KnownContact> targets;  // nearest first
  std::size_t next = 0;
  std::size_t wanted = 0;
  std::size_t waiting = 0;
  std::unordered_map<std::uint64_t, std::size_t> groups;
  std::size_t per_group = 0;                      // 0 = no limit
  std::unordered_map<std::size_t, int> failures;  // by source; −1 once one of it answered
  Published result;
  std::function<void(Expected<Published>)> done;
};

void DhtNode::publish(const std::string& path, Bytes payload, std::function<void(Expected<Published>)> done) {
  const WallTime now = services_.clock.wall_now();
  const auto known = owned_.find(path);
  if (known == owned_.end() && owned_.size() >= config_.max_published) {
    return done(make_error(ErrorCode::Exhausted, "this node has reached its limit of published records"));
  }
  std::uint64_t sequence = static_cast<std::uint64_t>(to_unix_ms(now));
  if (known != owned_.end()) sequence = std::max(sequence, known->second.sequence + 1);
  const WallTime expires = now + std::chrono::duration_cast<std::chrono::milliseconds>(config_.record_life);
  auto record = make_record(services_.key, network_id_, path, payload, sequence, expires);
  if (!record.ok()) return done(record.error());
  const Duration pause = known == owned_.end() ? Duration(0) : known->second.pause;
  owned_[path] = {std::move(payload), services_.clock.monotonic_now() + config_.record_life / 2, expires,
                  sequence, pause};

  const net::NodeId key = key_of(network_id_, path);
  if (config_.member_port != 0) {  // this node keeps it if it is one of the nearest members
    const auto nearest = table_.closest(key, config_.replicas);
    if (nearest.size() < config_.replicas || net::closer(key, id_, nearest.back().id))
      static_cast<void>(store_.put(key, *record, 0, now));
  }
  auto storing = std::make_shared<Storing>();
  Request request;
  request.port = config_.member_port;
  request.record = std::move(*record);
  storing->request = encode_request(net::Method::DhtStore, request);
  storing->wanted = config_.replicas;
  storing->per_group = config_.one_lan ? 0 : config_.table.per_group_bucket;
  storing->done = [this, path, done = std::move(done)](Expected<Published> published) {
    if (const auto owned = owned_.find(path); owned != owned_.end()) {
      Duration& wait = owned->second.pause;
      wait = published.ok() ? Duration(0) : std::clamp(2 * wait, config_.upkeep, config_.record_life / 2);
      if (!published.ok()) owned->second.due = services_.clock.monotonic_now() + wait;
    }
    done(std::move(published));
  };
  find(
      key,
      [this, storing](Expected<LookupResult> found) {
        if (!found.ok()) return storing->done(found.error());
        storing->targets = std::move(found->known);
        storing->result.messages = found->messages;
        store_at(storing);
      },
      /*wide=*/true);
}

void DhtNode::store_at(std::shared_ptr<Storing> storing) {
  constexpr std::size_t at_once = 5;
  Storing& s = *storing;
  while (s.waiting < at_once && s.result.stored + s.waiting < s.wanted && s.next < s.targets.size()) {
    const auto& [target, source] = s.targets[s.next++];
    if (s.failures[source] >= config_.lookup.source_failures)
      continue;  // that answer named contacts that do not exist
    std::size_t& in_group = s.groups[platform::prefix_group(target.endpoint.ip)];
    if (s.per_group != 0 && in_group >= s.per_group) continue;
    ++in_group;
    ++s.waiting;
    ++s.result.messages;
    ask(target, net::Method::DhtStore, s.request, [this, storing, source = source](Expected<Bytes> answer) {
      --storing->waiting;
      int& failures = storing->failures[source];
      if (answer.ok())
        failures = -1;
      else if (failures >= 0)
        ++failures;
      ++(answer.ok() ? storing->result.stored : storing->result.refused);
      store_at(storing);
    });
  }
  if (s.waiting != 0 || !s.done) return;
  const auto done = std::move(s.done);
  s.done = nullptr;
  if (s.result.stored == 0) {
    return done(
        make_error(ErrorCode::Unavailable, "no member of the table took the record; it is tried again"));
  }
  done(s.result);
}

void DhtNode::withdraw(const std::string& path) {
  owned_.erase(path);
}

net::NodeId DhtNode::random_id(int shared) {
  net::NodeId id;
  for (std::uint8_t& byte : id) byte = static_cast<std::uint8_t>(rng_.below(256));
  for (int bit = 0; bit <= shared && bit < 256; ++bit) {  // none for −1
    const auto at = static_cast<std::size_t>(bit / 8);
    const auto mask = static_cast<std::uint8_t>(0x80 >> (bit % 8));
    const bool ours = (id_[at] & mask) != 0;
    const bool wanted = bit < shared ? ours : !ours;
    id[at] = static_cast<std::uint8_t>(wanted ? id[at] | mask : id[at] & ~mask);
  }
  return id;
}

// Members judge a record by wall time. It goes on while the machine is suspended, and jumps when the clock is
// set; the monotonic time does neither.
bool DhtNode::is_due(const Owned& owned, MonotonicTime now, WallTime wall_now) const {
  return owned.due <= now || owned.expires - config_.record_life / 2 <= wall_now ||
         owned.expires - config_.record_life > wall_now;
}

void DhtNode::publish_due(MonotonicTime now) {
  const WallTime wall_now = services_.clock.wall_now();
  std::vector<std::pair<MonotonicTime, std::string>> due;
  for (const auto& [path, owned] : owned_)
    if (is_due(owned, now, wall_now)) due.emplace_back(owned.due, path);
  std::sort(due.begin(), due.end());  // the longest waiting first
  if (due.size() > config_.most_renewed) due.resize(config_.most_renewed);
  for (const auto& [since, path] : due) {
    const Bytes payload = owned_[path].payload;
    publish(path, payload, [](Expected<Published>) {});
  }
}

// A node with few contacts underestimates the network, and its lookups end too early. Either its join was
// unlucky or there are no more nodes: it joins again, with growing pauses while that finds none.
void DhtNode::refill(MonotonicTime now) {
  const bool thin = table_.size() < config_.replicas;
  if (!thin || table_.size() > refilled_at_) refill_pause_ = config_.upkeep;
  if (!thin || (table_.size() != 0 && now < refill_due_)) return;
  refilled_at_ = table_.size();
  refill_due_ = now + refill_pause_;
  refill_pause_ = std::min(2 * refill_pause_, config_.silent);
  join(first_contacts(), [](std::size_t) {});
}

void DhtNode::upkeep() {
  const MonotonicTime now = services_.clock.monotonic_now();
  timer_ = services_.executor.post_after(config_.upkeep, [this] { upkeep(); });
  refill(now);
  // Twice the calls that are needed to check each contact in time: failing ones and spares come first.
  const auto due = 2 * table_.size() * static_cast<std::size_t>(config_.upkeep.count()) /
                   static_cast<std::size_t>(config_.silent.count());
  for (const net::Contact& contact : table_.to_check(config_.checks + due, now - config_.silent))
    ping(contact);
  if (const auto bucket = table_.stale_bucket(now - config_.refresh, now))
    find(random_id(*bucket), [](Expected<LookupResult>) {});
  publish_due(now);
  store_.drop_expired(services_.clock.wall_now());
}

net::Answer DhtNode::keep(const net::Caller& from, Record record) {
  if (config_.member_port == 0)
    return make_error(ErrorCode::Denied, "this node is not reachable for everybody and holds no records");
  if (crypto::node_id(record.publisher) != from.id)
    return {make_error(ErrorCode::Denied, "records are taken from their publisher only"),
            net::Fault::OthersRecord};
  const WallTime now = services_.clock.wall_now();
  if (const auto sound = check_record(record, network_id_, now); !sound.ok()) {
    // A wrong clock is no fault; a signature that never holds is one.
    if (check_signed(record, network_id_).ok()) return sound.error();
    return {sound.error(), net::Fault::BadSignature};
  }
  const net::NodeId key = key_of(network_id_, record.path);
  const auto kept = store_.put(key, std::move(record), platform::prefix_group(from.endpoint.ip), now);
  return kept.ok() ? net::Answer(Bytes()) : net::Answer(kept.error());
}

net::Answer DhtNode::answer(const net::Caller& from, net::Method method, const Request& request) {
  if (method == net::Method::DhtPing) return encode_endpoint(from.endpoint);
  if (method == net::Method::DhtStore) return keep(from, request.record);
  std::vector<const Record*> records;
  if (method == net::Method::DhtFindValue) {
    records = store_.find(request.target, services_.clock.wall_now());
    for (std::size_t i = 0; i < records.size() && i < max_answer_records; ++i)
      std::swap(records[i], records[i + rng_.below(records.size() - i)]);
    records.resize(std::min(records.size(), max_answer_records));
  }
  std::vector<net::Contact> contacts = table_.closest(request.target, max_contacts);
  std::erase_if(contacts, [&](const net::Contact& contact) { return contact.id == from.id; });
  return encode_found(method, records, contacts);
}

void DhtNode::handle(const net::Caller& from, net::Method method, ByteSpan bytes, const net::Reply& reply) {
  ++counters_.requests;
  auto request = decode_request(method, bytes);
  if (!request.ok()) {
    ++counters_.malformed;
    if (request.error().code != ErrorCode::Corrupt) return reply(request.error());
    return reply({request.error(), net::Fault::Malformed});
  }
  if (request->port != 0 && (config_.one_lan || platform::globally_routable(from.endpoint.ip)))
    table_.heard_of({from.id, {from.endpoint.ip, request->port}});
  net::Answer result = answer(from, method, *request);
  if (!result.with.ok()) ++counters_.refused;
  reply(std::move(result));
}

}  // namespace neuroshard::dht
